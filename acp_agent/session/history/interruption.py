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
    unwrap_child_event,
)
from acp_agent.ids import CallId, MessageId, SessionId, TurnId, new_message_id

CUT_COMPACTION = "The agent was stopped before it was done."

_COMMAND_EVENTS = frozenset({BackgroundCommandChanged, ChildWorked})


def close_open_turn(events: Sequence[Event]) -> list[AnyEvent]:
    """Return the events that close an open turn at the end of the journal; [] if none is open.

    They also close the turn's open compactions and child sessions.
    """
    interruption = find_interruption(events)
    if interruption is None:
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
            CompactionChanged(compaction=compaction, status="failed", error=CUT_COMPACTION)
            for compaction in compactions
        ),
        *(event for child, work in children.items() for event in _close_child(child, work)),
        interruption,
    ]


def close_for_client(events: Sequence[Event], reason: str) -> list[AnyEvent]:
    """Return the events that close the running turn for a client that is shown no more of it."""
    interruption = find_interruption(events)
    if interruption is None:
        return []
    return [
        *close_open_turn(events)[:-1],
        *(
            ToolEnded(call=call, failed=True, cancelled=True, result=reason)
            for call in interruption.calls
        ),
    ]


def _close_child(child: SessionId, work: Sequence[ChildWorked]) -> Iterator[AnyEvent]:
    for event in close_open_turn([child_event.did for child_event in work]):
        yield ChildWorked(session=child, call=work[-1].call, did=event)
    yield SubagentChanged(session=child, state="idle", stop_reason="cancelled")


def close_lost_commands(events: Iterable[Event]) -> list[AnyEvent]:
    """Return the events that close the background commands of a process that died.

    They include those of child sessions.
    """
    running: dict[CallId, AnyEvent] = {}
    for event in events:
        if type(event) not in _COMMAND_EVENTS:  # a fast path: most events are others
            continue
        change = unwrap_child_event(event)
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


def find_interruption(events: Sequence[Event]) -> TurnInterrupted | None:
    """Return the event that closes an open turn at the end of the journal; None if none is open.

    It names the unfinished message and the calls that did not end.
    """
    open_turn = _open_turn(events)
    if open_turn is None:
        return None
    turn, turn_events = open_turn
    open_message: MessageId | None = None
    calls: dict[CallId, None] = {}
    for event in turn_events:
        match event:
            case AgentText() | AgentThought():
                open_message = event.message
            case ModelAnswered() if event.message == open_message:
                open_message = None
            case ToolCalled():
                calls[event.call] = None
            case ToolEnded():
                calls.pop(event.call, None)
    return TurnInterrupted(
        turn=turn, message=new_message_id(), cut=open_message, calls=tuple(calls)
    )


def _open_turn(events: Sequence[Event]) -> tuple[TurnId, Sequence[Event]] | None:
    """Return the open turn at the end of the journal, and its events."""
    for count, event in enumerate(reversed(events), 1):
        if isinstance(event, TurnEnded | TurnInterrupted):
            break
        if isinstance(event, TurnStarted):
            return event.turn, events[-count:]
    return None
