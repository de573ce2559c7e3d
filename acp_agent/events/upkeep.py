"""What keeps a session going and lets it go back: compactions, trims, checkpoints, rewinds."""

from __future__ import annotations

from typing import Literal

from acp_agent.events.base import Event
from acp_agent.ids import MessageId


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
