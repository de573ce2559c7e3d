"""Another agent as a child process, with a connection in version 1 of the protocol."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, Self

from acp_agent import __version__
from acp_agent.platform import posix
from acp_agent.platform.watchdog import Watchdog
from protocol.jsonrpc.connection import Connection
from protocol.jsonrpc.handlers import Handler, MapError, Surface
from protocol.jsonrpc.outgoing import Trace
from protocol.transports.base import Oversize
from protocol.transports.stdio import StdioTransport
from protocol.v1 import methods, types as acp

EXIT_SECONDS = 8.0  # for the agent to end by itself, whose own limit in mid-turn is 5
START_SECONDS = 60.0
_STDERR_BYTES = 4096  # bytes of stderr that are kept
_GROUP_EXIT_SECONDS = 0.5  # for what the agent left in its group to end when it is asked to

# Makes what reads from and writes to the descriptors of an agent.
MakeTransport = Callable[[int, int], StdioTransport]
LINE_LIMIT: Final = 16_000_000  # bytes of one message
TOTAL_LIMIT: Final = 64_000_000  # bytes of all messages of a task
_MAX_NOISE_LINES = 1_000  # lines that are no message, before the agent is ended
_MAX_SHOWN_BYTES = 200  # bytes of such a line


class AgentChild:
    """An agent that was started for this connection.

    Make one with `start`, shake hands with `initialize`, and end it with `aclose`.

    Attributes:
        connection: to ask it and tell it things.
        ended: done when the connection is over, whoever ended it.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        handlers: Mapping[str, Handler],
        watchdog: Watchdog,
        trace: Trace | None = None,
        *,
        map_error: MapError | None = None,
        transport: MakeTransport = StdioTransport,
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._watchdog = watchdog
        self._stderr_tail = b""
        self._stderr_reader: threading.Thread | None = None
        if process.stderr is not None:
            self._stderr_reader = threading.Thread(
                target=self._read_stderr, args=(process.stderr,), daemon=True, name="agent stderr"
            )
            self._stderr_reader.start()
        self._transport = transport(process.stdout.fileno(), process.stdin.fileno())
        self.connection = Connection(
            self._transport,
            Surface(methods.CLIENT_METHODS, handlers, map_error=map_error),
            trace=trace,
        )
        self.ended = asyncio.create_task(self.connection.run())

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        handlers: Mapping[str, Handler],
        *,
        cwd: Path,
        keep_stderr: bool = False,
        trace: Trace | None = None,
        environ: Mapping[str, str] | None = None,
        grace: float | None = None,
        map_error: MapError | None = None,
        transport: MakeTransport = StdioTransport,
    ) -> Self:
        """Start `command`.

        Args:
            handlers: what answers the agent, by the method's name.
            keep_stderr: keep the end of what it writes to stderr for `stderr_tail`, instead of
                letting it through to the terminal.
            trace: sees every line.
            environ: its environment; None: ours.
            grace: seconds for it to end by itself if we are killed; None: `EXIT_SECONDS`.
            map_error: turns what a handler raised into the error that the agent gets.
            transport: makes what carries the messages.

        Raises:
            OSError: there is no such program, or it cannot be started.
        """
        process = await asyncio.to_thread(
            subprocess.Popen,
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if keep_stderr else None,
            cwd=cwd,
            env=environ,
            start_new_session=True,  # Ctrl-C is for us: the turn ends in order, not the process
        )
        # Should we be killed, it has time to end by itself when its input ends.
        watchdog = Watchdog("", grace_seconds=int(EXIT_SECONDS if grace is None else grace))
        child = cls(process, handlers, watchdog, trace, map_error=map_error, transport=transport)
        watchdog.start()
        watchdog.add_group(process.pid)
        return child

    async def initialize(
        self,
        capabilities: acp.ClientCapabilities,
        *,
        name: str = "acp-agent-terminal",
        timeout: float = START_SECONDS,
    ) -> acp.InitializeResponse:
        """Shake hands in version 1 of the protocol.

        Raises:
            RpcError: the agent refused.
            ConnectionError: the agent ended at once.
            TimeoutError: the agent does not answer.
        """
        return await self.connection.request(
            methods.INITIALIZE,
            acp.InitializeRequest(
                protocol_version=1,
                client_capabilities=capabilities,
                client_info=acp.Implementation(name=name, title="acp-agent", version=__version__),
            ),
            timeout=timeout,
        )

    @property
    def status(self) -> int | None:
        """The exit status, negative for a signal; None while the process runs."""
        return self._process.poll()

    @property
    def stderr_tail(self) -> str:
        """The end of what it wrote to stderr, where that is kept."""
        return self._stderr_tail.decode("utf-8", "replace")

    async def exited(self) -> None:
        """Wait until the process has ended and its stderr is read; what it started may go on."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def wait() -> None:
            self._process.wait()
            self._join_stderr_reader()
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(ended.set)

        threading.Thread(target=wait, daemon=True, name="agent exit").start()
        await ended.wait()

    async def aclose(self, *, timeout: float = EXIT_SECONDS) -> None:
        """Close the connection, which ends the agent; kill its group after `timeout` seconds."""
        await self.connection.close()
        await asyncio.gather(self.ended, return_exceptions=True)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        try:
            # An agent that does not read what is on its way would not see the end behind it either.
            await self._close_input(timeout)
        finally:
            await asyncio.to_thread(self._reap, max(0.0, deadline - loop.time()))
        await self._watchdog.aclose()
        await self._close_input(_GROUP_EXIT_SECONDS)

    async def _close_input(self, timeout: float) -> None:
        """Close its stdin, once nothing is being written to it any more.

        A thread that still writes would go on in whatever file gets the number of a closed one.
        Where that does not end, because a process that left the group holds the other side and does
        not read, the file stays open.
        """
        stdin = self._process.stdin
        assert stdin is not None
        await self._transport.flush(timeout)
        if not self._transport.queued:
            stdin.close()

    def _reap(self, timeout: float) -> None:
        process = self._process
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            posix.end_group(process.pid, at_once=True)
            process.wait()
        end_orphaned_group(process.pid)
        self._join_stderr_reader()
        if process.stdout is not None:
            process.stdout.close()

    def _join_stderr_reader(self) -> None:
        if self._stderr_reader is not None:  # its end may be held open by what the agent started
            self._stderr_reader.join(_GROUP_EXIT_SECONDS)

    def _read_stderr(self, stderr: IO[bytes]) -> None:
        with stderr:
            while piece := stderr.read1(_STDERR_BYTES):  # type: ignore[attr-defined] # it is buffered
                self._stderr_tail = (self._stderr_tail + piece)[-_STDERR_BYTES:]


def end_orphaned_group(leader: int) -> None:
    """End what a process that is over left behind in its group, which bears its number.

    Blocks, for half a second at most, while what is asked to end does so.
    """
    if not posix.group_alive(leader):
        return
    posix.end_group(leader, at_once=False)
    waiting = threading.Event()
    for _ in range(int(_GROUP_EXIT_SECONDS / 0.02)):
        if not posix.group_runs(leader):
            return
        waiting.wait(0.02)
    posix.end_group(leader, at_once=True)


class AgentOutput(StdioTransport):
    """Carries the messages of an agent that nobody vouches for.

    Lines that are no message are dropped, as agents and their package managers print some. Reading
    ends at a line that is too long, at too many lines that are no message, and at too much of all.

    Args:
        out_fd: where ours go.
        has_room: waits until more may be read.

    Attributes:
        fault: why reading ended, in words that follow the agent's name; empty while it did not.
        first_noise: the beginning of the first line that was no message.
    """

    def __init__(
        self, in_fd: int, out_fd: int, wait_for_room: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(in_fd, out_fd, limit=LINE_LIMIT, ends_at_long_line=True)
        self.fault = ""
        self.first_noise = ""
        self._wait_for_room = wait_for_room
        self._noise = 0
        self._received = 0

    async def read_message(self) -> bytes | Oversize | None:
        """Return the next message; None at the end, or after an invalid one."""
        while not self.fault:
            await self._wait_for_room()
            line = await super().read_message()
            if line is None:
                return None
            if isinstance(line, Oversize):
                self.fault = f"wrote a line of more than {line.limit:,} bytes"
                break
            self._received += len(line)
            if self._received > TOTAL_LIMIT:
                self.fault = f"wrote more than {TOTAL_LIMIT:,} bytes"
                break
            if line.lstrip()[:1] == b"{" and b'"jsonrpc"' in line:
                return line
            self._drop(line)
        return None

    def _drop(self, line: bytes) -> None:
        if not self.first_noise:
            self.first_noise = line.strip()[:_MAX_SHOWN_BYTES].decode("utf-8", "replace")
        self._noise += 1
        if self._noise > _MAX_NOISE_LINES:
            self.fault = "writes output that is no message of the Agent Client Protocol"
