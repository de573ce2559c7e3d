"""Pieces of one text become one event before they are stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.events import (
    AgentText,
    AgentThought,
    ChildWorked,
    CompactionSummaryText,
    Event,
    ToolOutput,
)

MERGED_CHARACTERS = 1 << 20  # keeps one row, and one update sent to an editor, of moderate size

EventT = TypeVar("EventT", bound=Struct)


def merge_adjacent(events: Sequence[EventT], *, output: bool = True) -> list[EventT]:
    """Join neighbours that are pieces of the same text, up to about a million characters.

    Pieces are of the same text when both are `AgentText` or `AgentThought` of one message,
    `ToolOutput` of one call, or `CompactionSummaryText` of one compaction. Output with bytes that
    are not UTF-8 stays by itself. What child sessions did is joined likewise. Everything else keeps
    its place, so the concatenated text and the order of what surrounds it do not change. With
    `output` false every `ToolOutput` stays by itself.
    """
    merged: list[EventT] = []
    pieces: list[str] = []
    length = 0
    last: tuple[type[Event], str] | None = None
    for event in events:
        source, text = _piece(event)
        if source is not None and source[0] is ToolOutput and not output:
            source = None
        if source is not None and source == last and length + len(text) <= MERGED_CHARACTERS:
            pieces.append(text)
            length += len(text)
            continue
        _close(merged, pieces)
        merged.append(event)
        pieces, length, last = [text], len(text), source
    _close(merged, pieces)
    return merged


def _piece(event: object) -> tuple[tuple[type[Event], str] | None, str]:
    """Which text the event is a piece of, and the piece."""
    if isinstance(event, AgentText | AgentThought):
        return (type(event), event.message), event.text
    if isinstance(event, ToolOutput) and not event.invalid:
        return (ToolOutput, event.call), event.text
    if isinstance(event, CompactionSummaryText):
        return (CompactionSummaryText, event.compaction), event.text
    if isinstance(event, ChildWorked):
        source, text = _piece(event.did)
        return None if source is None else (source[0], f"{event.session} {source[1]}"), text
    return None, ""


def _close(merged: list[EventT], pieces: list[str]) -> None:
    if len(pieces) > 1:
        merged[-1] = _with_text(merged[-1], "".join(pieces))


def _with_text(event: EventT, text: str) -> EventT:
    if isinstance(event, ChildWorked):
        return replace(event, did=_with_text(event.did, text))
    return replace(event, text=text)
