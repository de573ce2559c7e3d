"""The vocabulary of the journal: everything that can happen in a session.

A session is the ordered list of its events. What an editor sees, live or replayed, and what a model
is sent are pure functions of that list. An event carries all that its projections need, is never
changed once written, and new fields always have a default, so that old journals stay readable.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from acp_agent.content import CallContent, ContentBlock, JsonObject, Location
from acp_agent.ids import CallId, MessageId, SessionId, TurnId

ToolKind = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
Severity = Literal["info", "warning", "error"]
Activity = Literal["running", "requires_action", "idle", "unknown"]
LoopKind = Literal["repeat", "cycle", "errors"]
LoopStep = Literal["told", "asked", "stopped"]
LoopDecision = Literal["", "go_on", "stop", "said"]

PLAN = "plan"  # the id of the plan that the todo tool keeps; a session has one


class Event(Struct, frozen=True, kw_only=True, tag_field="event", omit_defaults=True):
    """Something that happened in a session."""


class SessionStarted(Event, frozen=True, kw_only=True, tag="session_started"):
    """The first event of every session."""

    cwd: str
    directories: tuple[str, ...] = ()


class SessionForked(Event, frozen=True, kw_only=True, tag="session_forked"):
    """What comes before this was copied from `source`, which goes on apart from this session."""

    source: SessionId


class DirectoriesChanged(Event, frozen=True, kw_only=True, tag="directories_changed"):
    """The editor opened the session again with other folders."""

    cwd: str
    directories: tuple[str, ...] = ()


class ConfigChanged(Event, frozen=True, kw_only=True, tag="config_changed"):
    """An option of the session got a value: `mode`, `model` or `thought_level`."""

    option: str
    value: str


class TurnStarted(Event, frozen=True, kw_only=True, tag="turn_started"):
    """A turn began; every event up to its end belongs to it."""

    turn: TurnId


class UserMessage(Event, frozen=True, kw_only=True, tag="user_message"):
    """What the user said; `steering` when a turn was running already.

    `attached` is what the agent read for the model because the message linked to it; the user's
    own words stay as they were. `local` marks a command that the agent answers by itself, of
    which the model is told nothing.
    """

    message: MessageId
    content: tuple[ContentBlock, ...]
    steering: bool = False
    attached: str = ""
    local: bool = False


class PromptRepeated(Event, frozen=True, kw_only=True, tag="prompt_repeated"):
    """A further round of a turn that repeats its prompt began; `text` is what the model is told."""

    message: MessageId
    round: int
    rounds: int
    text: str


class SystemPromptWritten(Event, frozen=True, kw_only=True, tag="system_prompt_written"):
    """The system prompt of the session, kept so that every later request begins with it."""

    text: str


class SystemPromptGiven(Event, frozen=True, kw_only=True, tag="system_prompt_given"):
    """The editor gave instructions, added to the agent's own or put in their place.

    They become part of the next system prompt that is written.
    """

    mode: Literal["append", "override"]
    text: str


class ModelAsked(Event, frozen=True, kw_only=True, tag="model_asked"):
    """A request went to the model; the answer will be `message`."""

    message: MessageId
    model: str


class AgentText(Event, frozen=True, kw_only=True, tag="agent_text"):
    """A piece of the answer."""

    message: MessageId
    text: str


class AgentThought(Event, frozen=True, kw_only=True, tag="agent_thought"):
    """A piece of the model's reasoning."""

    message: MessageId
    text: str


class ThoughtSealed(Event, frozen=True, kw_only=True, tag="thought_sealed"):
    """A block of reasoning ended; `seal` is what the provider wants back with it, as it gave it."""

    message: MessageId
    provider: str
    seal: JsonObject


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens that model requests took.

    `input` counts everything sent, what was read from and written to a cache too; `output` counts
    everything answered, reasoning too.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

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
        )


class ModelAnswered(Event, frozen=True, kw_only=True, tag="model_answered"):
    """The model's answer is complete, or was cut off where `complete` is false.

    The text of an answer that was cut off and then asked for again is kept for the user and left
    out of what the model is sent (`discarded`). `cost` is what the request cost in US dollars by
    the prices of its day; None where they were not known.
    """

    message: MessageId
    model: str
    usage: Usage = Usage()
    cost: float | None = None
    complete: bool = True
    discarded: bool = False


class UsageReported(Event, frozen=True, kw_only=True, tag="usage_reported"):
    """How full the context is: `used` of `size` tokens, and what the session has cost so far."""

    used: int
    size: int
    cost: float | None = None
    currency: str = "USD"


class ToolCalled(Event, frozen=True, kw_only=True, tag="tool_called"):
    """The model called a tool. `arguments` is the JSON text exactly as the model wrote it."""

    call: CallId
    message: MessageId
    name: str
    arguments: str
    title: str
    kind: ToolKind = "other"
    locations: tuple[Location, ...] = ()
    content: tuple[CallContent, ...] = ()
    seal: JsonObject | None = None  # what the provider wants back with the call, as it gave it


class ToolStarted(Event, frozen=True, kw_only=True, tag="tool_started"):
    """A call that was allowed began to run. `cwd` is set where it runs a command."""

    call: CallId
    cwd: str | None = None


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
    `exit_code` and `signal` are set where a command ran.
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
    """A call was allowed or refused: `by` the user, a mode, a grant or a rule, named in `why`."""

    call: CallId
    allowed: bool
    by: Literal["user", "mode", "grant", "rule"]
    why: str = ""


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


class TitleChanged(Event, frozen=True, kw_only=True, tag="title_changed"):
    """The session got a title, which is never replaced by another when `by` the user."""

    title: str
    by: Literal["agent", "user"] = "agent"


class NoticeShown(Event, frozen=True, kw_only=True, tag="notice_shown"):
    """Something that the user should know and the model need not."""

    severity: Severity
    title: str
    description: str = ""


class CompactionChanged(Event, frozen=True, kw_only=True, tag="compaction_changed"):
    """A compaction began or ended; from a completed one on the model sees `summary` instead.

    It stands for everything before the message `keep_from`, the user's or the model's; None: for
    everything before the compaction began.
    """

    compaction: str
    status: Literal["in_progress", "completed", "failed", "cancelled"]
    summary: str = ""
    keep_from: MessageId | None = None
    error: str = ""


class CompactionSummaryText(Event, frozen=True, kw_only=True, tag="compaction_summary_text"):
    """A piece of a compaction's summary as the model writes it."""

    compaction: str
    text: str


class ContextTrimmed(Event, frozen=True, kw_only=True, tag="context_trimmed"):
    """From here on the model is sent less of what came before; the journal keeps all of it.

    What came before the message `keep_from` is left out; None: nothing more than until now. Results
    of calls before the message `results_before` are cut to `result_limit` characters, 0: none; None
    stands for all results so far. `overflow` is the number of tokens, by our own count, that
    `model` refused as too many; 0 where none did.
    """

    keep_from: MessageId | None = None
    results_before: MessageId | None = None
    result_limit: int = 0
    model: str = ""
    overflow: int = 0


class PicturesDescribed(Event, frozen=True, kw_only=True, tag="pictures_described"):
    """Another model told in words what the pictures of a message, or of a call's result, show.

    It is part of what the session's model, which cannot see them, is sent in that place.
    """

    of: str  # the id of the message or of the call
    text: str
    model: str


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


class CheckpointMade(Event, frozen=True, kw_only=True, tag="checkpoint_made"):
    """The files of the session's folders were kept as they were.

    That is so before a turn's first write (`turn`) and when such a turn has ended (`turn_end`),
    before files are put back (`restore`) and after that (`restore_end`). `trees` are the folders
    with the ids of what they held; `left_out` names some of the files that are not kept, of
    `left_out_count` in all.
    """

    checkpoint: str
    why: Literal["turn", "turn_end", "restore", "restore_end"]
    trees: tuple[tuple[str, str], ...]
    left_out: tuple[str, ...] = ()
    left_out_count: int = 0


class Rewound(Event, frozen=True, kw_only=True, tag="rewound"):
    """The session went back to how it was before `to`: a message of the user's, or a rewind.

    Where `conversation`, the model is from here on sent what it was sent then, with the words of
    `to` where it `keeps_words`, and with the `note` behind them; the journal keeps all of it.
    `restored` is the checkpoint whose files were put back, "" where none were, and `replaced` the
    one that has what was there until then. `title` says for the user what `to` was, and `in_turn`
    whether a turn was running.
    """

    rewind: str
    to: str
    conversation: bool = True
    keeps_words: bool = False
    note: str = ""
    restored: str = ""
    replaced: str = ""
    changed: int = 0
    title: str = ""
    in_turn: bool = False


class SubagentChanged(Event, frozen=True, kw_only=True, tag="subagent_changed"):
    """A child session of this one began, or is no longer as it was.

    None leaves a field as it was; a text or a list that is empty takes what was there away. What
    `state` says replaces the whole state: `stop_reason`, `error` and `error_kind` say why an idle
    child stopped, as they do in `TurnEnded`.
    `can_cancel` says whether the user may stop the child's work alone.
    """

    session: SessionId
    title: str | None = None
    description: str | None = None
    cwd: str | None = None
    directories: tuple[str, ...] | None = None
    can_cancel: bool | None = None
    state: Activity | None = None
    stop_reason: StopReason | None = None
    error: str = ""
    error_kind: str = ""


class SessionMessageSent(Event, frozen=True, kw_only=True, tag="session_message_sent"):
    """A message between this session and another, as this session's transcript has it.

    `recipient_message` of one that was sent is its id in the recipient's transcript, and
    `sender_message` of one that was received the id in the sender's, as soon as they are known.
    None leaves a field as it was; `content` replaces what came before, in pieces too.
    """

    message: MessageId
    sender: SessionId | None = None
    recipient: SessionId | None = None
    sender_message: MessageId | None = None
    recipient_message: MessageId | None = None
    content: tuple[ContentBlock, ...] | None = None


class SessionMessageText(Event, frozen=True, kw_only=True, tag="session_message_text"):
    """A piece of a message between sessions."""

    message: MessageId
    text: str


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


AnyEvent = (
    SessionStarted
    | SessionForked
    | DirectoriesChanged
    | ConfigChanged
    | TurnStarted
    | UserMessage
    | PromptRepeated
    | SystemPromptWritten
    | SystemPromptGiven
    | ModelAsked
    | AgentText
    | AgentThought
    | ThoughtSealed
    | ModelAnswered
    | UsageReported
    | ToolCalled
    | ToolStarted
    | ToolOutput
    | ToolShown
    | ToolEnded
    | BackgroundCommandChanged
    | PermissionAsked
    | PermissionDecided
    | PlanChanged
    | PlanRemoved
    | TitleChanged
    | NoticeShown
    | CompactionChanged
    | CompactionSummaryText
    | ContextTrimmed
    | PicturesDescribed
    | CheckpointMade
    | Rewound
    | LoopNoticed
    | SubagentChanged
    | SessionMessageSent
    | SessionMessageText
    | TurnEnded
    | TurnInterrupted
)
