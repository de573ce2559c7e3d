"""The types of the configuration file, from which its JSON Schema is generated.

Every value has a default that suits most people; an empty file is a good configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from acp_agent.config.checkpoint_types import CheckpointsConfig
from acp_agent.config.hook_types import HookConfig, HookEvent
from acp_agent.config.mcp_types import McpServerConfig, Variable
from acp_agent.config.model_types import (
    Dollars,
    HttpAddress,
    ModelConfig,
    ModelRef,
    ProviderConfig,
    ProviderName,
    ThoughtLevel,
)
from acp_agent.config.policy_types import (
    DraftFolder,
    ModeName,
    PermissionsConfig,
    Table,
    TrustedFolder,
)
from acp_agent.config.sandbox_types import SandboxConfig

DefinitionModel = Annotated[
    str, Meta(pattern=r"^(small$(?!\n)|[^/\s]+/\S)", examples=["small", "openai/gpt-5-mini"])
]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]  # every wait has a limit
Tokens = Annotated[int, Meta(ge=0, le=1_000_000_000_000)]
Rounds = Annotated[int, Meta(ge=0, le=40)]


# Environment variables that override the file, and the keys that they set.
VARIABLES: Mapping[str, tuple[str, ...]] = {
    "ACP_AGENT_MODEL": ("model",),
    "ACP_AGENT_MODE": ("mode",),
    "ACP_AGENT_AGENT": ("agent",),
    "ACP_AGENT_THOUGHT_LEVEL": ("thought_level",),
    "ACP_AGENT_LANGUAGE": ("language",),
    "ACP_AGENT_LOG_LEVEL": ("log", "level"),
    "ACP_AGENT_SANDBOX": ("sandbox", "enabled"),
}

# The values of a variable for a boolean key.
BOOLEANS: Mapping[str, bool] = {"true": True, "false": False}


class LimitsConfig(Table, frozen=True, kw_only=True):
    """How far a turn may go."""

    max_model_requests: Annotated[
        int, Meta(ge=1, le=10_000, description="Model requests in one turn.")
    ] = 100
    max_retries: Annotated[int, Meta(ge=0, le=20, description="Further attempts of a request.")] = 4
    first_byte_timeout: Annotated[
        Seconds, Meta(description="How long a provider may take to begin its answer.")
    ] = 120.0
    stall_timeout: Annotated[Seconds, Meta(description="How long a begun answer may pause.")] = 60.0
    command_timeout: Annotated[
        Seconds, Meta(description="How long a command may run unless the model asks for more.")
    ] = 60.0
    mcp_connect_timeout: Annotated[
        Seconds, Meta(description="How long an MCP server may take until it can be used.")
    ] = 30.0
    mcp_ready_timeout: Annotated[
        Seconds | None,
        Meta(description="How long a turn waits for MCP servers that still connect."),
    ] = None
    mcp_call_timeout: Annotated[
        Seconds, Meta(description="How long a call of an MCP server's tool may run.")
    ] = 300.0
    mcp_restart_delay: Annotated[
        Seconds, Meta(description="How long an MCP server that ended rests, the first time.")
    ] = 0.5
    max_concurrent_calls: Annotated[
        int, Meta(ge=1, le=1_000, description="Calls of one turn that run at the same time.")
    ] = 8
    max_calls_all_sessions: Annotated[
        int, Meta(ge=1, le=10_000, description="Calls that run at the same time in all sessions.")
    ] = 32
    max_turns_all_sessions: Annotated[
        int, Meta(ge=1, le=10_000, description="Turns that run at the same time in all sessions.")
    ] = 16
    max_background_commands: Annotated[
        int,
        Meta(
            ge=0,
            le=100,
            description="Background commands that run at the same time in a session. 0: none may.",
        ),
    ] = 8
    refusal_ends_turn: Annotated[
        bool, Meta(description="Whether a call that the user refuses ends the turn.")
    ] = False
    loop_warn_after: Annotated[
        Rounds, Meta(description="Rounds of a loop after which the model gets a warning. 0: never.")
    ] = 3
    loop_ask_after: Annotated[
        Rounds, Meta(description="Rounds of a loop after which the user is asked. 0: never.")
    ] = 5
    loop_stop_after: Annotated[
        Rounds, Meta(description="Rounds of a loop after which the turn is ended. 0: never.")
    ] = 8


class BudgetConfig(Table, frozen=True, kw_only=True):
    """What may be spent; what is not given has no limit."""

    turn_tokens: Annotated[Tokens | None, Meta(description="Tokens of one turn.")] = None
    turn_cost: Annotated[Dollars | None, Meta(description="US dollars of one turn.")] = None
    session_tokens: Annotated[Tokens | None, Meta(description="Tokens of one session.")] = None
    session_cost: Annotated[Dollars | None, Meta(description="US dollars of one session.")] = None
    day_tokens: Annotated[Tokens | None, Meta(description="Tokens of one day, all sessions.")] = (
        None
    )
    day_cost: Annotated[
        Dollars | None, Meta(description="US dollars of one day, all sessions.")
    ] = None
    warn_at: Annotated[
        float, Meta(ge=0.1, le=1, description="The part of a budget at which you are warned.")
    ] = 0.8


class ContextConfig(Table, frozen=True, kw_only=True):
    """What happens when a conversation has become too long for the model."""

    threshold: Annotated[
        float,
        Meta(ge=0.1, le=0.95, description="How full the model's window may get, as a part of it."),
    ] = 0.85
    reserved_tokens: Annotated[
        Annotated[int, Meta(ge=0, le=10_000_000)] | None,
        Meta(description="Tokens of the window that are kept free for the answer."),
    ] = None
    max_result_characters: Annotated[
        int, Meta(ge=200, le=50_000, description="What is kept of the old results of calls.")
    ] = 2_000
    max_turns: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000)] | None,
        Meta(description="The most turns that the model is sent, however short they are."),
    ] = None
    compaction: Annotated[
        bool, Meta(description="Have what no longer fits summed up, instead of leaving it out.")
    ] = True
    compaction_timeout: Annotated[Seconds, Meta(description="How long summing up may take.")] = (
        180.0
    )


class EditorConfig(Table, frozen=True, kw_only=True):
    """How the agent uses what the editor offers."""

    terminals: Annotated[
        bool, Meta(description="Run commands in the editor's terminals where it offers them.")
    ] = False


class DefinitionConfig(Table, frozen=True, kw_only=True):
    """How a skill or an agent is run, whatever its file says."""

    model: Annotated[
        DefinitionModel | None,
        Meta(description="The model, as provider/name, or `small` for the small one."),
    ] = None
    thought_level: Annotated[ThoughtLevel | None, Meta(description="How much it reasons.")] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None,
        Meta(description="How much chance there is in the model's answers."),
    ] = None
    max_output_tokens: Annotated[
        Annotated[int, Meta(ge=1, le=100_000_000)] | None,
        Meta(description="Longest answer in tokens."),
    ] = None
    enabled: Annotated[bool, Meta(description="Whether it can be used at all.")] = True


class AgentConfig(DefinitionConfig, frozen=True, kw_only=True):
    """How an agent is run: one that has a file or is bundled, or, with a command, a program."""

    command: Annotated[
        str, Meta(description="A program that speaks the Agent Client Protocol, as an agent.")
    ] = ""
    args: Annotated[list[str], Meta(description="The program's arguments.")] = []
    env: Annotated[
        dict[str, str], Meta(description="Variables of its environment, with their values.")
    ] = {}
    env_vars: Annotated[
        list[Variable],
        Meta(description="Variables that look like credentials and that it gets all the same."),
    ] = []
    description: Annotated[
        str, Meta(description="What the program is good at, for the model that chooses.")
    ] = ""
    mode: Annotated[
        str, Meta(description="The program's own mode, by its id. Without it: that it begins in.")
    ] = ""
    mcp_servers: Annotated[
        list[str],
        Meta(
            description="MCP servers of the session that the program gets, by name; `*` for all "
            "that can be passed on."
        ),
    ] = []
    timeout: Annotated[Seconds, Meta(description="How long the program may take for a task.")] = (
        3_600.0
    )


class LanguageServerConfig(Table, frozen=True, kw_only=True):
    """A language server: one of the known ones changed, or one of your own."""

    enabled: Annotated[bool, Meta(description="Whether it is used.")] = True
    command: Annotated[
        list[str],
        Meta(
            description="The program and its arguments. A path with a slash starts at the "
            "project's root."
        ),
    ] = []
    extensions: Annotated[
        list[Annotated[str, Meta(pattern=r"^\.[^/\s]+$(?!\n)", examples=[".py"])]],
        Meta(description="What the names of its files end in."),
    ] = []
    language: Annotated[
        str | None,
        Meta(description="The language's id in the protocol; without it the server's name."),
    ] = None
    root_markers: Annotated[
        list[str], Meta(description="Files that make a folder the root of a project.")
    ] = []
    options: Annotated[
        dict[str, Any], Meta(description="What it is given at its start (initializationOptions).")
    ] = {}
    settings: Annotated[
        dict[str, Any], Meta(description="The settings that it can request, by section.")
    ] = {}


class WebSearchConfig(Table, frozen=True, kw_only=True):
    """Searching the web."""

    service: Annotated[
        Literal["auto", "off", "provider", "brave", "searxng", "tavily"],
        Meta(
            description="Who searches. provider: the model's own provider, without asking. auto: "
            "the provider where it can, else the service that has an address or a key."
        ),
    ] = "auto"
    base_url: Annotated[
        HttpAddress | None, Meta(description="Where a SearXNG answers, or another address of it.")
    ] = None


class LogConfig(Table, frozen=True, kw_only=True):
    """The log file."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="The least important records that are kept."),
    ] = "info"


class Config(Table, frozen=True, kw_only=True):
    """acp-agent's configuration, a TOML file."""

    model: Annotated[
        ModelRef | None,
        Meta(description="The model to use, as provider/name."),
    ] = None
    fallback_models: Annotated[
        list[ModelRef],
        Meta(description="The models to ask, in this order, when the chosen one cannot be had."),
    ] = []
    small_model: Annotated[
        ModelRef | None,
        Meta(description="A cheaper model for side work: summaries and titles."),
    ] = None
    vision_model: Annotated[
        ModelRef | None,
        Meta(description="The model that looks at pictures where the session's cannot."),
    ] = None
    embedding_model: Annotated[
        ModelRef | None,
        Meta(description="The model with which notes and sessions are found by meaning, too."),
    ] = None
    titles: Annotated[
        Literal["model", "prompt"],
        Meta(description="Who makes titles: the small model, or the first words of the user."),
    ] = "model"
    mode: Annotated[
        ModeName, Meta(description="The permission mode that new sessions start in.")
    ] = "ask"
    agent: Annotated[
        str | None, Meta(description="The agent that new sessions run as, such as review.")
    ] = None
    draft_folder: Annotated[
        DraftFolder, Meta(description="Where the mode draft writes new files.")
    ] = "drafts"
    thought_level: Annotated[
        ThoughtLevel | None,
        Meta(description="How much the model reasons, where it lets you choose."),
    ] = None
    language: Annotated[
        Literal["auto", "en", "zh"],
        Meta(description="The language of titles and messages. auto: the system's."),
    ] = "auto"
    steering: Annotated[
        Literal["steer", "queue"],
        Meta(description="What becomes of a prompt while a turn runs: it joins in, or waits."),
    ] = "steer"
    providers: Annotated[
        dict[ProviderName, ProviderConfig], Meta(description="Keyed by name.")
    ] = {}
    models: Annotated[dict[ModelRef, ModelConfig], Meta(description="Keyed by provider/name.")] = {}
    skills: Annotated[dict[str, DefinitionConfig], Meta(description="Keyed by name.")] = {}
    bundled_skills: Annotated[
        bool | list[str], Meta(description="Offer the skills that are bundled: all, or these.")
    ] = True
    agents: Annotated[dict[str, AgentConfig], Meta(description="Keyed by name.")] = {}
    bundled_agents: Annotated[
        bool | list[str], Meta(description="Offer the agents that are bundled: all, or these.")
    ] = True
    hooks: Annotated[
        dict[HookEvent, list[HookConfig]], Meta(description="What runs at events, keyed by these.")
    ] = {}
    permissions: PermissionsConfig = PermissionsConfig()
    trusted_folders: Annotated[
        list[TrustedFolder],
        Meta(description="What is in these folders is trusted without a question."),
    ] = []
    sandbox: SandboxConfig = SandboxConfig()
    limits: LimitsConfig = LimitsConfig()
    budget: BudgetConfig = BudgetConfig()
    context: ContextConfig = ContextConfig()
    checkpoints: CheckpointsConfig = CheckpointsConfig()
    editor: EditorConfig = EditorConfig()
    use_language_servers: Annotated[
        bool, Meta(description="Start language servers that are installed, and report problems.")
    ] = True
    language_servers: Annotated[
        dict[str, LanguageServerConfig], Meta(description="Keyed by name.")
    ] = {}
    mcp_servers: Annotated[dict[str, McpServerConfig], Meta(description="Keyed by name.")] = {}
    web_search: WebSearchConfig = WebSearchConfig()
    http_requests: Annotated[
        bool, Meta(description="Give the model the tool http_request, for requests of any method.")
    ] = False
    memory: Annotated[
        bool, Meta(description="Keep notes for later sessions, in folders that you trust.")
    ] = True
    log: LogConfig = LogConfig()

    @property
    def key_variables(self) -> list[str]:
        """The environment variables that have keys of the user's own providers."""
        providers = self.providers.values()
        return [provider.api_key_env for provider in providers if provider.api_key_env]
