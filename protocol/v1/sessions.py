"""Sessions: their MCP servers, modes and options, how they are opened and listed, prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from protocol.codec.tolerance import Lenient, LenientItems, NullAsDefault, OpenUnion
from protocol.shared.types import (
    EnvVariable,
    HttpHeader,
    McpServerAcpId,
    SessionArchiveFilter,
    SessionConfigGroupId,
    SessionConfigId,
    SessionConfigValueId,
    SessionId,
    SessionModeId,
    StopReason,
    SystemPromptMode,
    Usage,
    Wire,
)
from protocol.v1.content import ContentBlock

RequestId: TypeAlias = int | str | None


class McpServer(OpenUnion):
    """An MCP server to use: `McpServerStdio`, `McpServerHttp`, `McpServerSse` or `McpServerAcp`."""

    __slots__ = ()

    @classmethod
    def find_variant(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its type; without one it is a program on stdio."""
        match value.get("type", "stdio"):
            case "stdio":
                return McpServerStdio
            case "http":
                return McpServerHttp
            case "sse":
                return McpServerSse
            case "acp":
                return McpServerAcp
            case _:
                raise ValueError("type: expected acp, http, sse or stdio")


class McpServerStdio(Wire, McpServer):
    """An MCP server that is a program to start."""

    name: str
    command: str
    args: NullAsDefault[Sequence[str]]
    env: NullAsDefault[Sequence[EnvVariable]]


class McpServerHttp(Wire, McpServer, tag="http"):
    """An MCP server behind streamable HTTP."""

    name: str
    url: str
    headers: NullAsDefault[Sequence[HttpHeader]]


class McpServerSse(Wire, McpServer, tag="sse"):
    """An MCP server behind HTTP with server-sent events."""

    name: str
    url: str
    headers: NullAsDefault[Sequence[HttpHeader]]


class McpServerAcp(Wire, McpServer, tag="acp"):
    """UNSTABLE. An MCP server of the client's, which is reached through `mcp/message`."""

    name: str
    server_id: McpServerAcpId


class SystemPrompt(OpenUnion):
    """UNSTABLE. What the client adds to the agent's instructions, or puts in their place.

    A struct would make every start pay for the decoding of content blocks, with the first
    `session/new`. So it is a union with one variant.
    """

    __slots__ = ()

    mode: SystemPromptMode
    content: Sequence[ContentBlock]

    @classmethod
    def find_variant(cls, value: dict[str, Any]) -> type[OpenUnion]:  # noqa: ARG003 - there is one
        """Return the only one. The agent refuses modes that it does not know."""
        return GivenSystemPrompt


class GivenSystemPrompt(Wire, SystemPrompt):
    """UNSTABLE. Instructions that are added to the agent's (`append`) or replace them."""

    mode: SystemPromptMode
    content: Sequence[ContentBlock]


class SessionMode(Wire):
    """A mode that a session can be in."""

    id: SessionModeId
    name: str
    description: Lenient[str | None] = None


class SessionModeState(Wire):
    """All modes of a session and the one it is in."""

    current_mode_id: SessionModeId
    available_modes: LenientItems[Sequence[SessionMode]]


# "mode", "model", "model_config", "thought_level", or a word that later versions add.
SessionConfigOptionCategory: TypeAlias = str


class SessionConfigSelectEntry(OpenUnion):
    """A value to choose, `SessionConfigSelectOption`, or a `SessionConfigSelectGroup` of them."""

    __slots__ = ()

    @classmethod
    def find_variant(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """Return a group where it is named as one, else an option."""
        return SessionConfigSelectGroup if "group" in value else SessionConfigSelectOption


class SessionConfigSelectOption(Wire, SessionConfigSelectEntry):
    """One value of an option."""

    value: SessionConfigValueId
    name: str
    description: Lenient[str | None] = None


class SessionConfigSelectGroup(Wire, SessionConfigSelectEntry):
    """Values of an option under one heading."""

    group: SessionConfigGroupId
    name: str
    options: LenientItems[Sequence[SessionConfigSelectOption]]


SessionConfigSelectOptions: TypeAlias = Sequence[SessionConfigSelectEntry]


class _ConfigOption(Wire, tag_field="type"):
    id: SessionConfigId
    name: str
    description: Lenient[str | None] = None
    category: Lenient[SessionConfigOptionCategory | None] = None


class SessionConfigSelect(_ConfigOption, tag="select"):
    """An option with one value out of several; all are options or all are groups."""

    current_value: SessionConfigValueId
    options: SessionConfigSelectOptions

    def __post_init__(self) -> None:
        groups = sum(isinstance(entry, SessionConfigSelectGroup) for entry in self.options)
        if groups not in {0, len(self.options)}:
            raise ValueError("options: must be all groups or none")


class SessionConfigBoolean(_ConfigOption, tag="boolean"):
    """An option that is on or off."""

    current_value: bool


SessionConfigOption: TypeAlias = SessionConfigSelect | SessionConfigBoolean


class SetSessionModeRequest(Wire):
    """Put a session into a mode."""

    session_id: SessionId
    mode_id: SessionModeId


class SetSessionModeResponse(Wire):
    """The session is in the mode."""


class SetSessionConfigOptionRequest(Wire):
    """Give an option a value: a value's id, or a truth value with the type `boolean`."""

    session_id: SessionId
    config_id: SessionConfigId
    value: bool | SessionConfigValueId
    type: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.value, bool) and self.type != "boolean":
            raise ValueError('value: expected string, got boolean without type "boolean"')


class SetSessionConfigOptionResponse(Wire):
    """All options of the session, as they are now."""

    config_options: LenientItems[Sequence[SessionConfigOption]]


class NewSessionRequest(Wire):
    """Create a session in a folder, given by its absolute path."""

    cwd: str
    mcp_servers: NullAsDefault[Sequence[McpServer]]
    additional_directories: NullAsDefault[Sequence[str]] = ()
    system_prompt: SystemPrompt | None = None  # UNSTABLE


class NewSessionResponse(Wire):
    """The new session and its settings."""

    session_id: SessionId
    modes: Lenient[SessionModeState | None] = None
    config_options: LenientItems[Sequence[SessionConfigOption] | None] = None


class LoadSessionRequest(Wire):
    """Open a session again and replay it."""

    session_id: SessionId
    cwd: str
    mcp_servers: NullAsDefault[Sequence[McpServer]]
    additional_directories: NullAsDefault[Sequence[str]] = ()
    system_prompt: SystemPrompt | None = None  # UNSTABLE


class LoadSessionResponse(Wire):
    """The session was replayed; its settings."""

    modes: Lenient[SessionModeState | None] = None
    config_options: LenientItems[Sequence[SessionConfigOption] | None] = None


class ResumeSessionRequest(Wire):
    """Open a session again without a replay."""

    session_id: SessionId
    cwd: str
    additional_directories: NullAsDefault[Sequence[str]] = ()
    mcp_servers: NullAsDefault[Sequence[McpServer]] = ()
    system_prompt: SystemPrompt | None = None  # UNSTABLE


class ResumeSessionResponse(Wire):
    """The session is open; its settings."""

    modes: Lenient[SessionModeState | None] = None
    config_options: LenientItems[Sequence[SessionConfigOption] | None] = None


class ListSessionsRequest(Wire):
    """List sessions, of one folder where `cwd` is given, from `cursor` on."""

    cwd: str | None = None
    cursor: str | None = None
    archived: SessionArchiveFilter | None = None  # UNSTABLE


class SessionInfo(Wire):
    """A session in a list; `updated_at` in ISO 8601."""

    session_id: SessionId
    cwd: str
    additional_directories: LenientItems[Sequence[str]] = ()
    title: Lenient[str | None] = None
    updated_at: Lenient[str | None] = None
    archived: Lenient[bool | None] = None  # UNSTABLE


class ListSessionsResponse(Wire):
    """A page of sessions, and where the next one starts."""

    sessions: LenientItems[Sequence[SessionInfo]]
    next_cursor: Lenient[str | None] = None


class PromptRequest(Wire):
    """A prompt of the user."""

    session_id: SessionId
    prompt: Sequence[ContentBlock]


class PromptResponse(Wire):
    """The turn is over, and why."""

    stop_reason: StopReason
    usage: Lenient[Usage | None] = None  # UNSTABLE


class CancelNotification(Wire):
    """Stop the session's turn."""

    session_id: SessionId


class CancelRequestNotification(Wire):
    """Stop working on a request; either side may send it."""

    request_id: RequestId
