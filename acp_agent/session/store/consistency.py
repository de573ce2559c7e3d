"""Restore a consistent sequence of events if some are lost.

Code that shows a turn or builds a model request requires that every answer and tool call has a
beginning and an end.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from acp_agent.content import text_part
from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    CompactionChanged,
    ModelAnswered,
    ModelAsked,
    PermissionAsked,
    PermissionDecided,
    ThoughtEnded,
    ToolCalled,
    ToolEnded,
    ToolOutput,
    ToolShown,
    ToolStarted,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId, TurnId

LOST_CALL = "A damaged call"
LOST_RESULT = "The result of this call is lost: the journal is damaged there."
LOST_SUMMARY = "How this ended is lost: the journal is damaged there."

_CALL_EVENTS = (ToolStarted, ToolOutput, ToolShown, ToolEnded, PermissionAsked, PermissionDecided)
_ANSWER_EVENTS = (AgentText, AgentThought, ThoughtEnded, ToolCalled)


def make_consistent(events: Sequence[AnyEvent | None], id_prefix: str) -> list[list[AnyEvent]]:
    """Return the events that replace each event.

    Args:
        events: the events of a session or of a child, with None for each lost event.
        id_prefix: the prefix of the ids of added events; it must be the same each time.
    """
    repair = _Repair(events, id_prefix)
    return [list(repair.replace_event(index, event)) for index, event in enumerate(events)]


class _Repair:
    def __init__(self, events: Sequence[AnyEvent | None], id_prefix: str) -> None:
        self._id_prefix = id_prefix
        self._events = events
        self._asked_messages = {event.message for event in events if isinstance(event, ModelAsked)}
        self._answers = {
            event.message: event for event in events if isinstance(event, ModelAnswered)
        }
        self._lost_starts, self._unplaced = _lost_calls(events)
        self._turn: TurnId | None = None
        self._open_answer: tuple[MessageId, str] | None = None  # the open answer and its model
        self._open: dict[CallId, None] = {}
        self._by_provider: set[CallId] = set()  # the calls that a provider runs
        self._compactions: dict[str, None] = {}

    def replace_event(self, index: int, event: AnyEvent | None) -> list[AnyEvent]:
        """Return the events that replace one event."""
        if event is None:
            return self._replace_lost(index)
        if isinstance(event, _ANSWER_EVENTS):
            return self._answer(index, event)
        if isinstance(event, _CALL_EVENTS):
            return self._call(event)
        match event:
            case TurnStarted():
                missing = self._end_turn()
                self._turn = event.turn
            case TurnEnded():
                missing = [*self._start_turn(index), *self._end_calls(), *self._end_compactions()]
                self._turn = self._open_answer = None
            case TurnInterrupted():
                event = replace(
                    event, calls=tuple(call for call in event.calls if call in self._open)
                )
                missing = self._start_turn(index)
                self._turn = self._open_answer = None
                self._open.clear()
            case UserMessage() if not event.steering:
                missing = self._start_turn(index)
            case ModelAsked():
                missing = [*self._start_turn(index), *self._end_answer(), *self._end_calls()]
                self._open_answer = event.message, event.model
            case _:
                missing = []
                self._track(event)
        return [*missing, event]

    def _track(self, event: AnyEvent) -> None:
        match event:
            case ModelAnswered() if self._open_answer and event.message == self._open_answer[0]:
                self._open_answer = None
            case CompactionChanged(status="in_progress"):
                self._compactions[event.compaction] = None
            case CompactionChanged():
                self._compactions.pop(event.compaction, None)

    def _replace_lost(self, index: int) -> list[AnyEvent]:
        """Return substitutes for calls that must have begun here, as later events show."""
        events: list[AnyEvent] = []
        for call in self._lost_starts.get(index, ()):
            if self._open_answer is None:
                events += [*self._start_turn(index), *self._end_calls()]
                self._open_answer = self._lost_answer(index), ""
                self._asked_messages.add(self._open_answer[0])
                events.append(ModelAsked(message=self._open_answer[0], model=""))
            events.append(
                ToolCalled(
                    call=call,
                    message=self._open_answer[0],
                    name="unknown",
                    arguments="{}",
                    title=LOST_CALL,
                )
            )
            self._open[call] = None
        return events

    def _lost_answer(self, index: int) -> MessageId:
        """Return the id of the answer whose beginning is lost at a place, or a new one."""
        for event in self._events[index:]:
            if isinstance(event, TurnStarted | ModelAsked):
                break
            if isinstance(event, ToolCalled | ThoughtEnded | ModelAnswered):
                if event.message not in self._asked_messages:
                    return event.message
                break
        return MessageId(f"{self._id_prefix}_{index}_asked")

    def _answer(
        self, index: int, event: AgentText | AgentThought | ThoughtEnded | ToolCalled
    ) -> list[AnyEvent]:
        events: list[AnyEvent] = []
        is_model_output = (
            isinstance(event, ThoughtEnded | ToolCalled) or event.message in self._answers
        )
        if is_model_output and event.message not in self._asked_messages:
            # The `ModelAsked` event is lost. A message by the agent itself has none.
            self._asked_messages.add(event.message)
            answered = self._answers.get(event.message)
            model = "" if answered is None else answered.model
            events = [*self._start_turn(index), *self._end_answer(), *self._end_calls()]
            events.append(ModelAsked(message=event.message, model=model))
            self._open_answer = event.message, model
        if isinstance(event, ToolCalled):
            self._open[event.call] = None
            if event.provider:
                self._by_provider.add(event.call)
        return [*events, event]

    def _call(self, event: AnyEvent) -> list[AnyEvent]:
        assert isinstance(event, _CALL_EVENTS)
        if event.call in self._unplaced:
            return []
        if event.call not in self._open:
            # A background command may still write output after its call.
            return [event] if isinstance(event, ToolOutput) else []
        # Only a provider runs a call before the answer that contains it is complete.
        events = [] if event.call in self._by_provider else self._end_answer()
        if isinstance(event, ToolEnded):
            del self._open[event.call]
        return [*events, event]

    def _start_turn(self, index: int) -> list[AnyEvent]:
        """Return the beginning of the current turn if it is lost."""
        if self._turn is not None:
            return []
        self._turn = TurnId(f"{self._id_prefix}_{index}_turn")
        for event in self._events[index:]:
            if isinstance(event, TurnStarted):
                break
            if isinstance(event, TurnEnded | TurnInterrupted):
                self._turn = event.turn
                break
        return [TurnStarted(turn=self._turn)]

    def _end_turn(self) -> list[AnyEvent]:
        """Return the end of a turn whose end is lost before another turn begins."""
        if self._turn is None:
            return []
        events = [*self._end_answer(), *self._end_calls(), *self._end_compactions()]
        events.append(TurnEnded(turn=self._turn, stop_reason="end_turn"))
        self._turn = None
        return events

    def _end_answer(self) -> list[AnyEvent]:
        if self._open_answer is None:
            return []
        (message, model), self._open_answer = self._open_answer, None
        return [ModelAnswered(message=message, model=model, complete=False)]

    def _end_calls(self) -> list[AnyEvent]:
        calls, self._open = self._open, {}
        return [
            ToolEnded(call=call, failed=True, result=LOST_RESULT, content=(text_part(LOST_RESULT),))
            for call in calls
        ]

    def _end_compactions(self) -> list[AnyEvent]:
        compactions, self._compactions = self._compactions, {}
        return [
            CompactionChanged(compaction=compaction, status="failed", error=LOST_SUMMARY)
            for compaction in compactions
        ]


def _lost_calls(events: Sequence[AnyEvent | None]) -> tuple[dict[int, list[CallId]], set[CallId]]:
    """Return calls whose beginning is lost, by its likely place, and those without a place.

    The place is a lost event in the last answer before the first event of the call; otherwise, the
    last lost event before that in the same turn.
    """
    started_calls = {event.call for event in events if isinstance(event, ToolCalled)}
    by_provider = {
        event.call for event in events if isinstance(event, ToolCalled) and event.provider
    }
    starts: dict[int, list[CallId]] = {}
    unplaced: set[CallId] = set()
    last_gap: int | None = None
    answer_gap: int | None = None
    in_answer_text = False
    for index, event in enumerate(events):
        if event is None:
            last_gap = index
            answer_gap = index if in_answer_text else answer_gap
        elif isinstance(event, TurnStarted):
            last_gap = answer_gap = None
        elif isinstance(event, ModelAsked | AgentText | AgentThought | ThoughtEnded | ToolCalled):
            answer_gap = answer_gap if in_answer_text else None
            in_answer_text = True
        elif isinstance(event, ModelAnswered):
            in_answer_text = False
        elif isinstance(event, _CALL_EVENTS):
            if event.call in by_provider:
                continue
            in_answer_text = False
            if event.call in started_calls:
                continue
            started_calls.add(event.call)
            start = last_gap if answer_gap is None else answer_gap
            if start is None:
                unplaced.add(event.call)
            else:
                starts.setdefault(start, []).append(event.call)
    return starts, unplaced
