"""What the two sides can do. A capability that is None is not there; an empty object is."""

from __future__ import annotations

from protocol.codec.marks import Lenient
from protocol.v2.base import Wire


class PromptImageCapabilities(Wire, frozen=True, kw_only=True):
    """A prompt may have pictures."""


class PromptAudioCapabilities(Wire, frozen=True, kw_only=True):
    """A prompt may have sounds."""


class PromptEmbeddedContextCapabilities(Wire, frozen=True, kw_only=True):
    """A prompt may have resources with their bodies."""


class PromptCapabilities(Wire, frozen=True, kw_only=True):
    """Which content a prompt may have beyond text and links."""

    image: Lenient[PromptImageCapabilities | None] = None
    audio: Lenient[PromptAudioCapabilities | None] = None
    embedded_context: Lenient[PromptEmbeddedContextCapabilities | None] = None


class McpStdioCapabilities(Wire, frozen=True, kw_only=True):
    """The agent starts MCP servers that are programs."""


class McpHttpCapabilities(Wire, frozen=True, kw_only=True):
    """The agent reaches MCP servers over streamable HTTP."""


class McpAcpCapabilities(Wire, frozen=True, kw_only=True):
    """UNSTABLE. The agent reaches MCP servers through `mcp/message`."""


class McpCapabilities(Wire, frozen=True, kw_only=True):
    """Which transports to MCP servers the agent has."""

    stdio: Lenient[McpStdioCapabilities | None] = None
    http: Lenient[McpHttpCapabilities | None] = None
    acp: Lenient[McpAcpCapabilities | None] = None  # UNSTABLE


class SessionDeleteCapabilities(Wire, frozen=True, kw_only=True):
    """The agent has `session/delete`."""


class SessionAdditionalDirectoriesCapabilities(Wire, frozen=True, kw_only=True):
    """The agent takes further folders for a session."""


class SessionSystemPromptOverrideCapabilities(Wire, frozen=True, kw_only=True):
    """UNSTABLE. The agent takes a system prompt that replaces its own."""


class SessionSystemPromptModeCapabilities(Wire, frozen=True, kw_only=True):
    """UNSTABLE. What a client's system prompt may do beyond being appended."""

    override: Lenient[SessionSystemPromptOverrideCapabilities | None] = None


class SessionSystemPromptCapabilities(Wire, frozen=True, kw_only=True):
    """UNSTABLE. The agent takes a system prompt for a session."""

    mode: Lenient[SessionSystemPromptModeCapabilities | None] = None


class SessionForkCapabilities(Wire, frozen=True, kw_only=True):
    """UNSTABLE. The agent has `session/fork`."""


class SessionArchiveCapabilities(Wire, frozen=True, kw_only=True):
    """UNSTABLE. The agent has `session/archive` and `session/unarchive`."""


class SessionStatusCapabilities(Wire, frozen=True, kw_only=True):
    """UNSTABLE. The agent has `session/status`."""


class SessionTitleCapabilities(Wire, frozen=True, kw_only=True):
    """UNSTABLE. The agent has `session/set_title`."""


class SessionCapabilities(Wire, frozen=True, kw_only=True):
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


class AuthStatusCapabilities(Wire, frozen=True, kw_only=True):
    """UNSTABLE. The agent has `auth/status`."""


class AgentAuthCapabilities(Wire, frozen=True, kw_only=True):
    """The agent has `auth/login` and `auth/logout`, and what more it can do there."""

    status: Lenient[AuthStatusCapabilities | None] = None  # UNSTABLE


class ProvidersCapabilities(Wire, frozen=True, kw_only=True):
    """UNSTABLE. The agent has `providers/list`, `providers/set` and `providers/disable`."""


class AgentCapabilities(Wire, frozen=True, kw_only=True):
    """What the agent can do."""

    session: Lenient[SessionCapabilities | None] = None
    auth: Lenient[AgentAuthCapabilities | None] = None
    providers: Lenient[ProvidersCapabilities | None] = None  # UNSTABLE


class TerminalAuthCapabilities(Wire, frozen=True, kw_only=True):
    """The client can run the agent in a terminal for a login."""


class ClientAuthCapabilities(Wire, frozen=True, kw_only=True):
    """Which ways to authenticate the client offers."""

    terminal: Lenient[TerminalAuthCapabilities | None] = None


class ElicitationFormCapabilities(Wire, frozen=True, kw_only=True):
    """The client shows forms."""


class ElicitationUrlCapabilities(Wire, frozen=True, kw_only=True):
    """The client opens addresses for the user."""


class ElicitationCapabilities(Wire, frozen=True, kw_only=True):
    """How the client can ask the user something."""

    form: Lenient[ElicitationFormCapabilities | None] = None
    url: Lenient[ElicitationUrlCapabilities | None] = None


class ClientCapabilities(Wire, frozen=True, kw_only=True):
    """What the client can do."""

    auth: Lenient[ClientAuthCapabilities | None] = None
    elicitation: Lenient[ElicitationCapabilities | None] = None
