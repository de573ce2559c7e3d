"""Sessions: made, opened again, listed, ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from protocol.codec.marks import Lenient, LenientItems, NullAsDefault
from protocol.codec.open_union import OpenUnion, UnknownVariant, string_in
from protocol.v2.base import AbsolutePath, SessionId, SessionListCursor, Wire
from protocol.v2.commands import AvailableCommand
from protocol.v2.config_options import SessionConfigOption
from protocol.v2.content import ContentBlock
from protocol.v2.mcp_servers import McpServer

# UNSTABLE: "append", "override", or a word that later versions add.
SystemPromptMode: TypeAlias = str
# UNSTABLE: "exclude", "include", "only", or a word that later versions add.
SessionArchiveFilter: TypeAlias = str


class SystemPrompt(Wire, frozen=True, kw_only=True):
    """UNSTABLE. What the client adds to the agent's instructions, or puts in their place."""

    mode: SystemPromptMode
    content: Sequence[ContentBlock]


class NewSessionRequest(Wire, frozen=True, kw_only=True):
    """Make a session in an absolute folder."""

    cwd: AbsolutePath
    additional_directories: NullAsDefault[Sequence[AbsolutePath]] = ()
    mcp_servers: NullAsDefault[Sequence[McpServer]] = ()
    system_prompt: SystemPrompt | None = None  # UNSTABLE


class NewSessionResponse(Wire, frozen=True, kw_only=True):
    """The new session, its settings and its commands."""

    session_id: SessionId
    config_options: LenientItems[Sequence[SessionConfigOption]] = ()
    available_commands: LenientItems[Sequence[AvailableCommand]] = ()


class ReplayFrom(OpenUnion):
    """From where on a session that is opened again is replayed."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its type."""
        return ReplayFromStart if string_in(value, "type") == "start" else OtherReplayFrom


class ReplayFromStart(Wire, ReplayFrom, frozen=True, kw_only=True, tag_field="type", tag="start"):
    """From its beginning."""


class OtherReplayFrom(UnknownVariant, ReplayFrom):
    """From a place not known yet."""

    __slots__ = ()


class ResumeSessionRequest(Wire, frozen=True, kw_only=True):
    """Open a session again, and replay it where `replay_from` says so."""

    session_id: SessionId
    cwd: AbsolutePath
    additional_directories: NullAsDefault[Sequence[AbsolutePath]] = ()
    mcp_servers: NullAsDefault[Sequence[McpServer]] = ()
    replay_from: ReplayFrom | None = None
    system_prompt: SystemPrompt | None = None  # UNSTABLE


class ResumeSessionResponse(Wire, frozen=True, kw_only=True):
    """The session is open, and was replayed; its settings and its commands."""

    config_options: LenientItems[Sequence[SessionConfigOption]] = ()
    available_commands: LenientItems[Sequence[AvailableCommand]] = ()


class ListSessionsRequest(Wire, frozen=True, kw_only=True):
    """List sessions, of one folder where `cwd` is given, from `cursor` on."""

    cwd: AbsolutePath | None = None
    cursor: SessionListCursor | None = None
    archived: SessionArchiveFilter | None = None  # UNSTABLE


class SessionInfo(Wire, frozen=True, kw_only=True):
    """A session in a list; `updated_at` in the form of RFC 3339."""

    session_id: SessionId
    cwd: AbsolutePath
    additional_directories: NullAsDefault[Sequence[AbsolutePath]] = ()
    title: Lenient[str | None] = None
    updated_at: Lenient[str | None] = None
    archived: Lenient[bool | None] = None  # UNSTABLE


class ListSessionsResponse(Wire, frozen=True, kw_only=True):
    """A page of sessions, and where the next one starts."""

    sessions: LenientItems[Sequence[SessionInfo]]
    next_cursor: SessionListCursor | None = None


class DeleteSessionRequest(Wire, frozen=True, kw_only=True):
    """Delete a session for good."""

    session_id: SessionId


class DeleteSessionResponse(Wire, frozen=True, kw_only=True):
    """It is deleted."""


class CloseSessionRequest(Wire, frozen=True, kw_only=True):
    """Stop a session and free what it uses."""

    session_id: SessionId


class CloseSessionResponse(Wire, frozen=True, kw_only=True):
    """It is closed."""
