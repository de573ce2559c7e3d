"""Events around turns: settings, prompts, notices, compactions, checkpoints, child sessions."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from acp_agent.content import ContentBlock, JsonObject
from acp_agent.events.turns import Event, StopReason, ToolKind
from acp_agent.ids import CallId, MessageId, SessionId

Severity = Literal["info", "warning", "error"]
Activity = Literal["running", "requires_action", "idle", "unknown"]


class SessionStarted(Event, frozen=True, kw_only=True, tag="session_started"):
    """The first event of every session."""

    cwd: str
    directories: tuple[str, ...] = ()


class SessionForked(Event, frozen=True, kw_only=True, tag="session_forked"):
    """The events before this one were copied from `source`, a separate session."""

    source: SessionId


class DirectoriesChanged(Event, frozen=True, kw_only=True, tag="directories_changed"):
    """The editor opened the session again with different folders."""

    cwd: str
    directories: tuple[str, ...] = ()


class ConfigChanged(Event, frozen=True, kw_only=True, tag="config_changed"):
    """An option of the session changed: `mode`, `model` or `thought_level`."""

    option: str
    value: str


class SystemPromptWritten(Event, frozen=True, kw_only=True, tag="system_prompt_written"):
    """The system prompt of the session, stored so that every later request begins with it."""

    text: str


class SystemPromptGiven(Event, frozen=True, kw_only=True, tag="system_prompt_given"):
    """The editor gave instructions that extend or replace the agent's own.

    They become part of the next system prompt that is written.
    """

    mode: Literal["append", "override"]
    text: str


class UserMessage(Event, frozen=True, kw_only=True, tag="user_message"):
    """A message of the user; `steering` if a turn was already running.

    `attached` is text that the agent read for the model because the message links to it; `content`
    is unchanged. `local` marks a command that the agent answers itself and that the model never
    sees. `instructions` lists the instruction files that apply to the linked files and that the
    model gets with the message: path and text.
    """

    message: MessageId
    content: tuple[ContentBlock, ...]
    steering: bool = False
    attached: str = ""
    local: bool = False
    instructions: tuple[tuple[str, str], ...] = ()


class PromptRepeated(Event, frozen=True, kw_only=True, tag="prompt_repeated"):
    """A turn that repeats its prompt began another round; `text` is the prompt for the model.

    If `rounds` is 0, it is a step of a flow.
    """

    message: MessageId
    round: int
    rounds: int
    text: str


class TitleChanged(Event, frozen=True, kw_only=True, tag="title_changed"):
    """The session got a title; a title set `by` the user is never replaced by the agent."""

    title: str
    by: Literal["agent", "user"] = "agent"


class NoticeShown(Event, frozen=True, kw_only=True, tag="notice_shown"):
    """A notice for the user, which the model usually does not get.

    With a `message` id, the notice is part of the conversation and the model gets `for_model`; this
    marks a part of the journal that cannot be read.
    """

    severity: Severity
    title: str
    description: str = ""
    message: MessageId | None = None
    for_model: str = ""


class SubagentChanged(Event, frozen=True, kw_only=True, tag="subagent_changed"):
    """A child session began or changed.

    None leaves a field unchanged; an empty text or list clears it. `state` replaces the whole
    state: `stop_reason`, `error` and `error_kind` say why an idle child stopped, as they do in
    `TurnEnded`. `can_cancel` says whether the user can stop the child's work alone. `agent` is the
    child's agent, set when it begins; `role` has the instructions of an agent that the model
    defined.
    """

    session: SessionId
    agent: str = ""
    role: str = ""
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
    """A message between this session and another, as shown in this session's transcript.

    `recipient_message` is the id of a sent message in the recipient's transcript, and
    `sender_message` the id of a received one in the sender's, as soon as they are known. None
    leaves a field unchanged; `content` replaces all earlier content, including its pieces.
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


class CompactionChanged(Event, frozen=True, kw_only=True, tag="compaction_changed"):
    """A compaction began or ended; once it is completed, the model gets `summary` instead.

    The summary replaces everything before the message `keep_from`, of the user or the model; None:
    everything before the start of the compaction.
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
    """From now on the model gets less of the earlier conversation; the journal has all of it.

    Messages before `keep_from` are left out; None: no further messages. Results of calls before the
    message `results_before` (None: all results until now) are cut to `result_limit` characters; 0:
    no limit. `overflow` is the number of tokens, by our own count, that `model` refused as too
    many; 0 if none did.
    """

    keep_from: MessageId | None = None
    results_before: MessageId | None = None
    result_limit: int = 0
    model: str = ""
    overflow: int = 0


class PicturesDescribed(Event, frozen=True, kw_only=True, tag="pictures_described"):
    """A description of the pictures in a message or a call's result, by another model.

    It may also be text that a program on this computer recognised; `model` is then its name. The
    session's model, which cannot see pictures, gets this text with the message or result.
    """

    of: str  # the id of the message or of the call
    text: str
    model: str


class CheckpointMade(Event, frozen=True, kw_only=True, tag="checkpoint_made"):
    """The contents of the session's folders were saved.

    This happens before a turn's first write (`turn`), after such a turn (`turn_end`), before files
    are restored (`restore`) and after that (`restore_end`). `trees` lists the folders with the ids
    of their contents; `left_out` names some of the `left_out_count` files that are not saved. If
    `checkpoint` is "", saving failed before a turn's first write; no later checkpoint has the files
    in that state. `only_tools` means that only file tools, which report what they write, could have
    written in the turn until now. `target` is the checkpoint that a restore is about to restore.
    """

    checkpoint: str
    why: Literal["turn", "turn_end", "restore", "restore_end"]
    trees: tuple[tuple[str, str], ...]
    left_out: tuple[str, ...] = ()
    left_out_count: int = 0
    only_tools: bool = False
    target: str = ""


class HookAnswered(Event, frozen=True, kw_only=True, tag="hook_answered"):
    """The hooks of an event answered with more than consent; for replays of the session.

    `subject` is the beginning of the fields that the hooks got, as JSON, and `call` the call that
    they were asked about. `name` and `source` describe the deciding hook, and `answer` has the
    fields of the combined answer that are not empty. `later` is true for the answer of a hook that
    nothing waited for.
    """

    on: str
    subject: str
    call: CallId | None = None
    name: str = ""
    source: str = ""
    answer: JsonObject = field(default_factory=dict)
    later: bool = False


class ServerTool(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool of an MCP server, or one that finds such tools or reads resources.

    `server` and `tool` are the server's name and its name of the tool, "" if it belongs to none.
    `parameters` is a JSON Schema of an object. `deferred` says that the model must search for it.
    """

    name: str
    title: str
    description: str
    parameters: JsonObject
    kind: ToolKind = "other"
    reads: bool = False
    deferred: bool = False
    server: str = ""
    tool: str = ""


class ServerToolsOffered(Event, frozen=True, kw_only=True, tag="server_tools_offered"):
    """The tools of MCP servers that the model is offered from now on; for replays."""

    tools: tuple[ServerTool, ...]


class Rewound(Event, frozen=True, kw_only=True, tag="rewound"):
    """The session went back to its state before `to`: a message of the user, or a rewind.

    If `conversation` is true, later requests to the model contain the conversation before `to`,
    with the words of `to` if `keeps_words`, followed by `note`. The journal still has everything.
    `restored` is the checkpoint whose files were restored, "" if none were, and `replaced` the
    checkpoint of the files before that. `title` describes `to` for the user, and `in_turn` says
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
