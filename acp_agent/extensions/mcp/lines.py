"""Lines of a program's output, however long or broken they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from msgspec import Struct

_PIECE = 65_536  # bytes that are read at a time


class LongLine(Struct, frozen=True):
    """A line over the limit: its beginning; the rest was thrown away."""

    head: bytes


async def read_lines(
    stream: asyncio.StreamReader, *, limit: int, head: int = 4_096
) -> AsyncIterator[bytes | LongLine]:
    """The lines of a stream without their ends, those that are empty left out.

    Args:
        stream: where they come from.
        limit: bytes of the longest line that is given whole.
        head: bytes of a longer one that are kept.
    """
    held = bytearray()
    long = False
    while data := await stream.read(_PIECE):
        *ended, rest = data.split(b"\n")
        for piece in ended:
            if not long:
                held += piece
            if line := _line(held, limit, head, long=long):
                yield line
            held, long = bytearray(), False
        if not long:
            held += rest
            if len(held) > limit:
                long = True
                del held[head:]
    if line := _line(held, limit, head, long=long):
        yield line


def _line(held: bytearray, limit: int, head: int, *, long: bool) -> bytes | LongLine | None:
    if long or len(held) > limit:
        return LongLine(bytes(held[:head]))
    return bytes(held).strip() or None
