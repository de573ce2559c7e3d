"""Messages with a Content-Length header over two streams, as the Language Server Protocol has them.

Specification: Language Server Protocol 3.17, Base Protocol. A connection writes whole lines, each
of which is one message here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from protocol.transports.base import BoundedText, Oversize

MESSAGE_LIMIT = 16 * 1024 * 1024  # bytes of one message
_HEADER_LIMIT = 4 * 1024  # bytes
_PIECE = 64 * 1024  # bytes read at once
_BURST = 1024 * 1024  # bytes read without a pause
_PAUSE = 0.02  # seconds; a peer that floods is read no faster than this, and nothing else starves
_LONGEST_LENGTH = 15  # digits


class ContentLengthTransport:
    """One side of a connection over streams; see `transports.base.Transport`.

    What has no valid header ends the connection, for nothing after it can be found again.

    Args:
        reader: where messages come from.
        writer: where they go.
        limit: the longest message in bytes; longer ones are reported and thrown away.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        limit: int = MESSAGE_LIMIT,
    ) -> None:
        self.on_idle: Callable[[], None] | None = None
        self.broken = ""  # why reading ended, where the peer's bytes are the reason
        self._reader = reader
        self._writer = writer
        self._limit = limit
        self._held = bytearray()
        self._burst = 0
        self._closed = False
        self._reading: asyncio.Future[bytes] | None = None
        self._lost = False
        self._draining: asyncio.Task[None] | None = None
        writer.transport.set_write_buffer_limits(0)  # `drain` waits until all is passed on

    @property
    def gone(self) -> bool:
        """Whether the peer reads no more."""
        return self._lost or self._writer.transport.is_closing()

    @property
    def waiting(self) -> bool:
        """Whether the peer reads slower than is written."""
        return self._draining is not None

    @property
    def queued(self) -> int:
        """Bytes written and not passed on yet."""
        return self._writer.transport.get_write_buffer_size()

    async def read_message(self) -> bytes | Oversize | None:
        """Return the next message; None at the end, after `close`, and after what is no message."""
        with suppress(OSError):
            length = await self._read_header()
            if length is not None:
                return await self._read_body(length)
        return None

    def write(self, data: bytes) -> None:
        """Send whole lines, each as a message."""
        if self.gone:
            return
        for line in data.splitlines():
            self._writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(line), line))
        if self._draining is None and self.queued:
            self._draining = asyncio.create_task(self._drain())

    async def flush(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds until all is passed on; whether it was."""
        if self._draining is not None:
            await asyncio.wait([self._draining], timeout=timeout)
        return not self.queued and not self.gone

    def close(self) -> None:
        """Stop reading."""
        self._closed = True
        if self._reading is not None:
            self._reading.cancel()

    async def _drain(self) -> None:
        try:
            await self._writer.drain()
        except OSError:
            self._lost = True
        finally:
            self._draining = None
            if self.on_idle is not None:
                self.on_idle()

    async def _read_header(self) -> int | None:
        """Return the length of the next message; None at the end."""
        while (end := self._held.find(b"\r\n\r\n")) < 0:
            if len(self._held) > _HEADER_LIMIT:
                self.broken = "it writes what is no message to its output"
                return None
            piece = await self._read()
            if not piece:
                return None
            self._held += piece
        length = _content_length(bytes(self._held[:end]))
        if length is None:
            self.broken = "it writes a message without a valid Content-Length"
            return None
        del self._held[: end + 4]
        return length

    async def _read_body(self, length: int) -> bytes | Oversize | None:
        body = BoundedText(self._limit)
        while length:
            piece = bytes(self._held[:length]) or await self._read()
            if not piece:
                return None
            if self._held:
                del self._held[: len(piece)]
            elif len(piece) > length:
                self._held += piece[length:]
                piece = piece[:length]
            length -= len(piece)
            body.add(piece)
        return body.take()

    async def _read(self) -> bytes:
        """Return the next bytes; none at the end or after `close`."""
        if self._burst > _BURST:
            self._burst = 0
            await asyncio.sleep(_PAUSE)
        if self._closed:
            return b""
        self._reading = asyncio.ensure_future(self._reader.read(_PIECE))
        try:
            piece = await self._reading
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return b""  # `close` did it
        self._burst += len(piece)
        return piece


def _content_length(header: bytes) -> int | None:
    for line in header.split(b"\n"):  # some programs write a line of text before their first header
        name, _, value = line.partition(b":")
        digits = value.strip()
        if name.strip().lower() == b"content-length":
            valid = digits.isdigit() and len(digits) <= _LONGEST_LENGTH
            return int(digits) if valid else None
    return None
