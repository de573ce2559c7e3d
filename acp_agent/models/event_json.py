"""The JSON of a stream's events."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

T = TypeVar("T")


def event_decoder(expected: type[T]) -> Callable[[bytes], T]:
    """A function that decodes one event to `expected`.

    A character that a provider cuts in half (one half of a surrogate pair in each of two events) is
    no valid text to msgspec; such an event is decoded with its half, for the journal to mend.

    The function raises msgspec.DecodeError for an event that cannot be read.
    """
    decode = msgspec.json.Decoder(expected).decode

    def decode_event(data: bytes) -> T:
        try:
            return decode(data)
        except msgspec.DecodeError as error:
            if isinstance(error, msgspec.ValidationError) or b"\\ud" not in data.lower():
                raise
            import json  # noqa: PLC0415 - for the rare event

            try:
                return msgspec.convert(json.loads(data), expected)
            except ValueError:
                raise error from None

    return decode_event
