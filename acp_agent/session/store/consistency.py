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

_OF_A_CALL = (ToolStarted, ToolOutput, ToolShown, ToolEnded, PermissionAsked, PermissionDecided)
_OF_AN_ANSWER = (AgentText, AgentThought, ThoughtEnded, ToolCalled)


def make_consistent(events: Sequence[AnyEvent | None], name: str) -> list[list[AnyEvent]]:
    """Return the events that replace each event.

    Args:
        events: the events of a session or of a child, with None for each lost event.
        name: the prefix of the ids of added events; it must be the same each time.
    """
    order = _Order(events, name)
    return [list(order.take(place, event)) for place, event in enumerate(events)]


class _Order:
    def __init__(self, events: Sequence[AnyEvent | None], name: str) -> None:
        self._name = name
        self._events = events
        self._asked = {one.message for one in events if isinstance(one, ModelAsked)}
        self._answered = {one.message: one for one in events if isinstance(one, ModelAnswered)}
        self._begun, self._homeless = _lost_calls(events)
        self._turn: TurnId | None = None
        self._writing: tuple[MessageId, str] | None = None  # the open answer and its model
        self._open: dict[CallId, None] = {}
        self._by_provider: set[CallId] = set()  # the calls that a provider runs
        self._compactions: dict[str, None] = {}

    def take(self, place: int, event: AnyEvent | None) -> list[AnyEvent]:
        """Return the events that replace one event."""
        if event is None:
            return self._lost(place)
        if isinstance(event, _OF_AN_ANSWER):
            return self._answer(place, event)
        if isinstance(event, _OF_A_CALL):
            return self._call(event)
        match event:
            case TurnStarted():
                before = self._end_turn()
                self._turn = event.turn
            case TurnEnded():
                before = [*self._in_turn(place), *self._end_calls(), *self._end_compactions()]
                self._turn = self._writing = None
            case TurnInterrupted():
                event = replace(event, calls=tuple(one for one in event.calls if one in self._open))
                before = self._in_turn(place)
                self._turn = self._writing = None
                self._open.clear()
            case UserMessage() if not event.steering:
                before = self._in_turn(place)
            case ModelAsked():
                before = [*self._in_turn(place), *self._end_answer(), *self._end_calls()]
                self._writing = event.message, event.model
            case _:
                before = []
                self._follow(event)
        return [*before, event]

    def _follow(self, event: AnyEvent) -> None:
        match event:
            case ModelAnswered() if self._writing and event.message == self._writing[0]:
                self._writing = None
            case CompactionChanged(status="in_progress"):
                self._compactions[event.compaction] = None
            case CompactionChanged():
                self._compactions.pop(event.compaction, None)
            case _:
                pass

    def _lost(self, place: int) -> list[AnyEvent]:
        """Return substitutes for calls that must have begun here, as later events show."""
        made: list[AnyEvent] = []
        for call in self._begun.get(place, ()):
            if self._writing is None:
                made += [*self._in_turn(place), *self._end_calls()]
                self._writing = self._lost_answer(place), ""
                self._asked.add(self._writing[0])
                made.append(ModelAsked(message=self._writing[0], model=""))
            made.append(
                ToolCalled(
                    call=call,
                    message=self._writing[0],
                    name="unknown",
                    arguments="{}",
                    title=LOST_CALL,
                )
            )
            self._open[call] = None
        return made

    def _lost_answer(self, place: int) -> MessageId:
        """Return the id of the answer whose beginning is lost at a place, or a new one."""
        for event in self._events[place:]:
            if isinstance(event, TurnStarted | ModelAsked):
                break
            if isinstance(event, ToolCalled | ThoughtEnded | ModelAnswered):
                if event.message not in self._asked:
                    return event.message
                break
        return MessageId(f"{self._name}_{place}_asked")

    def _answer(
        self, place: int, event: AgentText | AgentThought | ThoughtEnded | ToolCalled
    ) -> list[AnyEvent]:
        made: list[AnyEvent] = []
        of_model = isinstance(event, ThoughtEnded | ToolCalled) or event.message in self._answered
        if of_model and event.message not in self._asked:
            # The `ModelAsked` event is lost. A message by the agent itself has none.
            self._asked.add(event.message)
            answered = self._answered.get(event.message)
            model = "" if answered is None else answered.model
            made = [*self._in_turn(place), *self._end_answer(), *self._end_calls()]
            made.append(ModelAsked(message=event.message, model=model))
            self._writing = event.message, model
        if isinstance(event, ToolCalled):
            self._open[event.call] = None
            if event.provider:
                self._by_provider.add(event.call)
        return [*made, event]

    def _call(self, event: AnyEvent) -> list[AnyEvent]:
        assert isinstance(event, _OF_A_CALL)
        if event.call in self._homeless:
            return []
        if event.call not in self._open:
            # A background command may still write output after its call.
            return [event] if isinstance(event, ToolOutput) else []
        # Only a provider runs a call before the answer that contains it is complete.
        made = [] if event.call in self._by_provider else self._end_answer()
        if isinstance(event, ToolEnded):
            del self._open[event.call]
        return [*made, event]

    def _in_turn(self, place: int) -> list[AnyEvent]:
        """Return the beginning of the current turn if it is lost."""
        if self._turn is not None:
            return []
        self._turn = TurnId(f"{self._name}_{place}_turn")
        for event in self._events[place:]:
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
        made = [*self._end_answer(), *self._end_calls(), *self._end_compactions()]
        made.append(TurnEnded(turn=self._turn, stop_reason="end_turn"))
        self._turn = None
        return made

    def _end_answer(self) -> list[AnyEvent]:
        if self._writing is None:
            return []
        (message, model), self._writing = self._writing, None
        return [ModelAnswered(message=message, model=model, complete=False)]

    def _end_calls(self) -> list[AnyEvent]:
        calls, self._open = self._open, {}
        return [
            ToolEnded(call=call, failed=True, result=LOST_RESULT, content=(text_part(LOST_RESULT),))
            for call in calls
        ]

    def _end_compactions(self) -> list[AnyEvent]:
        open_ones, self._compactions = self._compactions, {}
        return [
            CompactionChanged(compaction=one, status="failed", error=LOST_SUMMARY)
            for one in open_ones
        ]


def _lost_calls(
    events: Sequence[AnyEvent | None],
) -> tuple[dict[int, list[CallId]], set[CallId]]:
    """Return calls whose beginning is lost, by its likely place, and those without a place.

    The place is a lost event in the last answer before the first event of the call; otherwise, the
    last lost event before that in the same turn.
    """
    called = {one.call for one in events if isinstance(one, ToolCalled)}
    by_provider = {one.call for one in events if isinstance(one, ToolCalled) and one.provider}
    begun: dict[int, list[CallId]] = {}
    homeless: set[CallId] = set()
    gap: int | None = None
    in_answer: int | None = None
    writing = False
    for place, event in enumerate(events):
        if event is None:
            gap = place
            in_answer = place if writing else in_answer
        elif isinstance(event, TurnStarted):
            gap = in_answer = None
        elif isinstance(event, ModelAsked | AgentText | AgentThought | ThoughtEnded | ToolCalled):
            in_answer = in_answer if writing else None
            writing = True
        elif isinstance(event, ModelAnswered):
            writing = False
        elif isinstance(event, _OF_A_CALL):
            if event.call in by_provider:
                continue
            writing = False
            if event.call in called:
                continue
            called.add(event.call)
            began = gap if in_answer is None else in_answer
            if began is None:
                homeless.add(event.call)
            else:
                begun.setdefault(began, []).append(event.call)
    return begun, homeless
