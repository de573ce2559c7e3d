"""What the two sides can do. A capability that is None is not there; an empty object is."""

from __future__ import annotations

from msgspec import field

from protocol.codec.marks import Lenient
from protocol.v1.base import Bare, Wire


class PromptCapabilities(Wire, frozen=True, kw_only=True):
    """Which content a prompt may have beyond text and links."""

    image: Lenient[bool] = False
    audio: Lenient[bool] = False
    embedded_context: Lenient[bool] = False


class McpCapabilities(Wire, frozen=True, kw_only=True):
    """Which transports to MCP servers the agent has beyond stdio."""

    http: Lenient[bool] = False
    sse: Lenient[bool] = False
    acp: Lenient[bool] = False  # UNSTABLE


class SessionListCapabilities(Wire, frozen=True, kw_only=True):
    """The agent has `session/list`."""


class SessionDeleteCapabilities(Wire, frozen=True, kw_only=True):
    """The agent has `session/delete`."""


class SessionAdditionalDirectoriesCapabilities(Wire, frozen=True, kw_only=True):
    """The agent takes further folders for a session."""


class SessionResumeCapabilities(Wire, frozen=True, kw_only=True):
    """The agent has `session/resume`."""


class SessionCloseCapabilities(Wire, frozen=True, kw_only=True):
    """The agent has `session/close`."""


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
    """What the agent can do with sessions beyond making and prompting them."""

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


class LogoutCapabilities(Wire, frozen=True, kw_only=True):
    """The agent has `logout`."""


class AuthStatusCapabilities(Wire, frozen=True, kw_only=True):
    """UNSTABLE. The agent has `auth/status`."""


class AgentAuthCapabilities(Wire, frozen=True, kw_only=True):
    """What the agent can do about authentication."""

    logout: Lenient[LogoutCapabilities | None] = None
    status: Lenient[AuthStatusCapabilities | None] = None  # UNSTABLE


class ProvidersCapabilities(Wire, frozen=True, kw_only=True):
    """UNSTABLE. The agent has `providers/list`, `providers/set` and `providers/disable`."""


class AgentCapabilities(Wire, frozen=True, kw_only=True):
    """What the agent can do."""

    load_session: Lenient[bool] = False
    prompt_capabilities: Lenient[PromptCapabilities] = field(default_factory=PromptCapabilities)
    mcp_capabilities: Lenient[McpCapabilities] = field(default_factory=McpCapabilities)
    session_capabilities: Lenient[SessionCapabilities] = field(default_factory=SessionCapabilities)
    auth: Lenient[AgentAuthCapabilities] = field(default_factory=AgentAuthCapabilities)
    providers: Lenient[ProvidersCapabilities | None] = None  # UNSTABLE


class FileSystemCapabilities(Wire, frozen=True, kw_only=True):
    """Which file methods the client answers."""

    read_text_file: Lenient[bool] = False
    write_text_file: Lenient[bool] = False


class CompactionCapabilities(Bare, frozen=True, kw_only=True):
    """The client shows compactions."""


class NoticeCapabilities(Bare, frozen=True, kw_only=True):
    """The client shows notices."""


class BooleanConfigOptionCapabilities(Wire, frozen=True, kw_only=True):
    """The client shows options that are on or off."""


class SessionConfigOptionsCapabilities(Wire, frozen=True, kw_only=True):
    """Which kinds of options the client shows beyond a choice of values."""

    boolean: Lenient[BooleanConfigOptionCapabilities | None] = None


class ClientSessionCapabilities(Wire, frozen=True, kw_only=True):
    """Which session updates the client understands beyond the basic ones."""

    compaction: Lenient[CompactionCapabilities | None] = None
    config_options: Lenient[SessionConfigOptionsCapabilities | None] = None
    notices: Lenient[NoticeCapabilities | None] = None


class AuthCapabilities(Wire, frozen=True, kw_only=True):
    """Which ways to authenticate the client offers."""

    terminal: Lenient[bool] = False


class ElicitationFormCapabilities(Wire, frozen=True, kw_only=True):
    """The client shows forms."""


class ElicitationUrlCapabilities(Wire, frozen=True, kw_only=True):
    """The client opens addresses for the user."""


class ElicitationCapabilities(Wire, frozen=True, kw_only=True):
    """How the client can ask the user something."""

    form: Lenient[ElicitationFormCapabilities | None] = None
    url: Lenient[ElicitationUrlCapabilities | None] = None


class SubagentCapabilities(Wire, frozen=True, kw_only=True):
    """UNSTABLE. The client shows sessions of subagents."""


class PlanCapabilities(Wire, frozen=True, kw_only=True):
    """UNSTABLE. The client shows plans with ids, and all kinds of them."""


class ClientCapabilities(Wire, frozen=True, kw_only=True):
    """What the client can do."""

    fs: Lenient[FileSystemCapabilities] = field(default_factory=FileSystemCapabilities)
    terminal: Lenient[bool] = False
    session: Lenient[ClientSessionCapabilities | None] = None
    auth: Lenient[AuthCapabilities] = field(default_factory=AuthCapabilities)
    elicitation: Lenient[ElicitationCapabilities | None] = None
    # UNSTABLE from here on.
    subagents: Lenient[SubagentCapabilities | None] = None
    plan: Lenient[PlanCapabilities | None] = None
