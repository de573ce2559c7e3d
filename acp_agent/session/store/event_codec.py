"""Encode, decode and merge events for the journal."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from acp_agent.errors import InvalidInputError, StoreDamagedError
from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    ChildWorked,
    CompactionSummaryText,
    Event,
    ToolCalled,
    ToolEnded,
    ToolOutput,
)
from acp_agent.ids import CallId
from acp_agent.platform.decoding import json_decoder
from acp_agent.session.store.records import StoredEvent, UnknownEvent

MAX_EVENT_BYTES = 64 * 1024 * 1024

_encoder = msgspec.json.Encoder()
MAX_MERGED_CHARACTERS = 1 << 20  # limits the size of a row, and of an update sent to an editor
EventT = TypeVar("EventT", bound=Struct)


class _Tagged(msgspec.Struct):
    event: str


@cache
def _decoder() -> msgspec.json.Decoder[AnyEvent]:
    # Built on first use: start-up has no event to read.
    return json_decoder(AnyEvent)


@cache
def _tag_decoder() -> msgspec.json.Decoder[_Tagged]:
    return json_decoder(_Tagged)


def encode_event(event: AnyEvent | UnknownEvent) -> bytes:
    """Encode an event as UTF-8 JSON.

    Raises:
        InvalidInputError: JSON cannot represent it, or it exceeds the size limit.
    """
    if isinstance(event, UnknownEvent):
        return event.raw
    try:
        body = _encoder.encode(event)
    except UnicodeEncodeError:
        body = _encoder.encode(replace_all_surrogates(msgspec.to_builtins(event)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"this cannot be kept in the session: {str(error).splitlines()[0]}"
        ) from error
    if len(body) > MAX_EVENT_BYTES:
        raise InvalidInputError(
            f"{len(body) / 1e6:.0f} MB is too much for one step of a session, which keeps at most "
            f"{MAX_EVENT_BYTES / 1e6:.0f} MB; send less at once"
        )
    return body


def decode_event(body: bytes) -> AnyEvent | UnknownEvent:
    """Decode an event. Raises StoreDamagedError if the body is not JSON, or not an event."""
    try:
        return _decoder().decode(body)
    except msgspec.ValidationError:
        pass
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreDamagedError(f"not JSON: {error}") from error
    try:
        return UnknownEvent(_tag_decoder().decode(body).event, body)
    except msgspec.DecodeError as error:
        raise StoreDamagedError(f"not an event: {error}") from error


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates in `text`, which UTF-8 cannot represent.

    Two halves of a character from separate pieces become that character; a single half becomes
    U+FFFD.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def replace_all_surrogates(value: Any) -> Any:  # JSON values of any type
    """Replace lone surrogates in every text of a value."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, dict):
        return {
            replace_all_surrogates(key): replace_all_surrogates(item) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [replace_all_surrogates(item) for item in value]
    return value


def merge_adjacent(events: Sequence[EventT], *, output: bool = True) -> list[EventT]:
    """Merge adjacent pieces of the same text, up to about a million characters.

    Pieces belong to the same text if both are `AgentText` or `AgentThought` of one message,
    `ToolOutput` of one call, or `CompactionSummaryText` of one compaction. Output with bytes that
    are not UTF-8 is not merged. Events of child sessions are merged likewise. All other events keep
    their place, so neither the text nor the order of events changes. If `output` is false, no
    `ToolOutput` is merged.
    """
    merged: list[EventT] = []
    pieces: list[str] = []
    length = 0
    last: tuple[type[Event], str] | None = None
    for event in events:
        source, text = _piece(event)
        if source is not None and source[0] is ToolOutput and not output:
            source = None
        if source is not None and source == last and length + len(text) <= MAX_MERGED_CHARACTERS:
            pieces.append(text)
            length += len(text)
            continue
        _close(merged, pieces)
        merged.append(event)
        pieces, length, last = [text], len(text), source
    _close(merged, pieces)
    return merged


def _piece(event: object) -> tuple[tuple[type[Event], str] | None, str]:
    """Return the identity of the text that the event is a piece of, and the piece."""
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


def recovered_events(stored: Sequence[StoredEvent]) -> list[AnyEvent]:
    """Return the events, recovered if some cannot be read; see `recovery`."""
    return [
        item.event for item in readable_events(stored) if not isinstance(item.event, UnknownEvent)
    ]


def readable_events(stored: Sequence[StoredEvent]) -> Sequence[StoredEvent]:
    """Return the events with numbers and times, recovered if some cannot be read."""
    if _is_consistent(stored):
        return stored
    from acp_agent.session.store.recovery import recover  # noqa: PLC0415 - rarely needed

    return recover(stored)


def _is_consistent(stored: Sequence[StoredEvent]) -> bool:
    """Return whether all events can be read, and no call ends that has not begun.

    Such a call has a damaged id, at its beginning or its end.
    """
    calls: set[CallId] = set()
    for item in stored:
        event = item.event.did if isinstance(item.event, ChildWorked) else item.event
        if isinstance(event, ToolCalled):
            calls.add(event.call)
        elif isinstance(event, UnknownEvent) or (
            isinstance(event, ToolEnded) and event.call not in calls
        ):
            return False
    return True
