"""Sessions: made, opened again, listed, prompted, ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from protocol.codec.marks import Lenient, LenientItems, NullAsDefault
from protocol.codec.open_union import OpenUnion
from protocol.v1.base import RequestId, SessionId, UInt64, Wire
from protocol.v1.config_options import SessionConfigOption, SessionModeState
from protocol.v1.content import ContentBlock

StopReason: TypeAlias = Literal[
    "end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"
]
# UNSTABLE: "append", "override", or a word that later versions add.
SystemPromptMode: TypeAlias = str
# UNSTABLE: "exclude", "include", "only", or a word that later versions add.
SessionArchiveFilter: TypeAlias = str


class HttpHeader(Wire, frozen=True, kw_only=True):
    """A header to send with each HTTP request."""

    name: str
    value: str


class EnvVariable(Wire, frozen=True, kw_only=True):
    """An environment variable to set."""

    name: str
    value: str


class McpServer(OpenUnion):
    """An MCP server to use: `McpServerStdio`, `McpServerHttp`, `McpServerSse` or `McpServerAcp`.

    The last one is UNSTABLE, and in `protocol.v1.mcp`.
    """

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its type; without one it is a program on stdio."""
        match value.get("type", "stdio"):
            case "http":
                return McpServerHttp
            case "sse":
                return McpServerSse
            case "stdio":
                return McpServerStdio
            case "acp":
                from protocol.v1.mcp import McpServerAcp  # noqa: PLC0415 - rare, and not at start

                return McpServerAcp
            case _:
                raise ValueError("type: expected acp, http, sse or stdio")


class McpServerHttp(Wire, McpServer, frozen=True, kw_only=True, tag_field="type", tag="http"):
    """An MCP server behind streamable HTTP."""

    name: str
    url: str
    headers: NullAsDefault[Sequence[HttpHeader]]


class McpServerSse(Wire, McpServer, frozen=True, kw_only=True, tag_field="type", tag="sse"):
    """An MCP server behind HTTP with server-sent events."""

    name: str
    url: str
    headers: NullAsDefault[Sequence[HttpHeader]]


class McpServerStdio(Wire, McpServer, frozen=True, kw_only=True):
    """An MCP server that is a program to start."""

    name: str
    command: str
    args: NullAsDefault[Sequence[str]]
    env: NullAsDefault[Sequence[EnvVariable]]


class SystemPrompt(OpenUnion):
    """UNSTABLE. What the client adds to the agent's instructions, or puts in their place.

    There is one variant, `system_prompt.GivenSystemPrompt`. A struct here would make every start
    pay for the decoding of content blocks, with the first `session/new`.
    """

    __slots__ = ()

    mode: SystemPromptMode
    content: Sequence[ContentBlock]

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """The only one; modes not known yet are told apart by the agent, which refuses them."""
        del value
        from protocol.v1.system_prompt import GivenSystemPrompt  # noqa: PLC0415 - as it says above

        return GivenSystemPrompt


class NewSessionRequest(Wire, frozen=True, kw_only=True):
    """Make a session in an absolute folder."""

    cwd: str
    mcp_servers: NullAsDefault[Sequence[McpServer]]
    additional_directories: NullAsDefault[Sequence[str]] = ()
    system_prompt: SystemPrompt | None = None  # UNSTABLE


class NewSessionResponse(Wire, frozen=True, kw_only=True):
    """The new session and its settings."""

    session_id: SessionId
    modes: Lenient[SessionModeState | None] = None
    config_options: LenientItems[Sequence[SessionConfigOption] | None] = None


class LoadSessionRequest(Wire, frozen=True, kw_only=True):
    """Open a session again and replay it."""

    session_id: SessionId
    cwd: str
    mcp_servers: NullAsDefault[Sequence[McpServer]]
    additional_directories: NullAsDefault[Sequence[str]] = ()
    system_prompt: SystemPrompt | None = None  # UNSTABLE


class LoadSessionResponse(Wire, frozen=True, kw_only=True):
    """The session was replayed; its settings."""

    modes: Lenient[SessionModeState | None] = None
    config_options: LenientItems[Sequence[SessionConfigOption] | None] = None


class ResumeSessionRequest(Wire, frozen=True, kw_only=True):
    """Open a session again without a replay."""

    session_id: SessionId
    cwd: str
    additional_directories: NullAsDefault[Sequence[str]] = ()
    mcp_servers: NullAsDefault[Sequence[McpServer]] = ()
    system_prompt: SystemPrompt | None = None  # UNSTABLE


class ResumeSessionResponse(Wire, frozen=True, kw_only=True):
    """The session is open; its settings."""

    modes: Lenient[SessionModeState | None] = None
    config_options: LenientItems[Sequence[SessionConfigOption] | None] = None


class ListSessionsRequest(Wire, frozen=True, kw_only=True):
    """List sessions, of one folder where `cwd` is given, from `cursor` on."""

    cwd: str | None = None
    cursor: str | None = None
    archived: SessionArchiveFilter | None = None  # UNSTABLE


class SessionInfo(Wire, frozen=True, kw_only=True):
    """A session in a list; `updated_at` in ISO 8601."""

    session_id: SessionId
    cwd: str
    additional_directories: LenientItems[Sequence[str]] = ()
    title: Lenient[str | None] = None
    updated_at: Lenient[str | None] = None
    archived: Lenient[bool | None] = None  # UNSTABLE


class ListSessionsResponse(Wire, frozen=True, kw_only=True):
    """A page of sessions, and where the next one starts."""

    sessions: LenientItems[Sequence[SessionInfo]]
    next_cursor: Lenient[str | None] = None


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


class PromptRequest(Wire, frozen=True, kw_only=True):
    """What the user says to the agent."""

    session_id: SessionId
    prompt: Sequence[ContentBlock]


class Usage(Wire, frozen=True, kw_only=True):
    """UNSTABLE. Tokens that were used; those with a None are not counted apart."""

    total_tokens: UInt64
    input_tokens: UInt64
    output_tokens: UInt64
    thought_tokens: Lenient[UInt64 | None] = None
    cached_read_tokens: Lenient[UInt64 | None] = None
    cached_write_tokens: Lenient[UInt64 | None] = None


class PromptResponse(Wire, frozen=True, kw_only=True):
    """The turn is over, and why."""

    stop_reason: StopReason
    usage: Lenient[Usage | None] = None  # UNSTABLE


class CancelNotification(Wire, frozen=True, kw_only=True):
    """Stop the session's turn."""

    session_id: SessionId


class CancelRequestNotification(Wire, frozen=True, kw_only=True):
    """Stop working on a request; either side may send it."""

    request_id: RequestId
