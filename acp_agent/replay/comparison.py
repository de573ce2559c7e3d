"""Compare a replay with its record: first the requests, then the events, turn by turn."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from acp_agent.events import AnyEvent, SystemPromptWritten, TurnStarted, of_a_child

_LINES = 60  # of one diff


class Difference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A difference between a record and its replay.

    `request` is the number of the request in the record, 0 if an event differs. `field` is the path
    of the value, and `diff` a unified diff from the record to the replay.
    """

    turn: int
    request: int = 0
    field: str
    diff: str


def values_differ(
    recorded: object, replayed: object, *, turn: int, field: str, request: int = 0
) -> list[Difference]:
    """Return the differences of two values, each with the path of the smallest such part."""
    old, new = msgspec.to_builtins(recorded), msgspec.to_builtins(replayed)
    return [
        Difference(turn=turn, request=request, field=place, diff=unified(one, other))
        for place, one, other in _parts(field, old, new)
    ]


_NONE = object()


def _parts(place: str, old: Any, new: Any) -> list[tuple[str, Any, Any]]:
    if old == new:
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        if old.get("event") != new.get("event") or old.get("kind") != new.get("kind"):
            return [(place, old, new)]
        keys = [*old, *(key for key in new if key not in old)]
        return [
            found
            for key in keys
            for found in _parts(f"{place}.{key}", old.get(key, _NONE), new.get(key, _NONE))
        ]
    if isinstance(old, list | tuple) and isinstance(new, list | tuple) and len(old) == len(new):
        return [
            found
            for index, (one, other) in enumerate(zip(old, new, strict=True))
            for found in _parts(f"{place}[{index}]", one, other)
        ]
    return [(place, old, new)]


def unified(old: Any, new: Any) -> str:
    """Return a unified diff of two values: texts by line, others as indented JSON."""
    lines = list(
        difflib.unified_diff(_lines(old), _lines(new), "record", "replay", lineterm="", n=3)
    )
    if len(lines) > _LINES:
        lines[_LINES:] = [f"… {len(lines) - _LINES} more lines"]
    return "\n".join(lines)


def _lines(value: Any) -> list[str]:
    if value is _NONE:
        return []
    if isinstance(value, str):
        return value.split("\n")
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return text.split("\n")


def compare_events(recorded: Sequence[AnyEvent], replayed: Sequence[AnyEvent]) -> list[Difference]:
    """Return the first difference of each turn."""
    old, new = _turns(recorded), _turns(replayed)
    found: list[Difference] = []
    for number in range(max(len(old), len(new))):
        one = old[number] if number < len(old) else []
        other = new[number] if number < len(new) else []
        found += _first(one, other, number)[:1]
    return found


def _turns(events: Sequence[AnyEvent]) -> list[list[AnyEvent]]:
    """Return the events before the first turn, then those of each turn."""
    turns: list[list[AnyEvent]] = [[]]
    for event in events:
        if isinstance(event, TurnStarted):
            turns.append([])
        turns[-1].append(event)
    return turns


def _first(old: list[AnyEvent], new: list[AnyEvent], turn: int) -> list[Difference]:
    for index in range(max(len(old), len(new))):
        one = old[index] if index < len(old) else None
        other = new[index] if index < len(new) else None
        did = of_a_child(one)
        if isinstance(did, SystemPromptWritten) and not did.text:
            continue  # not recorded
        name = _name(one if one is not None else other)
        if one is None or other is None or type(one) is not type(other):
            # The surrounding events explain more than one missing event.
            first = max(0, index - 1)
            before, after = old[first : index + 3], new[first : index + 3]
            return [
                Difference(turn=turn, field=name, diff=unified(_builtins(before), _builtins(after)))
            ]
        if found := values_differ(one, other, turn=turn, field=name):
            return found
    return []


def _builtins(events: Sequence[AnyEvent]) -> Any:
    return [msgspec.to_builtins(event) for event in events]


def _name(event: AnyEvent | None) -> str:
    tag = None if event is None else type(event).__struct_config__.tag
    return str(tag or "event")
