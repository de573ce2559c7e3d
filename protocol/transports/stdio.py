"""Transport messages as lines over two file descriptors: pipes, sockets, files or terminals.

The descriptors stay in blocking mode, because other processes share the open file and do not
expect a different mode. So a thread reads, and a writer sends without blocking the loop.
"""

from __future__ import annotations

import asyncio
import os
import queue
import select
import stat
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from protocol.transports.base import LIMIT, BoundedText, Oversize

_PIECE = 64 * 1024  # bytes per read; the capacity of a pipe
_READ_AHEAD = 16  # pieces that may be ahead of `read_message` before reading pauses
_DRAIN_TIMEOUT = 0.25  # seconds in which a peer that stopped reading is still read from
# A write of at most this many bytes to a descriptor that is ready does not block (POSIX, `write`).
ATOMIC: Final = int(getattr(select, "PIPE_BUF", 512))


class StdioTransport:
    """One side of a connection over descriptors; see `transports.base.Transport`.

    Args:
        in_fd: the descriptor to read from. Do not close it: after `close` a thread may still read
            it, and would then read another file that gets its number.
        initial: data that was already read from `in_fd`.
        limit: the longest line in bytes; longer ones are reported and discarded.
        ends_at_long_line: report an overlong line before its end, and stop reading.
    """

    def __init__(
        self,
        in_fd: int,
        out_fd: int,
        *,
        initial: bytes = b"",
        limit: int = LIMIT,
        ends_at_long_line: bool = False,
    ) -> None:
        self.on_idle: Callable[[], None] | None = None
        self._in_fd = in_fd
        self._splitter = LineSplitter(limit)
        self._limit = limit
        self._messages: deque[bytes | Oversize] = deque(self._splitter.feed(initial))
        self._ends_at_long_line = ends_at_long_line
        self._ended = False
        self._reader: threading.Thread | None = None
        self._room = threading.Semaphore(_READ_AHEAD)
        self._unread = 0  # pieces that arrived and whose lines were not all requested yet
        self._arrival: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._writer = DescriptorWriter(out_fd, on_idle=self._idle)

    @property
    def disconnected(self) -> bool:
        """Return whether the peer has stopped reading."""
        return self._writer.disconnected

    @property
    def waiting(self) -> bool:
        """Return whether output waits because the peer reads too slowly."""
        return self._writer.waiting

    @property
    def queued(self) -> int:
        """Return the number of bytes that are not sent yet."""
        return self._writer.queued

    async def read_message(self) -> bytes | Oversize | None:
        """Return the next line; None after the last one, after `close`, and when the peer is gone.

        The output of a peer that exited is read up to its end.
        """
        while not self._messages:
            self._make_room()
            if self._ended:
                return None
            if self._reader is None:
                self._loop = asyncio.get_running_loop()
                # A daemon: a read from a quiet peer cannot be interrupted, must not delay the exit.
                self._reader = threading.Thread(target=self._read, name="stdio-reader", daemon=True)
                self._reader.start()
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
        """Wait at most `timeout` seconds until all output is sent; return whether it was."""
        return await self._writer.flush(timeout)

    def close(self) -> None:
        """Stop reading. The reading thread ends with the process or at the peer's next byte."""
        self._messages.clear()
        self._make_room()
        self._end()

    def _idle(self) -> None:
        if self._writer.disconnected:
            # Usually the peer has closed its output too, and reading the pipe reaches its end.
            asyncio.get_running_loop().call_later(_DRAIN_TIMEOUT, self._end)
        if self.on_idle is not None:
            self.on_idle()

    def _read(self) -> None:
        assert self._loop is not None
        piece = b"-"
        while piece and not self._ended:
            try:
                piece = os.read(self._in_fd, _PIECE)
            except BlockingIOError:  # another process with the open file made it non-blocking
                wait_readable(self._in_fd)
                continue
            except OSError:
                piece = b""  # a reset socket or a closed terminal is also an end
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
            if self._ends_at_long_line and self._splitter.is_too_long:
                self._messages.append(Oversize(self._limit))
                self._ended = True
        else:
            last = self._splitter.finish()
            if last is not None:
                self._messages.append(last)
            self._ended = True
        if not self._messages:
            self._make_room()  # part of a long line, which cannot be requested yet
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
    """Assembles lines from pieces of any size.

    A line of more than `limit` bytes is discarded and reported at its end; later lines are
    unaffected.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._line = BoundedText(limit)
        self._has_begun = False  # whether a line spans pieces

    @property
    def is_too_long(self) -> bool:
        """Return whether the incomplete line already exceeds the limit."""
        return self._line.is_too_long

    def feed(self, piece: bytes) -> Iterator[bytes | Oversize]:
        """Yield the lines that end in `piece`, without line ends; skip blank ones."""
        start = 0
        while (end := piece.find(b"\n", start)) >= 0:
            line_end = piece[start:end]
            start = end + 1
            if self._has_begun or len(line_end) > self._limit:
                self._line.add(line_end)
                line = self.finish()
                if line is not None:
                    yield line
            elif line_end and not line_end.isspace():  # a whole line, the usual case
                yield line_end
        if start < len(piece):
            self._has_begun = True
            self._line.add(piece[start:] if start else piece)

    def finish(self) -> bytes | Oversize | None:
        """Return the unfinished line at the end of the stream; None if there is none."""
        line = self._line.take()
        self._has_begun = False
        return None if isinstance(line, bytes) and (not line or line.isspace()) else line


class DescriptorWriter:
    """Writes bytes in order. Use it in one event loop only.

    Args:
        descriptor: the descriptor to write to; it is not closed.
        on_idle: called in the loop when a time of waiting is over, and once when the reader is
            gone.

    Attributes:
        disconnected: whether writing failed; later output is dropped.
        waiting: whether the descriptor takes no bytes at the moment.
        queued: bytes that are not sent yet.
    """

    def __init__(self, descriptor: int, *, on_idle: Callable[[], None]) -> None:
        self.disconnected = False
        self.waiting = False
        self.queued = 0
        self._descriptor = descriptor
        self._on_idle = on_idle
        self._ready = WriteReadiness(descriptor) if tells_readiness(descriptor) else None
        self._pieces: list[bytes] = []
        self._scheduled = False
        self._flushed: asyncio.Event | None = None
        self._work: queue.SimpleQueue[bytes] | None = None

    def write(self, data: bytes) -> None:
        """Write `data` after all earlier data."""
        if self.disconnected:
            return
        self._pieces.append(data)
        self.queued += len(data)
        if not self._scheduled and not self.waiting:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._pass_on)

    async def flush(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds until all output is sent; return whether it was."""
        if self._scheduled:
            self._pass_on()
        if self.queued and not self.disconnected:
            self._flushed = asyncio.Event()
            try:
                await asyncio.wait_for(self._flushed.wait(), timeout)
            except TimeoutError:
                return False
            finally:
                self._flushed = None
        return not self.disconnected

    def _pass_on(self) -> None:
        self._scheduled = False
        if self.waiting or self.disconnected or not self._pieces:
            return
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        try:
            done = self._write_ready(data)
        except OSError:
            self._lose()
            return
        self.queued -= done
        if done < len(data):
            self.waiting = True
            self._hand_over(data[done:] if done else data)
        elif self._flushed is not None:
            self._flushed.set()

    def _write_ready(self, data: bytes) -> int:
        """Write as much of `data` as possible without blocking; return the number of bytes."""
        if self._ready is None:
            return 0
        done = 0
        view = memoryview(data)
        try:
            while done < len(view) and self._ready():
                done += os.write(self._descriptor, view[done : done + ATOMIC])
        except BlockingIOError:  # another process with the open file made it non-blocking
            pass
        return done

    def _hand_over(self, data: bytes) -> None:
        if self._work is None:
            self._work = queue.SimpleQueue()
            threading.Thread(
                target=_write_all,
                args=(self._descriptor, self._work, asyncio.get_running_loop(), self._passed_on),
                name="stdio-writer",
                daemon=True,  # a peer that never reads must not delay the exit
            ).start()
        self._work.put(data)

    def _passed_on(self, size: int, failed: bool) -> None:
        if failed:
            self._lose()
            return
        self.queued -= size
        self.waiting = False
        self._pass_on()
        if not self.waiting and not self.disconnected:
            if self._flushed is not None:
                self._flushed.set()
            self._on_idle()

    def _lose(self) -> None:
        self.disconnected = True
        self.waiting = False
        self.queued = 0
        self._pieces.clear()
        if self._flushed is not None:
            self._flushed.set()
        self._on_idle()


def _write_all(
    descriptor: int,
    work: queue.SimpleQueue[bytes],
    loop: asyncio.AbstractEventLoop,
    done: Callable[[int, bool], None],
) -> None:
    """Write each piece of work completely and report it in the loop; run by the writer thread."""
    failed = False
    while not failed:
        data = memoryview(work.get())
        size = len(data)
        while data and not failed:
            try:
                data = data[os.write(descriptor, data) :]
            except BlockingIOError:
                wait_writable(descriptor)
            except OSError:
                failed = True
        try:
            loop.call_soon_threadsafe(done, size, failed)
        except RuntimeError:  # the loop is closed
            return


def tells_readiness(descriptor: int) -> bool:
    """Return whether a ready descriptor accepts a short write, as pipes and sockets do.

    A user can stop a terminal during a write, and a file is always ready, so both are written from
    a thread.
    """
    if not hasattr(select, "poll"):
        return False
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


class WriteReadiness:
    """Checks whether a descriptor takes `ATOMIC` bytes without blocking."""

    def __init__(self, descriptor: int) -> None:
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    def __call__(self) -> bool:
        """Return whether it does; also true if the reader is gone, which the write reports."""
        return bool(self._poll.poll(0))


def wait_readable(descriptor: int) -> None:
    """Block the thread until there is data to read, or the end."""
    _wait(descriptor, writing=False)


def wait_writable(descriptor: int) -> None:
    """Block the thread until data can be written, or the reader is gone."""
    _wait(descriptor, writing=True)


def _wait(descriptor: int, *, writing: bool) -> None:
    if hasattr(select, "poll"):  # unlike select, it takes descriptors above 1023
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT if writing else select.POLLIN)
        poll.poll()
    else:
        select.select([] if writing else [descriptor], [descriptor] if writing else [], [])
