"""Events around turns: settings, prompts, notices, compactions, checkpoints, child sessions."""

from __future__ import annotations

from typing import Literal

from acp_agent.content import ContentBlock
from acp_agent.events.turns import Event, StopReason
from acp_agent.ids import MessageId, SessionId

Severity = Literal["info", "warning", "error"]


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


class SystemPromptWritten(Event, frozen=True, kw_only=True, tag="system_prompt_written"):
    """The system prompt of the session, kept so that every later request begins with it."""

    text: str


class SystemPromptGiven(Event, frozen=True, kw_only=True, tag="system_prompt_given"):
    """The editor gave instructions, added to the agent's own or put in their place.

    They become part of the next system prompt that is written.
    """

    mode: Literal["append", "override"]
    text: str


class UserMessage(Event, frozen=True, kw_only=True, tag="user_message"):
    """What the user said; `steering` when a turn was running already.

    `attached` is what the agent read for the model because the message linked to it; the user's
    own words stay as they were. `local` marks a command that the agent answers by itself, of
    which the model is told nothing. `instructions` has the instruction files that hold for what
    the message links to and that the model is told of with it: the path and the text.
    """

    message: MessageId
    content: tuple[ContentBlock, ...]
    steering: bool = False
    attached: str = ""
    local: bool = False
    instructions: tuple[tuple[str, str], ...] = ()


class PromptRepeated(Event, frozen=True, kw_only=True, tag="prompt_repeated"):
    """A further round of a turn that repeats its prompt began; `text` is what the model is told.

    With no `rounds` it is a step of a flow.
    """

    message: MessageId
    round: int
    rounds: int
    text: str


class TitleChanged(Event, frozen=True, kw_only=True, tag="title_changed"):
    """The session got a title, which is never replaced by another when `by` the user."""

    title: str
    by: Literal["agent", "user"] = "agent"


class NoticeShown(Event, frozen=True, kw_only=True, tag="notice_shown"):
    """Something that the user should know and the model need not.

    With a `message`, its id there, it is a part of the conversation and no passing news, and the
    model is told what `for_model` says: so it is where a part of the journal cannot be read.
    """

    severity: Severity
    title: str
    description: str = ""
    message: MessageId | None = None
    for_model: str = ""


Activity = Literal["running", "requires_action", "idle", "unknown"]


class SubagentChanged(Event, frozen=True, kw_only=True, tag="subagent_changed"):
    """A child session of this one began, or is no longer as it was.

    None leaves a field as it was; a text or a list that is empty takes what was there away. What
    `state` says replaces the whole state: `stop_reason`, `error` and `error_kind` say why an idle
    child stopped, as they do in `TurnEnded`.
    `can_cancel` says whether the user may stop the child's work alone. `agent` is the agent that
    works there, as it begins; `role` has the instructions of one that the model made.
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

    Or a program on this computer recognised their text; `model` is its name then. It is part of
    what the session's model, which cannot see them, is sent in that place.
    """

    of: str  # the id of the message or of the call
    text: str
    model: str


class CheckpointMade(Event, frozen=True, kw_only=True, tag="checkpoint_made"):
    """The files of the session's folders were saved as they were.

    That is so before a turn's first write (`turn`) and when such a turn has ended (`turn_end`),
    before files are put back (`restore`) and after that (`restore_end`). `trees` are the folders
    with the ids of what they held; `left_out` names some of the files that are not saved, of
    `left_out_count` in all. Where `checkpoint` is "" they were not saved before a turn's first
    write, for whatever reason: nothing that is saved later has them as they were until then.
    `only_tools` where nothing in the turn so far could write but the tools for files, which say
    what they wrote. `target` is the checkpoint that a restore is going to put back.
    """

    checkpoint: str
    why: Literal["turn", "turn_end", "restore", "restore_end"]
    trees: tuple[tuple[str, str], ...]
    left_out: tuple[str, ...] = ()
    left_out_count: int = 0
    only_tools: bool = False
    target: str = ""


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
