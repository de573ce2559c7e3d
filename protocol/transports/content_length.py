"""Messages with a Content-Length header over two streams, as in the Language Server Protocol.

Specification: Language Server Protocol 3.17, Base Protocol. A connection writes whole lines; each
is one message here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from protocol.transports.base import BoundedText, Oversize

MESSAGE_LIMIT = 16 * 1024 * 1024  # bytes of one message
_HEADER_LIMIT = 4 * 1024  # bytes
_PIECE = 64 * 1024  # bytes per read
_BURST = 1024 * 1024  # bytes read without a pause
_PAUSE = 0.02  # seconds between bursts, so that a flooding peer does not starve other tasks
_LONGEST_LENGTH = 15  # digits


class ContentLengthTransport:
    """One side of a connection over streams; see `transports.base.Transport`.

    An invalid header ends the connection, because the next message cannot be found.

    Args:
        reader: the stream to read messages from.
        limit: the longest message in bytes; longer ones are reported and discarded.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        limit: int = MESSAGE_LIMIT,
    ) -> None:
        self.on_idle: Callable[[], None] | None = None
        self.broken = ""  # why reading ended, if the peer's output was invalid
        self.received = 0  # bytes read so far
        self._reader = reader
        self._writer = writer
        self._limit = limit
        self._held = bytearray()
        self._burst = 0
        self._closed = False
        self._reading: asyncio.Future[bytes] | None = None
        self._lost = False
        self._draining: asyncio.Task[None] | None = None
        writer.transport.set_write_buffer_limits(0)  # `drain` waits until everything is sent

    @property
    def disconnected(self) -> bool:
        """Return whether the peer has stopped reading."""
        return self._lost or self._writer.transport.is_closing()

    @property
    def waiting(self) -> bool:
        """Return whether output waits because the peer reads too slowly."""
        return self._draining is not None

    @property
    def queued(self) -> int:
        """Return the number of bytes that are not sent yet."""
        return self._writer.transport.get_write_buffer_size()

    async def read_message(self) -> bytes | Oversize | None:
        """Return the next message; None at the end, after `close`, and after invalid input."""
        with suppress(OSError):
            length = await self._read_header()
            if length is not None:
                return await self._read_body(length)
        return None

    def write(self, data: bytes) -> None:
        """Send whole lines, each as a message."""
        if self.disconnected:
            return
        for line in data.splitlines():
            self._writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(line), line))
        if self._draining is None and self.queued:
            self._draining = asyncio.create_task(self._drain())

    async def flush(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds until all output is sent; return whether it was."""
        if self._draining is not None:
            await asyncio.wait([self._draining], timeout=timeout)
        return not self.queued and not self.disconnected

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
            return b""  # cancelled by `close`
        self._burst += len(piece)
        self.received += len(piece)
        return piece


def _content_length(header: bytes) -> int | None:
    for line in header.split(b"\n"):  # some programs write a line of text before their first header
        name, _, value = line.partition(b":")
        digits = value.strip()
        if name.strip().lower() == b"content-length":
            valid = digits.isdigit() and len(digits) <= _LONGEST_LENGTH
            return int(digits) if valid else None
    return None
