"""Turn a damaged session into a consistent conversation.

A notice for the user and the model replaces events that cannot be read, and events that depend on
them are completed (`consistency`). The result depends on the events alone, so the conversation is
the same each time it is read; nothing is written. Imported only for journals with unreadable
events. See docs/decisions/damage.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, get_args

import msgspec

from acp_agent.events import AnyEvent, ChildWorked, NoticeShown
from acp_agent.ids import CallId, MessageId, SessionId
from acp_agent.platform.decoding import convert
from acp_agent.session.store.consistency import make_consistent
from acp_agent.session.store.records import DamagedEvent, StoredEvent, UnknownEvent

_NEWER_TITLE = (
    "Part of this conversation was written by a newer version of acp-agent and is not shown."
)
_NEWER_ADVICE = "Update acp-agent to see it."
_DAMAGE_ADVICE = "The readable part follows; `acp-agent sessions check` has details."

_KNOWN_TAGS = {kind.__struct_config__.tag for kind in get_args(AnyEvent)}
# The kinds whose text is worth reading in part, with the field of that text.
_TEXTS = {
    "user_message": "content",
    "agent_text": "text",
    "agent_thought": "text",
    "tool_called": "arguments",
    "tool_output": "text",
    "tool_ended": "result",
    "plan_changed": "entries",
}
_CONTROLS = bytes(range(0x20))
_ERROR_COLUMN = re.compile(r"line 1 column (\d+)$")


def recover(stored: Sequence[StoredEvent]) -> list[StoredEvent]:
    """Return the readable events, with notices and substitutes for those that are lost.

    A notice or substitute has the number and the time of the event that it replaces.
    """
    decoded = [_read(item) for item in stored]
    repaired: list[list[AnyEvent]] = [[] for _ in stored]
    for stream in _event_streams(decoded):
        for index, events in enumerate(stream):
            repaired[index] += events
    notes = _notices(stored, decoded)
    return [
        StoredEvent(item.seq, item.at, event)
        for index, item in enumerate(stored)
        for event in (*notes.get(index, ()), *repaired[index])
    ]


def _read(item: StoredEvent) -> AnyEvent | None:
    """Return the event, or its readable part; None if nothing can be read."""
    if isinstance(item.event, DamagedEvent):
        return salvage(item.event.raw)
    return None if isinstance(item.event, UnknownEvent) else item.event


# -- completed events ------------------------------------------------------------------------


def _event_streams(decoded: Sequence[AnyEvent | None]) -> Iterator[list[list[AnyEvent]]]:
    """Yield the events for each place: of the session, then of each child."""
    children = list(
        dict.fromkeys(event.session for event in decoded if isinstance(event, ChildWorked))
    )
    indexes = [index for index, event in enumerate(decoded) if not isinstance(event, ChildWorked)]
    yield _align(
        len(decoded),
        indexes,
        make_consistent([decoded[index] for index in indexes], "lost"),
    )
    for number, child in enumerate(children):
        yield _child_stream(decoded, child, f"lost_{number}")


def _child_stream(
    decoded: Sequence[AnyEvent | None], child: SessionId, name: str
) -> list[list[AnyEvent]]:
    indexes: list[int] = []
    child_events: list[AnyEvent | None] = []
    calls: list[CallId | None] = []  # the parent's calls
    for index, event in enumerate(decoded):
        if event is None or (isinstance(event, ChildWorked) and event.session == child):
            indexes.append(index)
            child_events.append(None if event is None else event.did)
            calls.append(None if event is None else event.call)
    next_call: CallId | None = None
    for index in reversed(range(len(calls))):
        next_call = calls[index] = calls[index] or next_call
    wrapped: list[list[AnyEvent]] = [
        [ChildWorked(session=child, call=call, did=child_event) for child_event in events]
        if call
        else []
        for call, events in zip(calls, make_consistent(child_events, name), strict=True)
    ]
    return _align(len(decoded), indexes, wrapped)


def _align(
    length: int, indexes: Sequence[int], events: Sequence[list[AnyEvent]]
) -> list[list[AnyEvent]]:
    aligned: list[list[AnyEvent]] = [[] for _ in range(length)]
    for index, replacement in zip(indexes, events, strict=True):
        aligned[index] = replacement
    return aligned


# -- notices ---------------------------------------------------------------------------------


def _notices(
    stored: Sequence[StoredEvent], decoded: Sequence[AnyEvent | None]
) -> dict[int, list[NoticeShown]]:
    """Return the notices by the place that each precedes: one for each run of lost events."""
    notes: dict[int, list[NoticeShown]] = {}
    newer = False
    run: list[tuple[StoredEvent, bool]] = []
    for index, item in enumerate(stored):
        if isinstance(item.event, UnknownEvent) and is_damaged_event(item.event):
            run.append((item, decoded[index] is not None))
            continue
        if run:
            notes[index - len(run)] = [_damage_notice(run)]
            run = []
        if isinstance(item.event, UnknownEvent) and not newer:
            newer = True
            notes.setdefault(index, []).append(
                NoticeShown(
                    severity="warning",
                    title=_NEWER_TITLE,
                    description=_NEWER_ADVICE,
                    message=MessageId(f"lost_{item.seq}"),
                )
            )
    if run:
        notes[len(stored) - len(run)] = [_damage_notice(run)]
    return notes


def is_damaged_event(event: UnknownEvent) -> bool:
    """Return whether this version should be able to read the event."""
    return isinstance(event, DamagedEvent) or event.tag in _KNOWN_TAGS


def _damage_notice(run: Sequence[tuple[StoredEvent, bool]]) -> NoticeShown:
    is_partial = all(is_readable for _, is_readable in run)
    extent = "incomplete" if is_partial else "missing"
    return NoticeShown(
        severity="warning",
        title=f"The journal is damaged here: a part of the conversation is {extent}.",
        description=_DAMAGE_ADVICE,
        message=MessageId(f"lost_{run[0][0].seq}"),
        for_model=f"[The record of this conversation is damaged: a part is {extent} here.]",
    )


def salvage(raw: bytes) -> AnyEvent | None:
    """Return the event with the readable part of its text; None if too little can be read."""
    value = _parse_beginning(raw)
    if not isinstance(value, dict):
        return None
    event_fields = value.get("did") if value.get("event") == "child_worked" else value
    if (
        not isinstance(event_fields, dict)
        or _TEXTS.get(str(event_fields.get("event")), "") not in event_fields
    ):
        return None
    if event_fields["event"] == "tool_called":
        _complete_call(event_fields)
    try:
        event: AnyEvent = convert(value, AnyEvent)
    except (msgspec.ValidationError, TypeError, ValueError):
        return None
    return event


def _parse_beginning(raw: bytes) -> Any:
    """Return the JSON value at the beginning of `raw`, as far as it can be parsed."""
    from pydantic_core import from_json  # noqa: PLC0415 - for damage only

    # Bytes that are not UTF-8 become U+FFFD; control characters would end a line or a text.
    text = raw.translate(bytes.maketrans(_CONTROLS, b" " * len(_CONTROLS)))
    data = text.decode("utf-8", "replace").encode()
    for _ in range(2):
        try:
            return from_json(data, allow_partial="trailing-strings")
        except ValueError as error:
            match = _ERROR_COLUMN.search(str(error))
            if match is None:
                return None
            data = data[: int(match[1]) - 1]
    return None


def _complete_call(event_fields: dict[str, Any]) -> None:
    """Add the required fields that follow the arguments of a call that was cut off there."""
    event_fields.setdefault("title", event_fields.get("name", ""))
    try:
        msgspec.json.decode(str(event_fields["arguments"]).encode())
    except msgspec.DecodeError:
        event_fields["arguments"] = "{}"
