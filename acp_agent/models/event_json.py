"""The JSON of a stream's events."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

T = TypeVar("T")


def event_decoder(expected: type[T]) -> Callable[[bytes], T]:
    """A function that decodes one event to `expected`.

    A character that a provider cuts in half (one half of a surrogate pair in each of two events) is
    no valid text to msgspec; such an event is decoded with its half, for the journal to mend. A
    field that is not of its type is left out, so that what an API adds does not end an answer.

    The function raises msgspec.DecodeError for an event that cannot be read.
    """
    decode = msgspec.json.Decoder(expected).decode

    def decode_event(data: bytes) -> T:
        try:
            return decode(data)
        except msgspec.DecodeError as error:
            from acp_agent.models.odd_event import read_odd_event  # noqa: PLC0415 - for the rare

            return read_odd_event(data, expected, error)

    return decode_event
