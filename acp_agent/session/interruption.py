"""A turn that the process did not survive, and how the journal is closed behind it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    BackgroundCommandChanged,
    CompactionChanged,
    Event,
    ModelAnswered,
    ToolCalled,
    ToolEnded,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
)
from acp_agent.ids import CallId, MessageId, TurnId, new_message_id

CUT_COMPACTION = "The agent was stopped before it was done."


def closing(events: Sequence[Event]) -> list[AnyEvent]:
    """The events that close a turn found open at the journal's end, and a compaction in it."""
    cut = interruption(events)
    if cut is None:
        return []
    open_ones: dict[str, None] = {}
    for event in events:
        if isinstance(event, CompactionChanged):
            if event.status == "in_progress":
                open_ones[event.compaction] = None
            else:
                open_ones.pop(event.compaction, None)
    return [
        *(
            CompactionChanged(compaction=one, status="failed", error=CUT_COMPACTION)
            for one in open_ones
        ),
        cut,
    ]


def lost_commands(events: Iterable[Event]) -> list[AnyEvent]:
    """The events that close the background commands which ended with the process that ran them."""
    running: dict[CallId, BackgroundCommandChanged] = {}
    for event in events:
        if isinstance(event, BackgroundCommandChanged):
            if event.status == "running":
                running[event.call] = event
            else:
                running.pop(event.call, None)
    return [msgspec.structs.replace(event, status="lost") for event in running.values()]


def interruption(events: Iterable[Event]) -> TurnInterrupted | None:
    """The event that closes a turn found open at the journal's end; None where none is open.

    It names the message that was being written and the calls that never ended.
    """
    turn: TurnId | None = None
    writing: MessageId | None = None
    calls: dict[CallId, None] = {}
    for event in events:
        match event:
            case TurnStarted():
                turn, writing = event.turn, None
                calls.clear()
            case AgentText() | AgentThought():
                writing = event.message
            case ModelAnswered() if event.message == writing:
                writing = None
            case ToolCalled():
                calls[event.call] = None
            case ToolEnded():
                calls.pop(event.call, None)
            case TurnEnded() | TurnInterrupted():
                turn = None
            case _:
                pass
    if turn is None:
        return None
    return TurnInterrupted(turn=turn, message=new_message_id(), cut=writing, calls=tuple(calls))
