"""Decode parts of streamed answers: server-sent events, their JSON, calls and usage.

https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation. These
APIs repeat the event's name in the data, as its type. Where a service does not, the type is added.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin

import msgspec

from acp_agent.content import JsonObject
from acp_agent.events import Usage
from acp_agent.models.base import CallCut, CallDone
from acp_agent.models.request_parts import is_object
from acp_agent.platform.decoding import convert, json_decoder, struct_fields

EVENT_LIMIT = 64 * 1024 * 1024  # bytes of one event; no model sends nearly as many
_UNTYPED = re.compile(rb'\s*\{\s*"(?!type")')
_NAME = re.compile(rb"[\w.]{1,64}")
T = TypeVar("T")
_UNFIT: Final = object()
_MAX_TOKENS = 100_000_000  # tokens; no request has as many
Count = int | float | None


class BadStreamError(ValueError):
    """The bytes are not the expected kind of stream."""


class EventTooLargeError(ValueError):
    """An event is longer than the limit."""


class SseDecoder:
    """Splits the bytes of an event stream into the data of its events.

    It works on bytes, so a character that is split between two reads is decoded correctly.
    """

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        self._limit = limit
        self._line: list[bytes] = []  # the pieces of the unfinished line
        self._data: list[bytes] = []  # the data lines of the unfinished event
        self._data_size = 0  # including the line ends
        self._name = b""  # the name of the unfinished event
        self._size = 0
        self._after_cr = False
        self._started = False

    def feed(self, received: bytes) -> list[bytes]:
        """Add bytes and return the data of every event that is complete now.

        Raises:
            EventTooLargeError: an event is larger than the limit.
        """
        if not received:
            return []
        if self._after_cr and received.startswith(b"\n"):
            received = received[1:]  # the second half of a line end that was split
        self._after_cr = received.endswith(b"\r")
        if b"\n" not in received and b"\r" not in received:
            self._line.append(received)
            self._grow(len(received))
            return []
        lines = b"".join((*self._line, received)).splitlines(keepends=True)
        self._line = [] if lines[-1].endswith((b"\n", b"\r")) else [lines.pop()]
        complete: list[bytes] = []
        for raw_line in lines:
            line = raw_line.rstrip(b"\r\n")
            if not self._started:
                self._started = True
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line:
                self._take(line)
            else:
                if self._data:
                    complete.append(self._event())
                self._data, self._data_size, self._name = [], 0, b""
        self._size = 0
        self._grow(sum(map(len, self._line)) + self._data_size)
        return complete

    def end(self) -> list[bytes]:
        """Return the data of an event without its final empty line, which some servers omit.

        The standard drops such an event, so the caller must check that it is complete.
        """
        if self._line:
            self._take(b"".join(self._line))
        events = [self._event()] if self._data else []
        self._line, self._data, self._data_size, self._size = [], [], 0, 0
        return events

    def _event(self) -> bytes:
        """Return the data of the event, with its name as the type if the data may have none."""
        data = b"\n".join(self._data)
        if not self._name or not _UNTYPED.match(data) or not _NAME.fullmatch(self._name):
            return data
        # A type in the data counts, because the last of two keys does.
        return b'{"type":"%s",%s' % (self._name, data[data.index(b"{") + 1 :])

    def _take(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
        elif line == b"data":
            self._data.append(b"")
        elif line.startswith(b"event:"):
            self._name = line[6:].strip()
            return
        else:
            return  # a comment, or a field that these APIs do not use
        self._data_size += len(self._data[-1]) + 1

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > self._limit:
            raise EventTooLargeError(f"an event of the stream is larger than {self._limit} bytes")


def event_decoder(expected: type[T]) -> Callable[[bytes], T]:
    """Return a function that decodes one event to `expected`.

    The function accepts events that msgspec rejects. A provider may split a character into two
    events, each with one half of a surrogate pair; each event retains its half, and the journal
    joins them. Invalid UTF-8 becomes replacement characters. A field of the wrong type is left out,
    so that an addition to the API does not end an answer.

    The function raises msgspec.DecodeError for an event that cannot be decoded.
    """
    decode = json_decoder(expected).decode

    def decode_event(data: bytes) -> T:
        try:
            return decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return read_odd_event(data, expected, error)

    return decode_event


def read_odd_event(
    data: bytes, expected: type[T], error: msgspec.DecodeError | UnicodeDecodeError
) -> T:
    """Return the readable parts of an event; `error` is the error of strict decoding.

    Half a surrogate pair is preserved. A number written as text is converted, and a field of the
    wrong type is left out. If the event is a list, its first object is used; any other value is
    treated as an object without fields. A field that should be a list may have a single object.

    Raises:
        msgspec.DecodeError: the event is not JSON, or lacks a required field.
    """
    try:
        value: object = json.loads(data.decode("utf-8", "replace"))
        if isinstance(value, list):
            value = next((entry for entry in value if isinstance(entry, dict)), {})
        elif not isinstance(value, dict):
            value = {}
        converted = _convert(value, expected)
    except (ValueError, RecursionError):
        raise error from None
    if not isinstance(converted, expected):
        raise error
    return converted


def _convert(value: object, expected: Any) -> Any:
    """Return the part of a value that has the expected type, or `_UNFIT`."""
    if expected is msgspec.Raw:
        return msgspec.Raw(json.dumps(value).encode())
    options = get_args(expected) if get_origin(expected) in {Union, UnionType} else (expected,)
    for option in options:
        if isinstance(option, type) and issubclass(option, msgspec.Struct):
            converted = _struct(value, option)
        elif get_origin(option) is list and isinstance(value, list | dict):
            (kind,) = get_args(option)
            values = value if isinstance(value, list) else [value]
            converted = [
                element for raw in values if (element := _convert(raw, kind)) is not _UNFIT
            ]
        else:
            converted = _convert_plain(value, option)
        if converted is not _UNFIT:
            return converted
    return _UNFIT


def _struct(value: object, expected: type[msgspec.Struct]) -> object:
    if not isinstance(value, dict):
        return _UNFIT
    fields: dict[str, object] = {}
    for field in struct_fields(expected):
        if field.encode_name in value:
            converted = _convert(value[field.encode_name], field.type)
            if converted is not _UNFIT:
                fields[field.name] = converted
                continue
        if field.required:
            return _UNFIT
    return expected(**fields)


def _convert_plain(value: object, expected: Any) -> object:
    as_number = isinstance(value, str) and expected in {int, float}
    if value is None and expected not in {None, NoneType}:
        return _UNFIT
    try:
        converted: object = convert(value, expected, strict=not as_number)
    except msgspec.ValidationError:
        return _UNFIT
    return converted


def joined_arguments(pieces: Sequence[str]) -> str:
    """Join the pieces of a call's arguments to JSON text.

    Some services repeat themselves: each piece contains the previous ones, the whole text follows
    the pieces, or `{}` comes first. If the joined pieces are not an object, the pieces from the
    point of repetition on are used.
    """
    joined = "".join(pieces)
    if is_object(joined):
        return joined
    for at in range(1, len(pieces)):
        if not pieces[at].startswith("{"):
            continue
        earlier, remainder = pieces[:at], "".join(pieces[at:])
        repeats = "".join(earlier) in {"{}", remainder} or all(map(remainder.startswith, earlier))
        if repeats and is_object(remainder):
            return remainder
    return joined


def ended_call(
    index: int,
    name: str,
    pieces: Sequence[str],
    *,
    cut: bool,
    provider_data: JsonObject | None = None,
) -> CallDone | CallCut:
    """Return the end of a call; `cut` is true if the answer may be cut off in this call.

    Arguments that are a complete object were not cut off. Empty arguments may have been.
    """
    arguments = joined_arguments(pieces)
    if cut and not is_object(arguments):
        return CallCut(index=index, name=name, size=len(arguments))
    return CallDone(
        index=index, name=name, arguments=arguments or "{}", provider_data=provider_data
    )


def normalize_usage(
    input_tokens: Count,
    output_tokens: Count,
    *,
    cache_read: Count = None,
    cache_write: Count = None,
    reasoning: Count = None,
    total: Count = None,
    searches: Count = None,
) -> Usage:
    """Return the usage for a provider's counts; None is a count that it does not report.

    An impossible number counts as not reported. If more tokens are cached than sent, the service
    does not include cached tokens in the input, so they are added. If reasoning exceeds the output,
    or the total has room for it, the service does not include reasoning in the output, so it is
    added. xAI does so, and Gemini with its compatible endpoint (docs.x.ai, "Consumption and rate
    limits": reasoning counts to total_tokens, not to completion_tokens).
    """
    input_count, output_count = _number(input_tokens), _number(output_tokens)
    cache_reads, cache_writes, reasoning_count = (
        _number(cache_read),
        _number(cache_write),
        _number(reasoning),
    )
    if reasoning_count > output_count or (
        reasoning_count and _number(total) >= input_count + output_count + reasoning_count
    ):
        output_count += reasoning_count
    if cache_reads + cache_writes > input_count:
        input_count += cache_reads + cache_writes
    return Usage(
        input=input_count,
        output=output_count,
        cache_read=cache_reads,
        cache_write=cache_writes,
        reasoning=reasoning_count,
        searches=_number(searches),
    )


def _number(count: Count) -> int:
    return 0 if count is None or not 0 <= count <= _MAX_TOKENS else int(count)
