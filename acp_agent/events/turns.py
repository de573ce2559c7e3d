"""Events of a turn: requests to the model, its answers, tool calls, permissions, and the end."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from acp_agent.content import CallContent, ContentBlock, JsonObject, Location
from acp_agent.ids import CallId, MessageId, TurnId, new_message_id


class Event(Struct, frozen=True, kw_only=True, tag_field="event", omit_defaults=True, gc=False):
    """Something that happened in a session.

    Out of the collector's sight (`gc`): it is a tree, as its JSON is, and a session has thousands.
    """


StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
LoopKind = Literal["repeat", "cycle", "errors"]
LoopStep = Literal["told", "asked", "stopped"]
LoopDecision = Literal["", "go_on", "stop", "said"]


ToolKind = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]


DecidedBy = Literal["user", "mode", "grant", "rule", "flag", "nobody"]


USER_CALL = "user_call"  # the `stop` of an answer that the user gave in the model's place
PLAN = "plan"  # the id of the plan that the todo tool keeps; a session has one


class TurnStarted(Event, frozen=True, kw_only=True, tag="turn_started"):
    """A turn began; every event up to its end belongs to it."""

    turn: TurnId


class ModelAsked(Event, frozen=True, kw_only=True, tag="model_asked"):
    """A request went to the model; the answer will be `message`.

    `note` is what the agent told the model at the end of the request, not shown to the user.
    `continues` is the answer that was cut off and that the user sees continued.
    """

    message: MessageId
    model: str
    note: str = ""
    continues: MessageId | None = None


class AgentText(Event, frozen=True, kw_only=True, tag="agent_text"):
    """A piece of the answer."""

    message: MessageId
    text: str


class AgentThought(Event, frozen=True, kw_only=True, tag="agent_thought"):
    """A piece of the model's reasoning."""

    message: MessageId
    text: str


class ThoughtEnded(Event, frozen=True, kw_only=True, tag="thought_sealed"):
    """A block of reasoning ended; the provider wants `provider_data` back with it, unchanged."""

    message: MessageId
    provider: str
    provider_data: JsonObject = field(name="seal")


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens that model requests took.

    `input` counts everything sent, what was read from and written to a cache too; `output` counts
    everything answered, reasoning too. `searches` counts the provider's searches of the web.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    searches: int = 0

    def __bool__(self) -> bool:
        """Whether anything was counted."""
        return bool(self.input or self.output)

    def __add__(self, other: Usage) -> Usage:
        """What two requests took together."""
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            reasoning=self.reasoning + other.reasoning,
            searches=self.searches + other.searches,
        )


class ModelAnswered(Event, frozen=True, kw_only=True, tag="model_answered"):
    """The model's answer is complete, or was cut off where `complete` is false.

    The text of an answer that was cut off and then asked for again is kept for the user and left
    out of what the model is sent (`discarded`). `cost` is what the request cost in US dollars by
    the prices of its day; None where they were not known. `stop` is why the answer stopped, where
    it was not at its end or for its calls, or what kind of failure ended the request, and `cut` the
    call that the limit of tokens cut off: its name, and how many characters of arguments it had.
    `USER_CALL` stands there where no model was asked, as the user made the call.
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
    """Return an `agent_message` in italics that is a paragraph even if a client joins messages."""
    return agent_message(f"\n\n*{text}*\n\n")


class UsageReported(Event, frozen=True, kw_only=True, tag="usage_reported"):
    """How full the context is: `used` of `size` tokens, and what the session has cost so far."""

    used: int
    size: int
    cost: float | None = None
    currency: str = "USD"


class LoopNoticed(Event, frozen=True, kw_only=True, tag="loop_noticed"):
    """The model went round in circles, `rounds` times; `call` was the last one.

    `note` is what the model is told with that call's result. `step` is what was done: the model was
    told, the user asked, the turn ended. `decision` is what the user decided where they were asked.
    """

    call: CallId
    kind: LoopKind
    rounds: int
    step: LoopStep
    note: str = ""
    decision: LoopDecision = ""


class TurnEnded(Event, frozen=True, kw_only=True, tag="turn_ended"):
    """A turn ended with a stop reason, or with an `error` that the user was told.

    `error_kind` is what kind of error it was, as `acp_agent.errors.AcpAgentError.kind` names it,
    "" where nobody said. `usage` is what all requests of the turn took; None where no model said.
    """

    turn: TurnId
    stop_reason: StopReason | None = None
    error: str = ""
    error_kind: str = ""
    usage: Usage | None = None


class TurnInterrupted(Event, frozen=True, kw_only=True, tag="turn_interrupted"):
    """The process died in this turn; written when the session is opened the next time.

    `cut` is the message that was being written, if one was; `calls` are the calls left open.
    """

    turn: TurnId
    message: MessageId
    cut: MessageId | None = None
    calls: tuple[CallId, ...] = ()


class ToolCalled(Event, frozen=True, kw_only=True, tag="tool_called"):
    """The model called a tool. `arguments` is the JSON text exactly as the model wrote it.

    `provider` is set where the model's provider runs the tool itself, within its answer.
    """

    call: CallId
    message: MessageId
    name: str
    arguments: str
    title: str
    kind: ToolKind = "other"
    locations: tuple[Location, ...] = ()
    content: tuple[CallContent, ...] = ()
    # What the provider wants back with the call, unchanged.
    provider_data: JsonObject | None = field(default=None, name="seal")
    provider: str = ""


class ToolStarted(Event, frozen=True, kw_only=True, tag="tool_started"):
    """A call that was allowed began to run.

    `cwd` is set where it runs a command, and `command` where that is not in the call's arguments as
    such, since the model called a tool of another agent's.
    """

    call: CallId
    cwd: str | None = None
    command: str | None = None


class ToolOutput(Event, frozen=True, kw_only=True, tag="tool_output"):
    """A further piece of a running command's output.

    `invalid` has a byte for each U+FFFD in the text, where the command wrote bytes that are not
    UTF-8: the byte that the character stands for, or 0 where it stands for itself.
    """

    call: CallId
    text: str
    invalid: bytes = b""


class ToolShown(Event, frozen=True, kw_only=True, tag="tool_shown"):
    """A call that runs shows something new: whole lists, None where nothing changed."""

    call: CallId
    title: str | None = None
    content: tuple[CallContent, ...] | None = None
    locations: tuple[Location, ...] | None = None


class ToolEnded(Event, frozen=True, kw_only=True, tag="tool_ended"):
    """A call ended. `result` and `images` are for the model; the rest is for the user.

    `cancelled` where the user stopped the call, or the turn that it was in; it is `failed` as well.
    `content` and `locations` are whole lists, None where what was shown before stays.
    `exit_code` and `signal` are set where a command ran. `wrote` has the files that a tool for
    files wrote: the path, and git's id of the content that was on the disk right after.
    `instructions` has the instruction files that hold for what was touched and that the model is
    told of with the result: the path and the text. `provider_data` is what the provider wants back
    of a tool that it ran itself.
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
    """The command of a call goes on behind it from now on, or has ended.

    `name` is what the model calls it, `command` the line that the user sees. One that was `lost`
    ended with the program that ran it, and nobody knows how. `stopped` where the user ended it;
    `heard` where a call tells the model of the end by itself.
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
    was started with; or nobody, as there was nobody to ask. `name` is the mode or the flag. Where
    it is not `known`, in older journals, `user` means that the client answered, perhaps by itself.
    `rule` is the rule of the policy or the remembered answer that decided, or that wanted the
    question: its effect, its text and its place. `tier` is how dangerous a command line is.
    """

    call: CallId
    allowed: bool
    by: DecidedBy
    why: str = ""
    name: str = ""
    known: bool = False
    rule: str = ""
    tier: str = ""


class PlanEntry(Struct, frozen=True, kw_only=True):
    """One step of the agent's plan."""

    content: str
    priority: Literal["high", "medium", "low"] = "medium"
    status: Literal["pending", "in_progress", "completed"] = "pending"


class PlanChanged(Event, frozen=True, kw_only=True, tag="plan_changed"):
    """The whole plan as it is now."""

    entries: tuple[PlanEntry, ...]
    plan_id: str = PLAN


class PlanRemoved(Event, frozen=True, kw_only=True, tag="plan_removed"):
    """There is no plan any more."""

    plan_id: str = PLAN
