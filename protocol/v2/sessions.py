"""Sessions: their MCP servers, how they are opened and listed, prompts, cancellation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

from msgspec import Meta

from protocol.codec.tolerance import Lenient, LenientItems, NullAsDefault, OpenUnion, UnknownVariant
from protocol.shared.types import (
    AbsolutePath,
    EnvVariable,
    HttpHeader,
    McpServerAcpId,
    MessageId,
    SessionArchiveFilter,
    SessionId,
    SessionListCursor,
    SystemPromptMode,
    TerminalId,
    ToolCallId,
    Wire,
)
from protocol.v2.content import ContentBlock
from protocol.v2.options import AvailableCommand, SessionConfigOption

RequestId: TypeAlias = int | str


class McpServer(OpenUnion):
    """An MCP server: a program, one behind HTTP, one of the client's own, or one not known yet."""

    __slots__ = ()


class McpServerStdio(Wire, McpServer, tag="stdio"):
    """An MCP server that is a program to start."""

    name: str
    command: AbsolutePath
    args: NullAsDefault[Sequence[str]] = ()
    env: NullAsDefault[Sequence[EnvVariable]] = ()


class McpServerHttp(Wire, McpServer, tag="http"):
    """An MCP server behind streamable HTTP."""

    name: str
    url: str
    headers: NullAsDefault[Sequence[HttpHeader]] = ()


class McpServerAcp(Wire, McpServer, tag="acp"):
    """UNSTABLE. An MCP server of the client's, which is reached through `mcp/message`."""

    name: str
    server_id: McpServerAcpId


class OtherMcpServer(UnknownVariant, McpServer):
    """An MCP server behind a transport not known yet."""

    __slots__ = ()


class SystemPrompt(Wire):
    """UNSTABLE. What the client adds to the agent's instructions, or puts in their place."""

    mode: SystemPromptMode
    content: Sequence[ContentBlock]


class NewSessionRequest(Wire):
    """Create a session in a folder, given by its absolute path."""

    cwd: AbsolutePath
    additional_directories: NullAsDefault[Sequence[AbsolutePath]] = ()
    mcp_servers: NullAsDefault[Sequence[McpServer]] = ()
    system_prompt: SystemPrompt | None = None  # UNSTABLE


class NewSessionResponse(Wire):
    """The new session, its settings and its commands."""

    session_id: SessionId
    config_options: LenientItems[Sequence[SessionConfigOption]] = ()
    available_commands: LenientItems[Sequence[AvailableCommand]] = ()


class ReplayFrom(OpenUnion):
    """From where on a session that is opened again is replayed."""

    __slots__ = ()


class ReplayFromStart(Wire, ReplayFrom, tag="start"):
    """From its beginning."""


class OtherReplayFrom(UnknownVariant, ReplayFrom):
    """From a place not known yet."""

    __slots__ = ()


class ResumeSessionRequest(Wire):
    """Open a session again, and replay it where `replay_from` says so."""

    session_id: SessionId
    cwd: AbsolutePath
    additional_directories: NullAsDefault[Sequence[AbsolutePath]] = ()
    mcp_servers: NullAsDefault[Sequence[McpServer]] = ()
    replay_from: ReplayFrom | None = None
    system_prompt: SystemPrompt | None = None  # UNSTABLE


class ResumeSessionResponse(Wire):
    """The session is open, and was replayed; its settings and its commands."""

    config_options: LenientItems[Sequence[SessionConfigOption]] = ()
    available_commands: LenientItems[Sequence[AvailableCommand]] = ()


class ListSessionsRequest(Wire):
    """List sessions, of one folder where `cwd` is given, from `cursor` on."""

    cwd: AbsolutePath | None = None
    cursor: SessionListCursor | None = None
    archived: SessionArchiveFilter | None = None  # UNSTABLE


class SessionInfo(Wire):
    """A session in a list; `updated_at` in the form of RFC 3339."""

    session_id: SessionId
    cwd: AbsolutePath
    additional_directories: NullAsDefault[Sequence[AbsolutePath]] = ()
    title: Lenient[str | None] = None
    updated_at: Lenient[str | None] = None
    archived: Lenient[bool | None] = None  # UNSTABLE


class ListSessionsResponse(Wire):
    """A page of sessions, and where the next one starts."""

    sessions: LenientItems[Sequence[SessionInfo]]
    next_cursor: SessionListCursor | None = None


class PromptRequest(Wire):
    """A prompt of the user: at least one block."""

    session_id: SessionId
    prompt: Annotated[Sequence[ContentBlock], Meta(min_length=1)]


class PromptResponse(Wire):
    """The prompt is accepted, as the message of this id. A `state_update` tells of its end."""

    message_id: MessageId


class CancelSessionNotification(Wire):
    """Stop what the session is doing in the foreground."""

    session_id: SessionId


class CancelToolCallRequest(Wire):
    """Stop one tool call, and nothing else."""

    session_id: SessionId
    tool_call_id: ToolCallId


class CancelToolCallResponse(Wire):
    """The call is being stopped; a `tool_call_update` reports its end."""


class CancelTerminalRequest(Wire):
    """Stop what runs in one terminal."""

    session_id: SessionId
    terminal_id: TerminalId


class CancelTerminalResponse(Wire):
    """The command is being stopped; a `terminal_update` reports its end."""


class CancelRequestNotification(Wire):
    """Stop working on a request; either side may send it."""

    request_id: RequestId
