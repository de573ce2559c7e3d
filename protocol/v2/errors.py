"""What an error's `data` holds where the protocol says so; other errors may hold anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from protocol.v2.base import SessionId, Wire
from protocol.v2.initialization import ProtocolVersion


class UnsupportedProtocolVersionErrorData(Wire, frozen=True, kw_only=True):
    """Of -32022: the version that was asked for, and those that are spoken."""

    requested: ProtocolVersion
    supported: Sequence[ProtocolVersion]


class SessionNotFoundErrorData(Wire, frozen=True, kw_only=True):
    """Of -32002: the session that there is none of."""

    session_id: SessionId


ErrorData: TypeAlias = Any  # one of the two, or whatever the sender likes
