"""The start of a connection: what both sides can do, the version, and authentication.

A capability that is None is not there; an empty object is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from msgspec import field

from protocol.codec.tolerance import Lenient, LenientItems, NullAsDefault, OpenUnion, UnknownVariant
from protocol.shared.types import (
    AuthMethodId,
    AuthStatusCapabilities,
    ElicitationCapabilities,
    EnvVariable,
    Implementation,
    ProtocolVersion,
    ProvidersCapabilities,
    SessionAdditionalDirectoriesCapabilities,
    SessionArchiveCapabilities,
    SessionDeleteCapabilities,
    SessionForkCapabilities,
    SessionId,
    SessionStatusCapabilities,
    SessionSystemPromptCapabilities,
    SessionTitleCapabilities,
    Wire,
)


class PromptImageCapabilities(Wire):
    """A prompt may have pictures."""


class PromptAudioCapabilities(Wire):
    """A prompt may have sounds."""


class PromptEmbeddedContextCapabilities(Wire):
    """A prompt may have resources with their bodies."""


class PromptCapabilities(Wire):
    """Which content a prompt may have beyond text and links."""

    image: Lenient[PromptImageCapabilities | None] = None
    audio: Lenient[PromptAudioCapabilities | None] = None
    embedded_context: Lenient[PromptEmbeddedContextCapabilities | None] = None


class McpStdioCapabilities(Wire):
    """The agent starts MCP servers that are programs."""


class McpHttpCapabilities(Wire):
    """The agent reaches MCP servers over streamable HTTP."""


class McpAcpCapabilities(Wire):
    """UNSTABLE. The agent reaches MCP servers through `mcp/message`."""


class McpCapabilities(Wire):
    """Which transports to MCP servers the agent has."""

    stdio: Lenient[McpStdioCapabilities | None] = None
    http: Lenient[McpHttpCapabilities | None] = None
    acp: Lenient[McpAcpCapabilities | None] = None  # UNSTABLE


class SessionCapabilities(Wire):
    """The agent has sessions, and what it can do with them beyond what every agent can."""

    prompt: Lenient[PromptCapabilities | None] = None
    mcp: Lenient[McpCapabilities | None] = None
    delete: Lenient[SessionDeleteCapabilities | None] = None
    additional_directories: Lenient[SessionAdditionalDirectoriesCapabilities | None] = None
    # UNSTABLE from here on.
    system_prompt: Lenient[SessionSystemPromptCapabilities | None] = None
    fork: Lenient[SessionForkCapabilities | None] = None
    archive: Lenient[SessionArchiveCapabilities | None] = None
    status: Lenient[SessionStatusCapabilities | None] = None
    title: Lenient[SessionTitleCapabilities | None] = None


class AgentAuthCapabilities(Wire):
    """The agent has `auth/login` and `auth/logout`, and what more it can do there."""

    status: Lenient[AuthStatusCapabilities | None] = None  # UNSTABLE


class AgentCapabilities(Wire):
    """What the agent can do."""

    session: Lenient[SessionCapabilities | None] = None
    auth: Lenient[AgentAuthCapabilities | None] = None
    providers: Lenient[ProvidersCapabilities | None] = None  # UNSTABLE


class TerminalAuthCapabilities(Wire):
    """The client can run the agent in a terminal for a login."""


class ClientAuthCapabilities(Wire):
    """Which ways to authenticate the client offers."""

    terminal: Lenient[TerminalAuthCapabilities | None] = None


class ClientCapabilities(Wire):
    """What the client can do."""

    auth: Lenient[ClientAuthCapabilities | None] = None
    elicitation: Lenient[ElicitationCapabilities | None] = None


class AuthMethod(OpenUnion):
    """A way to authenticate: in a terminal, by the agent itself, or one not known yet."""

    __slots__ = ()


class AuthMethodTerminal(Wire, AuthMethod, tag="terminal"):
    """The client runs the agent in a terminal, with these arguments and variables added."""

    method_id: AuthMethodId
    name: str
    description: Lenient[str | None] = None
    args: NullAsDefault[Sequence[str]] = ()
    env: NullAsDefault[Sequence[EnvVariable]] = ()


class AuthMethodAgent(Wire, AuthMethod, tag="agent"):
    """The agent authenticates by itself when it is asked to log in."""

    method_id: AuthMethodId
    name: str
    description: Lenient[str | None] = None


class OtherAuthMethod(UnknownVariant, AuthMethod):
    """A way not known yet."""

    __slots__ = ()
    required_strings = ("methodId", "name")


class InitializeRequest(Wire):
    """The client's first request: the newest version it speaks, what it is, what it can do."""

    protocol_version: ProtocolVersion
    info: Implementation
    capabilities: Lenient[ClientCapabilities] = field(default_factory=ClientCapabilities)


class InitializeResponse(Wire):
    """The version that both will speak, what the agent is, and what it can do."""

    protocol_version: ProtocolVersion
    info: Implementation
    capabilities: Lenient[AgentCapabilities] = field(default_factory=AgentCapabilities)
    auth_methods: LenientItems[Sequence[AuthMethod]] = ()


class LoginAuthRequest(Wire):
    """Authenticate with one of the agent's methods."""

    method_id: AuthMethodId


class LoginAuthResponse(Wire):
    """The user is authenticated."""


class LogoutAuthRequest(Wire):
    """Forget the authentication."""


class LogoutAuthResponse(Wire):
    """The authentication is removed."""


class UnsupportedProtocolVersionErrorData(Wire):
    """Of -32022: the version that was asked for, and those that are spoken."""

    requested: ProtocolVersion
    supported: Sequence[ProtocolVersion]


class SessionNotFoundErrorData(Wire):
    """Of -32002: the session that there is none of."""

    session_id: SessionId


ErrorData: TypeAlias = Any  # one of the two, or whatever the sender likes
