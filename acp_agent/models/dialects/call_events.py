"""Convert calls that were read from a text to events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from acp_agent.models.base import CallCut, CallDelta, CallDone, CallStarted, StreamEvent

if TYPE_CHECKING:
    from acp_agent.models.dialects.form import Tools, WrittenCall


def convert_calls(calls: Iterable[WrittenCall]) -> list[StreamEvent]:
    """Return the events of calls."""
    events: list[StreamEvent] = []
    for index, call in enumerate(calls):
        events += [
            CallStarted(index=index, name=call.name),
            CallDelta(index=index, text=call.arguments),
            CallDone(index=index, name=call.name, arguments=call.arguments),
        ]
    return events


def cut_off(event: StreamEvent) -> StreamEvent:
    """Return the event of a call that was cut off, in place of a complete call."""
    if not isinstance(event, CallDone):
        return event
    return CallCut(index=event.index, name=event.name, size=len(event.arguments))


def are_known(events: Iterable[StreamEvent], tools: Tools) -> bool:
    """Return whether all calls are of known tools; a call that was cut off may have no name."""
    return all(
        event.name in tools or (isinstance(event, CallCut) and not event.name)
        for event in events
        if isinstance(event, CallDone | CallCut)
    )
