"""An ordered writer to a descriptor that never blocks the event loop.

What is written in one pass of the loop goes out together at its end, straight from the loop while
the descriptor takes it without blocking. What it does not take goes to a thread that waits for the
reader; meanwhile what follows is kept and joined.
"""

from __future__ import annotations

import asyncio
import os
import queue
import select
import stat
import threading
from collections.abc import Callable
from typing import Final


class DescriptorWriter:
    """Writes bytes in order. Use it in one event loop only.

    Args:
        descriptor: Where to write; stays open.
        on_idle: Called in the loop after a time of waiting is over, and once when the reader is
            gone.

    Attributes:
        gone: Whether writing failed; everything written later is dropped.
        waiting: Whether the descriptor takes nothing at the moment.
        queued: Bytes not passed on yet.
    """

    def __init__(self, descriptor: int, *, on_idle: Callable[[], None]) -> None:
        self.gone = False
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
        """Write `data` after everything before it."""
        if self.gone:
            return
        self._pieces.append(data)
        self.queued += len(data)
        if not self._scheduled and not self.waiting:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._pass_on)

    async def flush(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds until all is passed on; false when it was not."""
        if self._scheduled:
            self._pass_on()
        if self.queued and not self.gone:
            self._flushed = asyncio.Event()
            try:
                await asyncio.wait_for(self._flushed.wait(), timeout)
            except TimeoutError:
                return False
            finally:
                self._flushed = None
        return not self.gone

    def _pass_on(self) -> None:
        self._scheduled = False
        if self.waiting or self.gone or not self._pieces:
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
        """Write from the start of `data` what goes without blocking; how many bytes that were."""
        if self._ready is None:
            return 0
        done = 0
        view = memoryview(data)
        try:
            while done < len(view) and self._ready():
                done += os.write(self._descriptor, view[done : done + ATOMIC])
        except BlockingIOError:  # whoever shares the open file made it non-blocking
            pass
        return done

    def _hand_over(self, data: bytes) -> None:
        if self._work is None:
            self._work = queue.SimpleQueue()
            threading.Thread(
                target=_write_all,
                args=(self._descriptor, self._work, asyncio.get_running_loop(), self._passed_on),
                name="stdio-writer",
                daemon=True,  # a reader that never reads must not hold up the exit
            ).start()
        self._work.put(data)

    def _passed_on(self, size: int, failed: bool) -> None:
        if failed:
            self._lose()
            return
        self.queued -= size
        self.waiting = False
        self._pass_on()
        if not self.waiting and not self.gone:
            if self._flushed is not None:
                self._flushed.set()
            self._on_idle()

    def _lose(self) -> None:
        self.gone = True
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
    """Write each piece of work completely and say so in the loop; the writer thread's body."""
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


# A write of at most this many bytes to a descriptor that is ready does not block (POSIX, `write`).
ATOMIC: Final = int(getattr(select, "PIPE_BUF", 512))


def tells_readiness(descriptor: int) -> bool:
    """Whether readiness means that a short write goes through: so for pipes and sockets.

    A terminal can be stopped by its user in mid-write, and a file is always ready, so both are
    better written from a thread.
    """
    if not hasattr(select, "poll"):
        return False
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


class WriteReadiness:
    """Asks again and again whether one descriptor takes `ATOMIC` bytes without blocking."""

    def __init__(self, descriptor: int) -> None:
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    def __call__(self) -> bool:
        """True, too, when the reader is gone: the write then says so."""
        return bool(self._poll.poll(0))


def wait_readable(descriptor: int) -> None:
    """Block the thread until there is something to read, or the end."""
    _wait(descriptor, writing=False)


def wait_writable(descriptor: int) -> None:
    """Block the thread until something can be written, or the reader is gone."""
    _wait(descriptor, writing=True)


def _wait(descriptor: int, *, writing: bool) -> None:
    if hasattr(select, "poll"):  # unlike select, it takes descriptors above 1023
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT if writing else select.POLLIN)
        poll.poll()
    else:
        select.select([] if writing else [descriptor], [descriptor] if writing else [], [])
