"""Events of a turn: requests to the model, its answers, tool calls, permissions, and the end."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from acp_agent.content import CallContent, ContentBlock, JsonObject, Location
from acp_agent.ids import CallId, MessageId, TurnId, new_message_id

StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
LoopKind = Literal["repeat", "cycle", "errors"]
LoopStep = Literal["told", "asked", "stopped"]
LoopDecision = Literal["", "go_on", "stop", "said"]
ToolKind = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
DecidedBy = Literal["user", "mode", "grant", "rule", "flag", "nobody"]
USER_CALL = "user_call"  # the `stop` of an answer that the user's own call replaces
PLAN = "plan"  # the id of the plan of the todo tool; a session has one


class Event(Struct, frozen=True, kw_only=True, tag_field="event", omit_defaults=True, gc=False):
    """Something that happened in a session.

    Events are excluded from garbage collection (`gc`): they are trees without cycles, and a session
    has thousands of them.
    """


class TurnStarted(Event, frozen=True, kw_only=True, tag="turn_started"):
    """A turn began; it contains every event until it ends."""

    turn: TurnId


class ModelAsked(Event, frozen=True, kw_only=True, tag="model_asked"):
    """The agent sent a request to the model; the answer gets the id `message`.

    `note` is the text that the agent appended to the request; the user does not see it. `continues`
    is the answer that was cut off and that this one continues.
    """

    message: MessageId
    model: str
    note: str = ""
    continues: MessageId | None = None


class AgentText(Event, frozen=True, kw_only=True, tag="agent_text"):
    """A piece of an answer."""

    message: MessageId
    text: str


class AgentThought(Event, frozen=True, kw_only=True, tag="agent_thought"):
    """A piece of the model's reasoning."""

    message: MessageId
    text: str


class ThoughtEnded(Event, frozen=True, kw_only=True, tag="thought_sealed"):
    """A block of reasoning ended; the provider requires `provider_data` back with it, unchanged."""

    message: MessageId
    provider: str
    provider_data: JsonObject = field(name="seal")


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Token counts of model requests.

    `input` counts all tokens sent, including those read from and written to a cache; `output`
    counts all tokens received, including reasoning. `searches` counts the provider's web searches.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    searches: int = 0

    def __bool__(self) -> bool:
        """Return whether any tokens were counted."""
        return bool(self.input or self.output)

    def __add__(self, other: Usage) -> Usage:
        """Return the sum of both."""
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            reasoning=self.reasoning + other.reasoning,
            searches=self.searches + other.searches,
        )


class ModelAnswered(Event, frozen=True, kw_only=True, tag="model_answered"):
    """The model's answer is complete, or was cut off if `complete` is false.

    A `discarded` answer was cut off and requested again: the user still sees it, the model does
    not. `cost` is the cost of the request in US dollars at the prices of its day; None if they were
    unknown. `stop` says why the answer stopped, unless it reached its end or made calls, or which
    kind of failure ended the request; it is `USER_CALL` if the user made the call and no model was
    asked. `cut` describes the call that the token limit cut off: its name, and the number of
    characters of arguments received.
    """

    message: MessageId
    model: str
    usage: Usage = Usage()
    cost: float | None = None
    complete: bool = True
    discarded: bool = False
    stop: str = ""
    cut: tuple[str, int] | None = None


def agent_message(text: str) -> tuple[AgentText, ModelAnswered]:
    """Return the events of a message by the agent itself, which the model never sees."""
    message = new_message_id()
    return (
        AgentText(message=message, text=text),
        ModelAnswered(message=message, model="", discarded=True),
    )


def agent_notice(text: str) -> tuple[AgentText, ModelAnswered]:
    """Return an `agent_message` in italics, a paragraph even in clients that join messages."""
    return agent_message(f"\n\n*{text}*\n\n")


class UsageReported(Event, frozen=True, kw_only=True, tag="usage_reported"):
    """The context contains `used` of `size` tokens; `cost` is the cost of the session until now."""

    used: int
    size: int
    cost: float | None = None
    currency: str = "USD"


class LoopNoticed(Event, frozen=True, kw_only=True, tag="loop_noticed"):
    """The model repeated itself `rounds` times; `call` is the last call.

    `note` is added for the model to that call's result. `step` is the reaction: the model was told,
    the user was asked, or the turn was stopped. `decision` is the user's answer, if they were
    asked.
    """

    call: CallId
    kind: LoopKind
    rounds: int
    step: LoopStep
    note: str = ""
    decision: LoopDecision = ""


class TurnEnded(Event, frozen=True, kw_only=True, tag="turn_ended"):
    """A turn ended with a stop reason, or with an `error` that the user saw.

    `error_kind` is the kind of the error (`acp_agent.errors.AcpAgentError.kind`), "" if unknown.
    `usage` is the sum for all requests of the turn, None if no model reported any.
    """

    turn: TurnId
    stop_reason: StopReason | None = None
    error: str = ""
    error_kind: str = ""
    usage: Usage | None = None


class TurnInterrupted(Event, frozen=True, kw_only=True, tag="turn_interrupted"):
    """The process died during this turn; written when the session is opened again.

    `cut` is the message that was being written, if any; `calls` are the calls that had not ended.
    """

    turn: TurnId
    message: MessageId
    cut: MessageId | None = None
    calls: tuple[CallId, ...] = ()


class ToolCalled(Event, frozen=True, kw_only=True, tag="tool_called"):
    """The model called a tool. `arguments` is the JSON text exactly as the model wrote it.

    `provider` is set if the model's provider runs the tool itself, as part of its answer.
    """

    call: CallId
    message: MessageId
    name: str
    arguments: str
    title: str
    kind: ToolKind = "other"
    locations: tuple[Location, ...] = ()
    content: tuple[CallContent, ...] = ()
    # Data that the provider requires back with the call, unchanged.
    provider_data: JsonObject | None = field(default=None, name="seal")
    provider: str = ""


class ToolStarted(Event, frozen=True, kw_only=True, tag="tool_started"):
    """A call that was allowed began to run.

    `cwd` is set if the call runs a command. `command` is set if the arguments do not contain the
    command line, because the model called a tool of another agent.
    """

    call: CallId
    cwd: str | None = None
    command: str | None = None


class ToolOutput(Event, frozen=True, kw_only=True, tag="tool_output"):
    """A piece of a running command's output.

    `invalid` has one byte for each U+FFFD in the text, if the command wrote bytes that are not
    UTF-8: the byte that the character replaces, or 0 if the command wrote U+FFFD itself.
    """

    call: CallId
    text: str
    invalid: bytes = b""


class ToolShown(Event, frozen=True, kw_only=True, tag="tool_shown"):
    """A running call changed its display: complete lists, None for what did not change."""

    call: CallId
    title: str | None = None
    content: tuple[CallContent, ...] | None = None
    locations: tuple[Location, ...] | None = None


class ToolEnded(Event, frozen=True, kw_only=True, tag="tool_ended"):
    """A call ended. `result` and `images` are for the model; the rest is for the user.

    `cancelled` means that the user stopped the call or its turn; the call is `failed` too.
    `content` and `locations` are complete lists, None to leave the display unchanged. `exit_code`
    and `signal` are set if a command ran. `wrote` lists the files that a file tool wrote: the path,
    and git's id of the content on disk right after the write. `instructions` lists the instruction
    files that apply to the files of the call and that the model gets with the result: path and
    text. `provider_data` is data that the provider requires back for a tool that it ran itself.
    """

    call: CallId
    failed: bool = False
    cancelled: bool = False
    result: str = ""
    images: tuple[ContentBlock, ...] = ()
    content: tuple[CallContent, ...] | None = None
    locations: tuple[Location, ...] | None = None
    raw_output: JsonObject | None = None
    exit_code: int | None = None
    signal: str | None = None
    wrote: tuple[tuple[str, str], ...] = ()
    instructions: tuple[tuple[str, str], ...] = ()
    provider_data: JsonObject | None = field(default=None, name="seal")


class BackgroundCommandChanged(Event, frozen=True, kw_only=True, tag="background_command_changed"):
    """The command of a call moved to the background, or a background command ended.

    `name` is the model's name for it, `command` the line that the user sees. A `lost` command ended
    together with the program that ran it; its outcome is unknown. `stopped` means that the user
    ended it, `heard` that a call reports the end to the model.
    """

    call: CallId
    name: str
    status: Literal["running", "ended", "lost"]
    command: str = ""
    exit_code: int | None = None
    signal: str | None = None
    timed_out: bool = False
    stopped: bool = False
    heard: bool = False


class PermissionAsked(Event, frozen=True, kw_only=True, tag="permission_asked"):
    """The user was asked about a call. `options` are the ids of the buttons."""

    call: CallId
    options: tuple[str, ...]


class PermissionDecided(Event, frozen=True, kw_only=True, tag="permission_decided"):
    """A call was allowed or refused, for the reason `why`.

    `by` says who decided: the user, the mode, a remembered grant, a rule, or a flag that the client
    was started with; or nobody, because no client could be asked. `name` is the mode or the flag.
    If `known` is false, in older journals, `user` means that the client answered, perhaps without
    asking the user. `rule` is the policy rule or the remembered answer that decided or required the
    question: its effect, its text and its location. `tier` is the danger level of a command line.
    `remembered` are the ids of the grants that the answer adds.
    """

    call: CallId
    allowed: bool
    by: DecidedBy
    why: str = ""
    name: str = ""
    known: bool = False
    rule: str = ""
    tier: str = ""
    remembered: tuple[str, ...] = ()


class PlanEntry(Struct, frozen=True, kw_only=True):
    """One step of the agent's plan."""

    content: str
    priority: Literal["high", "medium", "low"] = "medium"
    status: Literal["pending", "in_progress", "completed"] = "pending"


class PlanChanged(Event, frozen=True, kw_only=True, tag="plan_changed"):
    """The complete plan after a change."""

    entries: tuple[PlanEntry, ...]
    plan_id: str = PLAN


class PlanRemoved(Event, frozen=True, kw_only=True, tag="plan_removed"):
    """The plan was removed."""

    plan_id: str = PLAN
