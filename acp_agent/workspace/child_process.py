"""A child process: its output as the event loop delivers it, its process group, and its end.

What a command leaves behind:

- Background processes of its group are ended as soon as the shell itself has ended.
- A process that left the group on purpose (a daemon that called setsid) lives on after a command
  that ended by itself, as build daemons want to. It is ended when its command is cancelled or timed
  out, and when the session closes. It is found by a variable in its environment, which only Linux
  shows, and which a program can erase: there the sandbox has to hold it.
- When this program itself is killed, another process ends what it left (`platform.death_watch`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from acp_agent.platform import posix
from acp_agent.platform.posix import end_group
from acp_agent.sandbox.launch import Confine, Launch, unconfined

if TYPE_CHECKING:  # known once the first command runs
    from acp_agent.sandbox.watch import Moved

_REAP_LIMIT = 2.0  # seconds; what was killed and is not gone by then hangs in the kernel
BUFFER_LIMIT = 1024 * 1024  # bytes read ahead
MARK = "ACP_AGENT_COMMAND"  # the variable that tells whose a process is
_TERM_GRACE = 0.7  # seconds between asking a group to end and ending it
LINGER = 0.25  # seconds for background processes to end by themselves
REAP_LIMIT = 5.0  # seconds for an ended process to go; more only in the kernel's own waits
_POLL = 0.02  # seconds between two looks at a group


class ChildOutput(asyncio.SubprocessProtocol):
    """Holds a child's output until it is taken, and knows when the child and its pipe ended."""

    def __init__(self) -> None:
        self.exited = asyncio.Event()  # the shell itself is reaped
        self.closed = asyncio.Event()  # the pipe's other end is closed
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
        """Return new output, or what there is when the pipe ends or `wait` seconds have passed."""
        if not self._data and not self.closed.is_set():
            await wait_at_most(self._ready.wait(), wait)
        self._ready.clear()
        data = bytes(self._data)
        self._data.clear()
        if self._paused and self._pipe is not None and not self._pipe.is_closing():
            self._pipe.resume_reading()
            self._paused = False
        return data


async def wait_at_most(wait: Awaitable[object], limit: float | None) -> bool:
    """Wait at most `limit` seconds; whether it came."""
    try:
        async with asyncio.timeout(limit):
            await wait
    except TimeoutError:
        return False
    return True


async def start_process(*command: str, **options: Any) -> asyncio.subprocess.Process:
    """Start a process in a new group; it is ended if this call is cancelled.

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


async def start_confined(
    confine: Confine, command: Sequence[str], environ: Mapping[str, str], cwd: str, **options: Any
) -> asyncio.subprocess.Process:
    """Start a helper of this program, confined where that is possible; see `start_process`.

    Args:
        confine: says how it is started.
        command: the program, absolute, and its arguments.
        environ: its environment.
        cwd: the folder that it starts in.
        options: the others of `asyncio.create_subprocess_exec`.
    """
    if confine is unconfined:  # it needs no thread
        launch = confine(command, environ, cwd)
    else:
        launching = asyncio.ensure_future(asyncio.to_thread(confine, command, environ, cwd))
        try:
            launch = await asyncio.shield(launching)
        except asyncio.CancelledError:
            launching.add_done_callback(_close)
            raise
    try:
        return await start_process(
            *launch.argv, cwd=cwd, env=launch.environ, pass_fds=launch.descriptors, **options
        )
    finally:
        launch.close_descriptors()


async def end_process(process: asyncio.subprocess.Process) -> None:
    """Kill a process with its group, and wait a moment until it is reaped and its pipes closed."""
    if process.returncode is None:
        end_group(process.pid, at_once=True)
    if process.stdin is not None:
        process.stdin.close()
    pipes = [pipe.read() for pipe in (process.stdout, process.stderr) if pipe is not None]
    await wait_at_most(asyncio.gather(process.wait(), *pipes), _REAP_LIMIT)


def _close(launching: asyncio.Future[Launch]) -> None:
    if not launching.cancelled() and launching.exception() is None:
        launching.result().close_descriptors()


def _kill(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        end_group(starting.result().pid, at_once=True)


class StartedCommand:
    """A command whose shell was started, as the leader of a group."""

    def __init__(
        self,
        transport: asyncio.SubprocessTransport,
        reader: ChildOutput,
        mark: str,
        *,
        confined: Launch | None = None,
    ) -> None:
        """Args: confined: how it was confined; its group's leader would end all at once then."""
        self.confined = confined
        self.transport = transport
        self.reader = reader
        self.group = transport.get_pid()
        self.mark = mark
        self.background_ended = False

    @property
    def moved(self) -> tuple[Moved, ...]:
        """The files of the command that were moved away."""
        watched = None if self.confined is None else self.confined.watched
        return () if watched is None else tuple(watched.moved)

    def follow_sandbox(self, note: Callable[[str], None], *, tell_moved: bool) -> None:
        """Report what the sandbox does to the command; end it if it insists on a file.

        Args:
            note: is given each line for the command's output, in the event loop.
            tell_moved: whether files that are moved away are worth a line.
        """
        if self.confined is None or self.confined.watched is None:
            return
        loop, watched = asyncio.get_running_loop(), self.confined.watched

        def moved(one: Moved) -> None:
            if watched.insists:
                posix.end_group(self.group, at_once=True)
            if tell_moved:
                loop.call_soon_threadsafe(note, str(one))

        def exceeded(limit: str) -> None:
            line = f"[the sandbox ended {limit}; `sandbox.limits` in the configuration sets that]\n"
            loop.call_soon_threadsafe(note, line)

        watched.on_moved, watched.on_limit, watched.leader = moved, exceeded, self.group

    async def finish(self) -> None:
        """Look for files to be moved away once more, when no process of the command is left."""
        if self.confined is not None:
            await self.confined.finish()

    async def end(self) -> None:
        """Ask the group to end, and kill the rest after a moment."""
        if self.confined is not None:
            await asyncio.to_thread(posix.ask_members_to_end, self.group)
        else:
            posix.end_group(self.group, at_once=False)
        await wait_at_most(self.reader.exited.wait(), _TERM_GRACE)
        if not self.reader.exited.is_set() or not await self._group_gone(LINGER):
            posix.end_group(self.group, at_once=True)
        await wait_at_most(self.reader.exited.wait(), REAP_LIMIT)
        await self.end_strays()

    async def end_background(self) -> None:
        """End the processes that the shell left in its group."""
        if self.confined is not None:  # its namespace of processes ends with the sandbox's first
            posix.end_group(self.group, at_once=True)
            return
        if await self._group_gone(LINGER):
            return
        self.background_ended = True
        posix.end_group(self.group, at_once=False)
        if not await self._group_gone(_TERM_GRACE):
            posix.end_group(self.group, at_once=True)
            await self._group_gone(LINGER)

    async def end_strays(self) -> None:
        """End the processes of this command that left its group."""
        await asyncio.to_thread(end_marked, self.mark)

    async def _group_gone(self, limit: float) -> bool:
        if not posix.group_alive(self.group):
            return True
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limit
        while await asyncio.to_thread(posix.group_runs, self.group):
            if loop.time() >= deadline:
                return False
            await asyncio.sleep(_POLL)
        return True


def end_marked(mark: str) -> None:
    """End all processes with the mark; repeat, since they may have started others."""
    for _ in range(3):
        strays = posix.marked_processes(f"{MARK}={mark}")
        if not strays:
            return
        for process in strays:
            posix.end_process(process)
