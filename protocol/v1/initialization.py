"""The start of a connection: what both sides can do, the version, and authentication.

A capability that is None is not there; an empty object is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import field

from protocol.codec.tolerance import Lenient, LenientItems, NullAsDefault, OpenUnion
from protocol.shared.types import (
    AuthMethodId,
    AuthStatusCapabilities,
    Bare,
    ElicitationCapabilities,
    Implementation,
    ProtocolVersion,
    ProvidersCapabilities,
    SessionAdditionalDirectoriesCapabilities,
    SessionArchiveCapabilities,
    SessionDeleteCapabilities,
    SessionForkCapabilities,
    SessionStatusCapabilities,
    SessionSystemPromptCapabilities,
    SessionTitleCapabilities,
    Wire,
)


class PromptCapabilities(Wire):
    """Which content a prompt may have beyond text and links."""

    image: Lenient[bool] = False
    audio: Lenient[bool] = False
    embedded_context: Lenient[bool] = False


class McpCapabilities(Wire):
    """Which transports to MCP servers the agent has beyond stdio."""

    http: Lenient[bool] = False
    sse: Lenient[bool] = False
    acp: Lenient[bool] = False  # UNSTABLE


class SessionListCapabilities(Wire):
    """The agent has `session/list`."""


class SessionResumeCapabilities(Wire):
    """The agent has `session/resume`."""


class SessionCloseCapabilities(Wire):
    """The agent has `session/close`."""


class SessionCapabilities(Wire):
    """What the agent can do with sessions, besides creating and prompting them."""

    list: Lenient[SessionListCapabilities | None] = None
    delete: Lenient[SessionDeleteCapabilities | None] = None
    additional_directories: Lenient[SessionAdditionalDirectoriesCapabilities | None] = None
    resume: Lenient[SessionResumeCapabilities | None] = None
    close: Lenient[SessionCloseCapabilities | None] = None
    # UNSTABLE from here on.
    system_prompt: Lenient[SessionSystemPromptCapabilities | None] = None
    fork: Lenient[SessionForkCapabilities | None] = None
    archive: Lenient[SessionArchiveCapabilities | None] = None
    status: Lenient[SessionStatusCapabilities | None] = None
    title: Lenient[SessionTitleCapabilities | None] = None


class LogoutCapabilities(Wire):
    """The agent has `logout`."""


class AgentAuthCapabilities(Wire):
    """What the agent can do about authentication."""

    logout: Lenient[LogoutCapabilities | None] = None
    status: Lenient[AuthStatusCapabilities | None] = None  # UNSTABLE


class AgentCapabilities(Wire):
    """What the agent can do."""

    load_session: Lenient[bool] = False
    prompt_capabilities: Lenient[PromptCapabilities] = field(default_factory=PromptCapabilities)
    mcp_capabilities: Lenient[McpCapabilities] = field(default_factory=McpCapabilities)
    session_capabilities: Lenient[SessionCapabilities] = field(default_factory=SessionCapabilities)
    auth: Lenient[AgentAuthCapabilities] = field(default_factory=AgentAuthCapabilities)
    providers: Lenient[ProvidersCapabilities | None] = None  # UNSTABLE


class FileSystemCapabilities(Wire):
    """Which file methods the client answers."""

    read_text_file: Lenient[bool] = False
    write_text_file: Lenient[bool] = False


class CompactionCapabilities(Bare):
    """The client shows compactions."""


class NoticeCapabilities(Bare):
    """The client shows notices."""


class BooleanConfigOptionCapabilities(Wire):
    """The client shows options that are on or off."""


class SessionConfigOptionsCapabilities(Wire):
    """Which kinds of options the client shows beyond a choice of values."""

    boolean: Lenient[BooleanConfigOptionCapabilities | None] = None


class ClientSessionCapabilities(Wire):
    """Which session updates the client understands beyond the basic ones."""

    compaction: Lenient[CompactionCapabilities | None] = None
    config_options: Lenient[SessionConfigOptionsCapabilities | None] = None
    notices: Lenient[NoticeCapabilities | None] = None


class AuthCapabilities(Wire):
    """Which ways to authenticate the client offers."""

    terminal: Lenient[bool] = False


class SubagentCapabilities(Wire):
    """UNSTABLE. The client shows sessions of subagents."""


class PlanCapabilities(Wire):
    """UNSTABLE. The client shows plans with ids, and all kinds of them."""


class ClientCapabilities(Wire):
    """What the client can do."""

    fs: Lenient[FileSystemCapabilities] = field(default_factory=FileSystemCapabilities)
    terminal: Lenient[bool] = False
    session: Lenient[ClientSessionCapabilities | None] = None
    auth: Lenient[AuthCapabilities] = field(default_factory=AuthCapabilities)
    elicitation: Lenient[ElicitationCapabilities | None] = None
    # UNSTABLE from here on.
    subagents: Lenient[SubagentCapabilities | None] = None
    plan: Lenient[PlanCapabilities | None] = None


class AuthMethod(OpenUnion):
    """A way to authenticate: `AuthMethodTerminal` or `AuthMethodAgent`."""

    __slots__ = ()

    @classmethod
    def find_variant(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its type; every type but `terminal` is the agent's own business."""
        return AuthMethodTerminal if value.get("type") == "terminal" else AuthMethodAgent


class AuthMethodTerminal(Wire, AuthMethod, tag="terminal"):
    """The client runs the agent in a terminal, with these arguments and variables added."""

    id: AuthMethodId
    name: str
    description: Lenient[str | None] = None
    args: NullAsDefault[Sequence[str]] = ()
    env: NullAsDefault[Mapping[str, str]] = field(default_factory=dict)


class AuthMethodAgent(Wire, AuthMethod):
    """The agent authenticates by itself when it is asked to. No `type` means `agent`."""

    id: AuthMethodId
    name: str
    description: Lenient[str | None] = None
    type: str | None = None


class InitializeRequest(Wire):
    """The client's first request: the newest version it speaks, and what it can do."""

    protocol_version: ProtocolVersion
    client_capabilities: Lenient[ClientCapabilities] = field(default_factory=ClientCapabilities)
    client_info: Lenient[Implementation | None] = None


class InitializeResponse(Wire):
    """The version that both will speak, and what the agent can do."""

    protocol_version: ProtocolVersion
    agent_capabilities: Lenient[AgentCapabilities] = field(default_factory=AgentCapabilities)
    auth_methods: LenientItems[Sequence[AuthMethod]] = ()
    agent_info: Lenient[Implementation | None] = None


class AuthenticateRequest(Wire):
    """Authenticate with one of the agent's methods."""

    method_id: AuthMethodId


class AuthenticateResponse(Wire):
    """The user is authenticated."""


class LogoutRequest(Wire):
    """Forget the authentication."""


class LogoutResponse(Wire):
    """The authentication is removed."""
