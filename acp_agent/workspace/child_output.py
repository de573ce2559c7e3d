"""A child process's output and end, as the event loop tells of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from acp_agent.platform.posix import end_group

_REAP_LIMIT = 2.0  # seconds; what was killed and is not gone by then hangs in the kernel
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


async def start_process(*command: str, **options: Any) -> asyncio.subprocess.Process:
    """Start a process with a group of its own; it is ended where the call is cancelled meanwhile.

    Args:
        command: the program and its arguments.
        options: those of `asyncio.create_subprocess_exec`.

    Raises:
        OSError: it cannot be started.
    """
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(*command, start_new_session=True, **options)
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_kill)  # in case this is cancelled once more
        await asyncio.wait([starting])
        if not starting.cancelled() and starting.exception() is None:
            await end_process(starting.result())
        raise


async def end_process(process: asyncio.subprocess.Process) -> None:
    """Kill a process with its group, and wait a moment until it is reaped and its pipes closed."""
    if process.returncode is None:
        end_group(process.pid, at_once=True)
    if process.stdin is not None:
        process.stdin.close()
    pipes = [pipe.read() for pipe in (process.stdout, process.stderr) if pipe is not None]
    await within(asyncio.gather(process.wait(), *pipes), _REAP_LIMIT)


def _kill(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        end_group(starting.result().pid, at_once=True)
