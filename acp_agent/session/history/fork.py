"""Forks: a session that begins with a copy of another one.

Its journal is a copied prefix: everything up to now, or, where a turn is open, up to the last point
of that turn at which nothing was half done. The source is only read, so it may be open here, or
written by another process.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from acp_agent.errors import InvalidInputError
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
    ThoughtEnded,
    TitleChanged,
    ToolCalled,
    ToolEnded,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
    UsageReported,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId, SessionId
from acp_agent.session.history.interruption import close_lost_commands, interruption_of
from acp_agent.session.store.event_codec import known_events
from acp_agent.session.store.records import StoredEvent, UnknownEvent
from acp_agent.session.turns.titles import fork_title

_OF_A_MESSAGE = (UserMessage, ModelAsked, AgentText, AgentThought, ThoughtEnded, ModelAnswered)


class ForkPoint(Struct, frozen=True, kw_only=True):
    """Where in a session a fork ends: at a message, which is `inclusive` or not."""

    message: MessageId
    inclusive: bool

    def length(self, events: Sequence[AnyEvent | UnknownEvent]) -> int:
        """Return how many of a session's events come before the point.

        The message includes the ends of its calls, and the end of the turn where it is the last.

        Raises:
            InvalidInputError: there is no such message.
        """
        first = last = -1
        calls: set[CallId] = set()
        for place, event in enumerate(events):
            match event:
                case ToolCalled() if event.message == self.message:
                    calls.add(event.call)
                case ToolEnded() if event.call in calls:
                    pass
                case _ if isinstance(event, _OF_A_MESSAGE) and event.message == self.message:
                    first = place if first < 0 else first
                case _:
                    continue
            last = place
        if first < 0:
            key = "through" if self.inclusive else "before"
            raise InvalidInputError(
                f"_meta.acp-agent.{key}: there is no message {self.message[:80]!r} in the session",
                field=f"_meta.acp-agent.{key}",
            )
        if not self.inclusive:
            return first - 1 if isinstance(events[first - 1], TurnStarted) else first
        for place in range(last + 1, len(events)):
            if isinstance(events[place], TurnStarted | UserMessage | ModelAsked):
                return place
        return len(events)


class ForkedJournal:
    """The journal that a fork begins with.

    Attributes:
        copied: the source's events, with their places, that are copied.
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
        """Find out how much of a session can be copied, and what has to follow it.

        Args:
            source: the session.
            stored: all its events.
            cwd: the fork's working folder.
            directories: the fork's further folders.
            system_prompt: what the client gives; None: what the source was given holds.
            point: where it ends; None: at the source's end.

        Raises:
            InvalidInputError: there is no such point.
        """
        if point is not None:
            stored = stored[: point.length([item.event for item in stored])]
        self.copied = stored[: sound_length([item.event for item in stored])]
        known = known_events(self.copied)
        self.added: list[AnyEvent] = [*close_lost_commands(known)]  # they run for the source alone
        cut = interruption_of(known)
        if cut is not None:
            self.added.append(cut)
        self.added.append(SessionForked(source=source))
        usage = [event for event in known if isinstance(event, UsageReported)]
        if usage and usage[-1].cost is not None:
            # What the source cost stays the source's: clients add sessions up.
            self.added.append(msgspec.structs.replace(usage[-1], cost=0.0))
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
        """Return all of it, without events that only a newer version of the program knows."""
        return [*known_events(self.copied), *self.added]


def _folders(events: Sequence[AnyEvent]) -> tuple[str, tuple[str, ...]]:
    """The working folder and the further ones, as the events leave them."""
    for event in reversed(events):
        if isinstance(event, SessionStarted | DirectoriesChanged):
            return event.cwd, event.directories
    return "", ()  # the beginning is damaged


def sound_length(events: Sequence[AnyEvent | UnknownEvent]) -> int:
    """Return how many of a session's events make a conversation in which nothing is half done.

    All of them where no turn is open at the end. Of an open turn at least the prompt that it began
    with, and no unfinished answer, call or compaction.
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
