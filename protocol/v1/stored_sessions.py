"""UNSTABLE: what can be done with sessions that are stored, beyond opening and deleting them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from protocol.codec.marks import Lenient, LenientItems, NullAsDefault
from protocol.v1.base import SessionId, Wire
from protocol.v1.config_options import SessionConfigOption, SessionModeState
from protocol.v1.sessions import McpServer, SystemPrompt

# "open" (in memory), "saved", or a word that later versions add, which means "saved".
SessionStatus: TypeAlias = str


class ForkSessionRequest(Wire, frozen=True, kw_only=True):
    """Make a session that begins with what another one holds."""

    session_id: SessionId
    cwd: str
    additional_directories: NullAsDefault[Sequence[str]] = ()
    mcp_servers: NullAsDefault[Sequence[McpServer]] = ()
    system_prompt: SystemPrompt | None = None


class ForkSessionResponse(Wire, frozen=True, kw_only=True):
    """The new session and its settings."""

    session_id: SessionId
    modes: Lenient[SessionModeState | None] = None
    config_options: LenientItems[Sequence[SessionConfigOption] | None] = None


class ArchiveSessionRequest(Wire, frozen=True, kw_only=True):
    """Stop a session and leave it out of lists."""

    session_id: SessionId


class ArchiveSessionResponse(Wire, frozen=True, kw_only=True):
    """It is archived."""


class UnarchiveSessionRequest(Wire, frozen=True, kw_only=True):
    """Put an archived session into lists again."""

    session_id: SessionId


class UnarchiveSessionResponse(Wire, frozen=True, kw_only=True):
    """It is no longer archived."""


class SessionStatusRequest(Wire, frozen=True, kw_only=True):
    """Is a session in memory?"""

    session_id: SessionId


class SessionStatusResponse(Wire, frozen=True, kw_only=True):
    """Whether it is, at this moment."""

    status: SessionStatus


class SetSessionTitleRequest(Wire, frozen=True, kw_only=True):
    """Give a session a title."""

    session_id: SessionId
    title: str


class SetSessionTitleResponse(Wire, frozen=True, kw_only=True):
    """The title as it is stored."""

    title: str
