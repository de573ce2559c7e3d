"""Start child processes, read their output, and end them with their process group.

Processes that outlive a command:

- Background processes in its group are ended as soon as the shell has exited.
- A process that left the group (a daemon that called setsid) survives a command that exits
  normally, since build daemons need that. It is ended when its command is cancelled or times out,
  and when the session closes. It is found by a variable in its environment. Only Linux shows that,
  and a program can erase it; then only the sandbox can end the process.
- When this program is killed, a watchdog process ends what it left (`platform.watchdog`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from acp_agent.platform import posix
from acp_agent.platform.posix import end_group
from acp_agent.sandbox.launch import Confine, Launch, unconfined

if TYPE_CHECKING:
    from acp_agent.sandbox.watch import RenamedFile

_PIPE_REAP_LIMIT = 2.0  # seconds; a killed process that takes longer hangs in the kernel
BUFFER_LIMIT = 1024 * 1024  # bytes read ahead
_MAX_PIPE = 1024 * 1024  # bytes; the largest pipe that a user without privileges can have
MARK = "ACP_AGENT_COMMAND"  # the variable that identifies a command's processes
_TERM_GRACE = 0.7  # seconds between SIGTERM and SIGKILL
EXIT_GRACE = 0.25  # seconds for background processes to exit by themselves
REAP_LIMIT = 5.0  # seconds for a killed process to exit; longer means that it hangs in the kernel
_POLL = 0.02  # seconds between checks of a group
ProtocolT = TypeVar("ProtocolT", bound=asyncio.SubprocessProtocol)


class ChildOutput(asyncio.SubprocessProtocol):
    """Buffers a child's output, and signals the exit of the child and the end of its pipe."""

    def __init__(self) -> None:
        self.exited = asyncio.Event()  # the shell is reaped
        self.closed = asyncio.Event()  # the write end of the pipe is closed
        self._data = bytearray()
        self._received = 0  # bytes
        self._ready = asyncio.Event()
        self._pipe: asyncio.ReadTransport | None = None
        self._paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the pipe of the started child."""
        assert isinstance(transport, asyncio.SubprocessTransport)
        pipe = transport.get_pipe_transport(1)
        assert isinstance(pipe, asyncio.ReadTransport)
        self._pipe = pipe

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Buffer output; pause the pipe if the buffer is full."""
        del fd
        self._data += data
        self._received += len(data)
        self._ready.set()
        if len(self._data) >= BUFFER_LIMIT and self._pipe is not None and not self._paused:
            self._pipe.pause_reading()
            self._paused = True

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Signal that all writers have closed the pipe."""
        del fd, exc
        self.closed.set()
        self._ready.set()

    def process_exited(self) -> None:
        """Signal that the child was reaped."""
        self.exited.set()

    async def wait_for_rest(self) -> None:
        """Wait until the rest of an ended command's output has arrived.

        A daemon that left the group may keep the pipe open. So the wait ends too when nothing
        arrives for `EXIT_GRACE` although the buffer has room, or when more has arrived than a
        pipe and the buffer hold.
        """
        limit = self._received + BUFFER_LIMIT + _MAX_PIPE
        while self._received < limit:
            received = self._received
            if await wait_at_most(self.closed.wait(), EXIT_GRACE):
                return
            if self._received == received and not self._paused:
                return

    async def take(self, wait: float | None) -> bytes:
        """Return buffered output; wait for some until the pipe ends or `wait` seconds pass."""
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
    """Wait at most `limit` seconds; return whether the awaitable finished in time."""
    try:
        async with asyncio.timeout(limit):
            await wait
    except TimeoutError:
        return False
    return True


async def start_process(*command: str, **options: Any) -> asyncio.subprocess.Process:
    """Start a process in a new session; kill it if this call is cancelled.

    Args:
        options: options of `asyncio.create_subprocess_exec`.

    Raises:
        OSError: the process cannot be started.
    """
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(*command, start_new_session=True, **options)
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_kill)  # in case of a second cancellation
        await asyncio.wait([starting])
        if not starting.cancelled() and starting.exception() is None:
            await end_process(starting.result())
        raise


async def start_transport(
    protocol: Callable[[], ProtocolT], launch: Launch, **options: Any
) -> tuple[asyncio.SubprocessTransport, ProtocolT]:
    """Start a program in a new session; end its group at once if this call is cancelled.

    asyncio itself would then wait until the program ends. `launch` is closed if nothing starts.

    Args:
        options: options of `loop.subprocess_exec`.

    Raises:
        OSError: the program cannot be started.
    """
    loop = asyncio.get_running_loop()
    starting = asyncio.ensure_future(
        loop.subprocess_exec(
            protocol,
            *launch.argv,
            env=launch.environ,
            pass_fds=launch.descriptors,
            start_new_session=True,
            **options,
        )
    )
    try:
        return await asyncio.shield(starting)
    except BaseException:
        starting.add_done_callback(_end_transport)  # in case of a second cancellation
        await asyncio.wait([starting])
        await launch.aclose()
        raise
    finally:
        launch.close_descriptors()


async def start_confined(
    confine: Confine, command: Sequence[str], environ: Mapping[str, str], cwd: str, **options: Any
) -> asyncio.subprocess.Process:
    """Start a helper process, confined if possible; see `start_process`.

    Args:
        confine: wraps the command line.
        command: the absolute path of the program, and its arguments.
        cwd: its working folder.
        options: other options of `asyncio.create_subprocess_exec`.
    """
    if confine is unconfined:  # does not block
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
    """Kill a process with its group, and wait briefly until it is reaped and its pipes close."""
    if process.returncode is None:
        end_group(process.pid, at_once=True)
    if process.stdin is not None:
        process.stdin.close()
    pipes = [pipe.read() for pipe in (process.stdout, process.stderr) if pipe is not None]
    await wait_at_most(asyncio.gather(process.wait(), *pipes), _PIPE_REAP_LIMIT)


def _close(launching: asyncio.Future[Launch]) -> None:
    if not launching.cancelled() and launching.exception() is None:
        launching.result().close_descriptors()


def _end_transport(starting: asyncio.Future[tuple[asyncio.SubprocessTransport, Any]]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        transport, _ = starting.result()
        end_group(transport.get_pid(), at_once=True)
        transport.close()


def _kill(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        end_group(starting.result().pid, at_once=True)


class RunningCommand:
    """A running command; its shell is the leader of a process group."""

    def __init__(
        self,
        transport: asyncio.SubprocessTransport,
        reader: ChildOutput,
        mark: str,
        *,
        confined: Launch | None = None,
    ) -> None:
        """Args: confined: its sandbox, if any; killing the leader then kills all processes."""
        self.confined = confined
        self.transport = transport
        self.reader = reader
        self.group = transport.get_pid()
        self.mark = mark
        self.background_ended = False

    @property
    def moved(self) -> tuple[RenamedFile, ...]:
        """The files that the sandbox moved away."""
        watched = None if self.confined is None else self.confined.watched
        return () if watched is None else tuple(watched.moved)

    def follow_sandbox(self, note: Callable[[str], None], *, report_moved: bool) -> None:
        """Report what the sandbox does; kill the command if it keeps recreating a moved file.

        Args:
            note: called in the event loop with each line for the command's output.
            report_moved: whether to report files that are moved away.
        """
        if self.confined is None or self.confined.watched is None:
            return
        loop, watched = asyncio.get_running_loop(), self.confined.watched

        def moved(file: RenamedFile) -> None:
            if watched.recreates_file:
                posix.end_group(self.group, at_once=True)
            if report_moved:
                loop.call_soon_threadsafe(note, str(file))

        def exceeded(limit: str) -> None:
            line = f"[the sandbox ended {limit}; `sandbox.limits` in the configuration sets that]\n"
            loop.call_soon_threadsafe(note, line)

        watched.on_moved, watched.on_limit, watched.leader = moved, exceeded, self.group

    async def finish(self) -> None:
        """Let the sandbox check for files to move away once all processes have ended."""
        if self.confined is not None:
            await self.confined.finish()

    async def end(self) -> None:
        """Ask the group to end, and kill the remaining processes after a moment."""
        if self.confined is not None:
            await asyncio.to_thread(posix.terminate_members, self.group)
        else:
            posix.end_group(self.group, at_once=False)
        await wait_at_most(self.reader.exited.wait(), _TERM_GRACE)
        if not self.reader.exited.is_set() or not await self._wait_for_group(EXIT_GRACE):
            posix.end_group(self.group, at_once=True)
        await wait_at_most(self.reader.exited.wait(), REAP_LIMIT)
        await self.end_strays()

    async def end_background(self) -> None:
        """End the processes that the shell left in its group."""
        if self.confined is not None:  # killing the sandbox's first process ends all
            posix.end_group(self.group, at_once=True)
            return
        if await self._wait_for_group(EXIT_GRACE):
            return
        self.background_ended = True
        posix.end_group(self.group, at_once=False)
        if not await self._wait_for_group(_TERM_GRACE):
            posix.end_group(self.group, at_once=True)
            await self._wait_for_group(EXIT_GRACE)

    async def end_strays(self) -> None:
        """End the processes of this command that left its group."""
        await asyncio.to_thread(end_marked, self.mark)

    async def _wait_for_group(self, limit: float) -> bool:
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
    """End all processes with the mark; repeat, since they may start others."""
    for _ in range(3):
        strays = posix.marked_processes(f"{MARK}={mark}")
        if not strays:
            return
        for process in strays:
            posix.end_process(process)
