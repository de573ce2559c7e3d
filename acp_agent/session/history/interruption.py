"""Close turns and commands that were open when the process died."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    BackgroundCommandChanged,
    ChildWorked,
    CompactionChanged,
    Event,
    ModelAnswered,
    SubagentChanged,
    ToolCalled,
    ToolEnded,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
    of_a_child,
)
from acp_agent.ids import CallId, MessageId, SessionId, TurnId, new_message_id

CUT_COMPACTION = "The agent was stopped before it was done."

_OF_COMMANDS = frozenset({BackgroundCommandChanged, ChildWorked})


def close_open_turn(events: Sequence[Event]) -> list[AnyEvent]:
    """Return the events that close an open turn at the end of the journal; [] if none is open.

    They also close the turn's open compactions and child sessions.
    """
    cut = interruption_of(events)
    if cut is None:
        return []
    compactions: dict[str, None] = {}
    children: dict[SessionId, list[ChildWorked]] = {}  # running children with their events
    for event in events:
        if isinstance(event, CompactionChanged):
            if event.status == "in_progress":
                compactions[event.compaction] = None
            else:
                compactions.pop(event.compaction, None)
        elif isinstance(event, SubagentChanged):
            if event.state in {"running", "requires_action"}:
                children.setdefault(event.session, [])
            elif event.state is not None:
                children.pop(event.session, None)
        elif isinstance(event, ChildWorked) and event.session in children:
            children[event.session].append(event)
    return [
        *(
            CompactionChanged(compaction=one, status="failed", error=CUT_COMPACTION)
            for one in compactions
        ),
        *(event for child, work in children.items() for event in _closing_child(child, work)),
        cut,
    ]


def close_for_client(events: Sequence[Event], reason: str) -> list[AnyEvent]:
    """Return the events that close the running turn for a client that is shown no more of it."""
    cut = interruption_of(events)
    if cut is None:
        return []
    return [
        *close_open_turn(events)[:-1],
        *(ToolEnded(call=call, failed=True, cancelled=True, result=reason) for call in cut.calls),
    ]


def _closing_child(child: SessionId, work: Sequence[ChildWorked]) -> Iterator[AnyEvent]:
    for event in close_open_turn([one.did for one in work]):
        yield ChildWorked(session=child, call=work[-1].call, did=event)
    yield SubagentChanged(session=child, state="idle", stop_reason="cancelled")


def close_lost_commands(events: Iterable[Event]) -> list[AnyEvent]:
    """Return the events that close the background commands of a process that died.

    They include those of child sessions.
    """
    running: dict[CallId, AnyEvent] = {}
    for event in events:
        if type(event) not in _OF_COMMANDS:  # a fast path: most events are others
            continue
        change = of_a_child(event)
        if not isinstance(change, BackgroundCommandChanged):
            continue
        lost = msgspec.structs.replace(change, status="lost")
        if change.status != "running":
            running.pop(change.call, None)
        elif isinstance(event, ChildWorked):
            running[change.call] = msgspec.structs.replace(event, did=lost)
        else:
            running[change.call] = lost
    return list(running.values())


def interruption_of(events: Sequence[Event]) -> TurnInterrupted | None:
    """Return the event that closes an open turn at the end of the journal; None if none is open.

    It names the unfinished message and the calls that did not end.
    """
    found = _open_turn(events)
    if found is None:
        return None
    turn, done = found
    writing: MessageId | None = None
    calls: dict[CallId, None] = {}
    for event in done:
        match event:
            case AgentText() | AgentThought():
                writing = event.message
            case ModelAnswered() if event.message == writing:
                writing = None
            case ToolCalled():
                calls[event.call] = None
            case ToolEnded():
                calls.pop(event.call, None)
            case _:
                pass
    return TurnInterrupted(turn=turn, message=new_message_id(), cut=writing, calls=tuple(calls))


def _open_turn(events: Sequence[Event]) -> tuple[TurnId, Sequence[Event]] | None:
    """Return the open turn at the end of the journal, and its events."""
    for back, event in enumerate(reversed(events), 1):
        if isinstance(event, TurnEnded | TurnInterrupted):
            break
        if isinstance(event, TurnStarted):
            return event.turn, events[-back:]
    return None
