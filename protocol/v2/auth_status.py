"""UNSTABLE: whether the agent can work without a login, and which accounts it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from protocol.codec.marks import Lenient, LenientItems
from protocol.v2.base import Wire

# "authenticated", "unauthenticated", "not_required", "unknown", or a word that later versions
# add, which means "unknown".
AuthState: TypeAlias = str


class AuthAccount(Wire, frozen=True, kw_only=True):
    """An account or a key, for people to read; `active`: the agent uses it now."""

    label: str
    active: Lenient[bool | None] = None
    name: Lenient[str | None] = None
    email: Lenient[str | None] = None
    organization: Lenient[str | None] = None


class AuthStatusRequest(Wire, frozen=True, kw_only=True):
    """Is a login needed?"""


class AuthStatusResponse(Wire, frozen=True, kw_only=True):
    """Whether it is, and the accounts."""

    state: AuthState
    accounts: LenientItems[Sequence[AuthAccount]] = ()


class AuthStatusUpdateNotification(Wire, frozen=True, kw_only=True):
    """The status is another one now."""

    state: AuthState
    accounts: LenientItems[Sequence[AuthAccount]] = ()
