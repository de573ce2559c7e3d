"""UNSTABLE: what can be done with sessions that are stored, beyond opening and deleting them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from protocol.codec.marks import Lenient, LenientItems, NullAsDefault
from protocol.v2.base import AbsolutePath, SessionId, Wire
from protocol.v2.commands import AvailableCommand
from protocol.v2.config_options import SessionConfigOption
from protocol.v2.mcp_servers import McpServer
from protocol.v2.sessions import SystemPrompt
from protocol.v2.states import StateUpdate

# "open" (in memory), "saved", or a word that later versions add, which means "saved".
SessionStatus: TypeAlias = str


class ForkSessionRequest(Wire, frozen=True, kw_only=True):
    """Make a session that begins with what another one holds."""

    session_id: SessionId
    cwd: AbsolutePath
    additional_directories: NullAsDefault[Sequence[AbsolutePath]] = ()
    mcp_servers: NullAsDefault[Sequence[McpServer]] = ()
    system_prompt: SystemPrompt | None = None


class ForkSessionResponse(Wire, frozen=True, kw_only=True):
    """The new session, its settings and its commands."""

    session_id: SessionId
    config_options: LenientItems[Sequence[SessionConfigOption]] = ()
    available_commands: LenientItems[Sequence[AvailableCommand]] = ()


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
    """Whether it is, and what it is doing, at this moment."""

    status: SessionStatus
    state: Lenient[StateUpdate | None] = None


class SetSessionTitleRequest(Wire, frozen=True, kw_only=True):
    """Give a session a title."""

    session_id: SessionId
    title: str


class SetSessionTitleResponse(Wire, frozen=True, kw_only=True):
    """The title as it is stored."""

    title: str
