"""Fork a session: make the journal of a new session that begins with a copy of another.

The copied prefix is the whole journal, or, during a turn, ends at the turn's last point without
anything unfinished. The source is only read, so it may be open in this or another process.
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
from acp_agent.session.history.interruption import close_lost_commands, find_interruption
from acp_agent.session.store.event_codec import recovered_events
from acp_agent.session.store.records import StoredEvent, UnknownEvent
from acp_agent.session.turns.titles import fork_title

_MESSAGE_EVENTS = (UserMessage, ModelAsked, AgentText, AgentThought, ThoughtEnded, ModelAnswered)


class ForkPoint(Struct, frozen=True, kw_only=True):
    """The point at which the copy ends: before a message, or after it if `inclusive`."""

    message: MessageId
    inclusive: bool

    def length(self, events: Sequence[AnyEvent | UnknownEvent]) -> int:
        """Return the number of events before the point.

        A message includes the ends of its calls, and the end of the turn if it is the last one.

        Raises:
            InvalidInputError: there is no such message.
        """
        first = last = -1
        calls: set[CallId] = set()
        for index, event in enumerate(events):
            match event:
                case ToolCalled() if event.message == self.message:
                    calls.add(event.call)
                case ToolEnded() if event.call in calls:
                    pass
                case _ if isinstance(event, _MESSAGE_EVENTS) and event.message == self.message:
                    first = index if first < 0 else first
                case _:
                    continue
            last = index
        if first < 0:
            key = "through" if self.inclusive else "before"
            raise InvalidInputError(
                f"_meta.acp-agent.{key}: there is no message {self.message[:80]!r} in the session",
                field=f"_meta.acp-agent.{key}",
            )
        if not self.inclusive:
            return first - 1 if isinstance(events[first - 1], TurnStarted) else first
        for index in range(last + 1, len(events)):
            if isinstance(events[index], TurnStarted | UserMessage | ModelAsked):
                return index
        return len(events)


class ForkedJournal:
    """The initial journal of a fork.

    Attributes:
        copied: the stored events that are copied from the source.
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
        """Compute the events to copy and those to add.

        Args:
            system_prompt: the client's instructions; None to use those of the source.
            point: the point at which the copy ends; None for the end of the source.

        Raises:
            InvalidInputError: there is no such point.
        """
        if point is not None:
            stored = stored[: point.length([item.event for item in stored])]
        self.copied = stored[: sound_length([item.event for item in stored])]
        events = recovered_events(self.copied)
        self.added: list[AnyEvent] = [*close_lost_commands(events)]  # they belong to the source
        interruption = find_interruption(events)
        if interruption is not None:
            self.added.append(interruption)
        self.added.append(SessionForked(source=source))
        usage = [event for event in events if isinstance(event, UsageReported)]
        if usage and usage[-1].cost is not None:
            # The source's cost is not the fork's: clients add up the costs of sessions.
            self.added.append(msgspec.structs.replace(usage[-1], cost=0.0))
        folders = str(cwd), tuple(map(str, directories))
        if _folders(events) != folders:
            self.added.append(DirectoriesChanged(cwd=folders[0], directories=folders[1]))
        titles = [event for event in events if isinstance(event, TitleChanged)]
        if titles:
            last = titles[-1]
            self.added.append(TitleChanged(title=fork_title(last.title), by=last.by))
        prompts = [event for event in events if isinstance(event, SystemPromptGiven)]
        if system_prompt is not None and prompts[-1:] != [system_prompt]:
            self.added.append(system_prompt)

    def events(self) -> list[AnyEvent]:
        """Return all events except those that only a newer version of the program knows."""
        return [*recovered_events(self.copied), *self.added]


def _folders(events: Sequence[AnyEvent]) -> tuple[str, tuple[str, ...]]:
    """Return the working folder and the additional folders after these events."""
    for event in reversed(events):
        if isinstance(event, SessionStarted | DirectoriesChanged):
            return event.cwd, event.directories
    return "", ()  # the journal's beginning is damaged


def sound_length(events: Sequence[AnyEvent | UnknownEvent]) -> int:
    """Return the length of the longest prefix of events with nothing unfinished.

    That is all events if no turn is open at the end. An open turn is cut at its last point without
    an unfinished answer, call or compaction, but not before its prompt.
    """
    sound = 0
    open_turn = False
    open_message: MessageId | None = None
    calls: set[CallId] = set()
    compactions: set[str] = set()
    for count, event in enumerate(events, 1):
        match event:
            case TurnStarted():
                open_turn = True
                continue  # its prompt comes next
            case TurnEnded() | TurnInterrupted():
                open_turn, open_message = False, None
                calls.clear()
                compactions.clear()
            case ModelAsked():
                open_message = event.message
            case AgentText() | AgentThought() if open_message is None:
                open_message = event.message  # a message of the agent itself
            case ModelAnswered() if event.message == open_message:
                if not event.discarded or not event.model:  # otherwise the model is asked again
                    open_message = None
            case ToolCalled():
                calls.add(event.call)
            case ToolEnded():
                calls.discard(event.call)
            case CompactionChanged(status="in_progress"):
                compactions.add(event.compaction)
            case CompactionChanged():
                compactions.discard(event.compaction)
        if not open_turn or not (open_message or calls or compactions):
            sound = count
    return sound
