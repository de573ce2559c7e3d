"""A session that begins with what another one holds.

Its journal is a copied prefix: everything up to now, or, where a turn is open, up to the last point
of that turn at which nothing was half done. The source is only read, so it may be open here, be
written by another process, or rest in the store, and goes on untouched.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    CompactionChanged,
    DirectoriesChanged,
    ModelAnswered,
    ModelAsked,
    SessionForked,
    SessionStarted,
    SystemPromptGiven,
    TitleChanged,
    ToolCalled,
    ToolEnded,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
    UsageReported,
)
from acp_agent.ids import CallId, MessageId, SessionId
from acp_agent.session.fork_point import ForkPoint
from acp_agent.session.interruption import interruption, lost_commands
from acp_agent.session.store.event_codec import known_events
from acp_agent.session.store.records import StoredEvent, UnknownEvent
from acp_agent.session.titles import fork_title


class Beginning:
    """What a fork begins with.

    Attributes:
        copied: the source's events, with their places, that are taken over.
        added: the fork's own behind them.
    """

    def __init__(
        self,
        source: SessionId,
        stored: Sequence[StoredEvent],
        *,
        cwd: Path,
        directories: Sequence[Path],
        system_prompt: SystemPromptGiven | None,
        point: ForkPoint | None = None,
    ) -> None:
        """Find out how much of a session can be taken over, and what has to follow it.

        Args:
            source: the session.
            stored: all its events.
            cwd: the fork's working folder.
            directories: the fork's further folders.
            system_prompt: what the editor gives; None: what the source was given holds.
            point: where it ends; None: at the source's end.

        Raises:
            InvalidInputError: there is no such point.
        """
        if point is not None:
            stored = stored[: point.length([item.event for item in stored])]
        self.copied = stored[: sound_length([item.event for item in stored])]
        known = known_events(self.copied)
        self.added: list[AnyEvent] = [*lost_commands(known)]  # they run for the source alone
        cut = interruption(known)
        if cut is not None:
            self.added.append(cut)
        self.added.append(SessionForked(source=source))
        told = [event for event in known if isinstance(event, UsageReported)]
        if told and told[-1].cost is not None:
            # What the source cost stays the source's: editors add sessions up.
            self.added.append(msgspec.structs.replace(told[-1], cost=0.0))
        folders = str(cwd), tuple(map(str, directories))
        if _folders(known) != folders:
            self.added.append(DirectoriesChanged(cwd=folders[0], directories=folders[1]))
        titles = [event for event in known if isinstance(event, TitleChanged)]
        if titles:
            last = titles[-1]
            self.added.append(TitleChanged(title=fork_title(last.title), by=last.by))
        given = [event for event in known if isinstance(event, SystemPromptGiven)]
        if system_prompt is not None and given[-1:] != [system_prompt]:
            self.added.append(system_prompt)

    def events(self) -> list[AnyEvent]:
        """All of it, without what only a newer version of the program knows."""
        return [*known_events(self.copied), *self.added]


def _folders(events: Sequence[AnyEvent]) -> tuple[str, tuple[str, ...]]:
    """The working folder and the further ones, as the events leave them."""
    for event in reversed(events):
        if isinstance(event, SessionStarted | DirectoriesChanged):
            return event.cwd, event.directories
    return "", ()  # the beginning is damaged


def sound_length(events: Sequence[AnyEvent | UnknownEvent]) -> int:
    """How many of a session's events make a conversation in which nothing is half done.

    All of them where no turn is open at the end. Of an open turn at least the words that it began
    with, and no answer that is being written, no call without its end, no compaction under way.
    """
    sound = 0
    open_turn = False
    writing: MessageId | None = None
    calls: set[CallId] = set()
    compactions: set[str] = set()
    for count, event in enumerate(events, 1):
        match event:
            case TurnStarted():
                open_turn = True
                continue  # the words that it begins with come next
            case TurnEnded() | TurnInterrupted():
                open_turn, writing = False, None
                calls.clear()
                compactions.clear()
            case ModelAsked():
                writing = event.message
            case AgentText() | AgentThought() if writing is None:
                writing = event.message  # what the agent says by itself
            case ModelAnswered() if event.message == writing:
                if not event.discarded or not event.model:  # else the model is asked again
                    writing = None
            case ToolCalled():
                calls.add(event.call)
            case ToolEnded():
                calls.discard(event.call)
            case CompactionChanged(status="in_progress"):
                compactions.add(event.compaction)
            case CompactionChanged():
                compactions.discard(event.compaction)
            case _:
                pass
        if not open_turn or not (writing or calls or compactions):
            sound = count
    return sound
