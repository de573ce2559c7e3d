"""Compare a replay with its record: first the requests, then the events, turn by turn."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from acp_agent.events import AnyEvent, SystemPromptWritten, TurnStarted, unwrap_child_event

_MAX_DIFF_LINES = 60  # of one diff
_MISSING = object()


class Difference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A difference between a record and its replay.

    `request` is the number of the request in the record, 0 if an event differs. `field` is the path
    of the value, and `diff` a unified diff from the record to the replay.
    """

    turn: int
    request: int = 0
    field: str
    diff: str


def compare_values(
    recorded: object, replayed: object, *, turn: int, field: str, request: int = 0
) -> list[Difference]:
    """Return the differences of two values, each with the path of the smallest such part."""
    old, new = msgspec.to_builtins(recorded), msgspec.to_builtins(replayed)
    return [
        Difference(turn=turn, request=request, field=path, diff=unified(old_value, new_value))
        for path, old_value, new_value in _smallest_differences(field, old, new)
    ]


def _smallest_differences(path: str, old: Any, new: Any) -> list[tuple[str, Any, Any]]:
    if old == new:
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        if old.get("event") != new.get("event") or old.get("kind") != new.get("kind"):
            return [(path, old, new)]
        keys = [*old, *(key for key in new if key not in old)]
        return [
            difference
            for key in keys
            for difference in _smallest_differences(
                f"{path}.{key}", old.get(key, _MISSING), new.get(key, _MISSING)
            )
        ]
    if isinstance(old, list | tuple) and isinstance(new, list | tuple) and len(old) == len(new):
        return [
            difference
            for index, (old_item, new_item) in enumerate(zip(old, new, strict=True))
            for difference in _smallest_differences(f"{path}[{index}]", old_item, new_item)
        ]
    return [(path, old, new)]


def unified(old: Any, new: Any) -> str:
    """Return a unified diff of two values: texts by line, others as indented JSON."""
    lines = list(
        difflib.unified_diff(_lines(old), _lines(new), "record", "replay", lineterm="", n=3)
    )
    if len(lines) > _MAX_DIFF_LINES:
        lines[_MAX_DIFF_LINES:] = [f"… {len(lines) - _MAX_DIFF_LINES} more lines"]
    return "\n".join(lines)


def _lines(value: Any) -> list[str]:
    if value is _MISSING:
        return []
    if isinstance(value, str):
        return value.split("\n")
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return text.split("\n")


def compare_events(recorded: Sequence[AnyEvent], replayed: Sequence[AnyEvent]) -> list[Difference]:
    """Return the first difference of each turn."""
    old_turns, new_turns = _split_turns(recorded), _split_turns(replayed)
    differences: list[Difference] = []
    for number in range(max(len(old_turns), len(new_turns))):
        old_turn = old_turns[number] if number < len(old_turns) else []
        new_turn = new_turns[number] if number < len(new_turns) else []
        differences += _first_difference(old_turn, new_turn, number)[:1]
    return differences


def _split_turns(events: Sequence[AnyEvent]) -> list[list[AnyEvent]]:
    """Return the events before the first turn, then those of each turn."""
    turns: list[list[AnyEvent]] = [[]]
    for event in events:
        if isinstance(event, TurnStarted):
            turns.append([])
        turns[-1].append(event)
    return turns


def _first_difference(old: list[AnyEvent], new: list[AnyEvent], turn: int) -> list[Difference]:
    for index in range(max(len(old), len(new))):
        old_event = old[index] if index < len(old) else None
        new_event = new[index] if index < len(new) else None
        inner = unwrap_child_event(old_event)
        if isinstance(inner, SystemPromptWritten) and not inner.text:
            continue  # not recorded
        name = _event_name(old_event if old_event is not None else new_event)
        if old_event is None or new_event is None or type(old_event) is not type(new_event):
            # The surrounding events explain more than one missing event.
            start = max(0, index - 1)
            before, after = old[start : index + 3], new[start : index + 3]
            return [
                Difference(turn=turn, field=name, diff=unified(_builtins(before), _builtins(after)))
            ]
        if differences := compare_values(old_event, new_event, turn=turn, field=name):
            return differences
    return []


def _builtins(events: Sequence[AnyEvent]) -> Any:
    return [msgspec.to_builtins(event) for event in events]


def _event_name(event: AnyEvent | None) -> str:
    tag = None if event is None else type(event).__struct_config__.tag
    return str(tag or "event")
