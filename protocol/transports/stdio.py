"""Messages as lines over two file descriptors: pipes, sockets, files or terminals.

The descriptors stay in blocking mode: their open file is shared with other processes, whom a
change of mode would surprise.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator

from protocol.transports.base import LIMIT, BoundedText, Oversize
from protocol.transports.descriptor_writer import DescriptorWriter, wait_readable

_PIECE = 64 * 1024  # bytes asked for at once; what a pipe holds
_READ_AHEAD = 16  # pieces that may be ahead of `read_message` before reading pauses
_DRAIN_TIMEOUT = 0.25  # seconds in which a peer that reads no more is still listened to


class StdioTransport:
    """One side of a connection over descriptors; see `transports.base.Transport`.

    Args:
        in_fd: Where messages come from. Leave it open: after `close` a thread may still read it,
            and would then read whatever gets its number.
        out_fd: Where messages go.
        initial: What was read from `in_fd` already.
        limit: The longest line in bytes; longer ones are reported and thrown away.
    """

    def __init__(
        self, in_fd: int, out_fd: int, *, initial: bytes = b"", limit: int = LIMIT
    ) -> None:
        self.on_idle: Callable[[], None] | None = None
        self._in_fd = in_fd
        self._splitter = LineSplitter(limit)
        self._messages: deque[bytes | Oversize] = deque(self._splitter.feed(initial))
        self._ended = False
        self._reader: threading.Thread | None = None
        self._room = threading.Semaphore(_READ_AHEAD)
        self._unread = 0  # pieces that arrived and whose lines were not all asked for yet
        self._arrival: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._writer = DescriptorWriter(out_fd, on_idle=self._idle)

    @property
    def gone(self) -> bool:
        """Whether the peer reads no more."""
        return self._writer.gone

    @property
    def waiting(self) -> bool:
        """Whether the peer reads slower than is written."""
        return self._writer.waiting

    @property
    def queued(self) -> int:
        """Bytes written and not passed on yet."""
        return self._writer.queued

    async def read_message(self) -> bytes | Oversize | None:
        """The next line; None after the last one, after `close`, and when the peer is gone.

        What a peer wrote before it died is read up to its end.
        """
        while not self._messages:
            self._make_room()
            if self._ended:
                return None
            if self._reader is None:
                self._start_reading()
            self._arrival = asyncio.get_running_loop().create_future()
            try:
                await self._arrival
            finally:
                self._arrival = None
        return self._messages.popleft()

    def write(self, data: bytes) -> None:
        """Send whole lines."""
        self._writer.write(data)

    async def flush(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds until all is passed on; whether it was."""
        return await self._writer.flush(timeout)

    def close(self) -> None:
        """Stop reading. The thread that reads ends with the process or the peer's next byte."""
        self._messages.clear()
        self._make_room()
        self._end()

    def _idle(self) -> None:
        if self._writer.gone:
            # Mostly it has closed its side as well, and what is in the pipe ends by itself.
            asyncio.get_running_loop().call_later(_DRAIN_TIMEOUT, self._end)
        if self.on_idle is not None:
            self.on_idle()

    def _start_reading(self) -> None:
        self._loop = asyncio.get_running_loop()
        # A daemon: a read from a quiet peer cannot be interrupted, and must not hold up the exit.
        self._reader = threading.Thread(target=self._read, name="stdio-reader", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._loop is not None
        piece = b"-"
        while piece and not self._ended:
            try:
                piece = os.read(self._in_fd, _PIECE)
            except BlockingIOError:  # whoever shares the open file made it non-blocking
                wait_readable(self._in_fd)
                continue
            except OSError:
                piece = b""  # a reset socket or a hung-up terminal is an end, too
            self._room.acquire()
            try:
                self._loop.call_soon_threadsafe(self._arrived, piece)
            except RuntimeError:  # the loop is closed
                return

    def _arrived(self, piece: bytes) -> None:
        self._unread += 1
        if self._ended:
            return
        if piece:
            self._messages.extend(self._splitter.feed(piece))
        else:
            last = self._splitter.finish()
            if last is not None:
                self._messages.append(last)
            self._ended = True
        if not self._messages:
            self._make_room()  # part of a long line: nobody can ask for it yet
        self._wake()

    def _make_room(self) -> None:
        if self._unread:
            self._room.release(self._unread)
            self._unread = 0

    def _end(self) -> None:
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)


class LineSplitter:
    """Puts lines together from pieces of any size.

    A line of more than `limit` bytes is not kept: it is reported once it is over, and the lines
    after it come as usual.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._line = BoundedText(limit)

    def feed(self, piece: bytes) -> Iterator[bytes | Oversize]:
        """Yield the lines that `piece` ends, without their line ends and without blank ones."""
        start = 0
        while (end := piece.find(b"\n", start)) >= 0:
            self._line.add(piece[start:end])
            start = end + 1
            line = self.finish()
            if line is not None:
                yield line
        if start < len(piece):
            self._line.add(piece[start:] if start else piece)

    def finish(self) -> bytes | Oversize | None:
        """The last line, where the stream ended without a line end."""
        line = self._line.take()
        return None if isinstance(line, bytes) and (not line or line.isspace()) else line
