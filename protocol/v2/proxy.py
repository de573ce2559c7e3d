"""UNSTABLE: what a conductor and the proxies of a chain say to each other.

An agent at the end of a chain sees nothing of it: it is sent `initialize`. The types are here so
that the protocol is whole; the agent is no proxy.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from protocol.v2.base import Wire
from protocol.v2.initialization import InitializeRequest, InitializeResponse

ProxySuccessorResponse: TypeAlias = object  # the wrapped request's result, as it came


class InitializeProxyRequest(InitializeRequest, frozen=True, kw_only=True):
    """An `initialize` that says: be a proxy."""


class InitializeProxyResponse(InitializeResponse, frozen=True, kw_only=True):
    """What `initialize` is answered with."""


class ProxySuccessorRequest(Wire, frozen=True, kw_only=True):
    """A request, wrapped, to or from the next one of the chain; `meta` is the wrapping's."""

    method: str
    params: Any = None


class ProxySuccessorNotification(Wire, frozen=True, kw_only=True):
    """A notification, wrapped, to or from the next one of the chain."""

    method: str
    params: Any = None
