"""A child process's output and end, as the event loop tells of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

BUFFER_LIMIT = 1024 * 1024  # bytes read ahead of those who take the output


class ChildOutput(asyncio.SubprocessProtocol):
    """Holds a child's output until it is taken, and knows when the child and its pipe ended."""

    def __init__(self) -> None:
        self.exited = asyncio.Event()  # the shell itself is reaped, whatever holds its pipe
        self.closed = asyncio.Event()  # nobody can write to the pipe any more
        self._data = bytearray()
        self._ready = asyncio.Event()
        self._pipe: asyncio.ReadTransport | None = None
        self._paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The child runs."""
        assert isinstance(transport, asyncio.SubprocessTransport)
        pipe = transport.get_pipe_transport(1)
        assert isinstance(pipe, asyncio.ReadTransport)
        self._pipe = pipe

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """The child wrote."""
        del fd
        self._data += data
        self._ready.set()
        if len(self._data) >= BUFFER_LIMIT and self._pipe is not None and not self._paused:
            self._pipe.pause_reading()
            self._paused = True

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """All that held the pipe's other end have closed it."""
        del fd, exc
        self.closed.set()
        self._ready.set()

    def process_exited(self) -> None:
        """The child was reaped."""
        self.exited.set()

    async def take(self, wait: float | None) -> bytes:
        """What came, as soon as something did, the pipe ended, or `wait` seconds passed."""
        if not self._data and not self.closed.is_set():
            await within(self._ready.wait(), wait)
        self._ready.clear()
        data = bytes(self._data)
        self._data.clear()
        if self._paused and self._pipe is not None and not self._pipe.is_closing():
            self._pipe.resume_reading()
            self._paused = False
        return data


async def within(wait: Awaitable[object], limit: float | None) -> bool:
    """Wait at most `limit` seconds; whether it came."""
    try:
        async with asyncio.timeout(limit):
            await wait
    except TimeoutError:
        return False
    return True
