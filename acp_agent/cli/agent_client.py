"""A client of the protocol for the terminal, and the agent as its child process."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Self

from msgspec import UNSET, Struct

from acp_agent import __version__
from acp_agent.platform import posix
from acp_agent.platform.programs import own_process
from acp_agent.platform.watchdog import Watchdog
from protocol.jsonrpc.connection import Connection
from protocol.jsonrpc.handlers import Call, Handler, Surface
from protocol.jsonrpc.outbox import Trace
from protocol.transports.stdio import StdioTransport
from protocol.v1 import methods, types as acp

EXIT_SECONDS = 8.0  # for the agent to end by itself, whose own limit in mid-turn is 5
START_SECONDS = 60.0
_STDERR_BYTES = 4096  # bytes of stderr that are kept
_GROUP_SECONDS = 0.5  # for what the agent left in its group to end when it is asked to


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
        watch: Watchdog,
        trace: Trace | None = None,
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._watch = watch
        self._stderr_tail = b""
        self._listener: threading.Thread | None = None
        if process.stderr is not None:
            self._listener = threading.Thread(
                target=self._listen, args=(process.stderr,), daemon=True, name="agent stderr"
            )
            self._listener.start()
        self._transport = StdioTransport(process.stdout.fileno(), process.stdin.fileno())
        self.connection = Connection(
            self._transport,
            Surface(methods.CLIENT_METHODS, handlers),
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
    ) -> Self:
        """Start `command`.

        Args:
            command: the program and its arguments.
            handlers: what answers the agent, by the method's name.
            cwd: the folder that it starts in.
            keep_stderr: keep the end of what it writes to stderr for `stderr_tail`, instead of
                letting it through to the terminal.
            trace: sees every line.

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
            start_new_session=True,  # Ctrl-C is for us: the turn ends in order, not the process
        )
        # Should we be killed, it has time to end by itself when its input ends.
        watch = Watchdog("", grace_seconds=int(EXIT_SECONDS))
        child = cls(process, handlers, watch, trace)
        await watch.start()
        watch.add_group(process.pid)
        return child

    async def initialize(
        self, capabilities: acp.ClientCapabilities, *, timeout: float = START_SECONDS
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
                client_info=acp.Implementation(
                    name="acp-agent-terminal", title="acp-agent", version=__version__
                ),
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
        await self._watch.aclose()
        await self._close_input(_GROUP_SECONDS)

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
        end_rest_of_group(process.pid)
        if self._listener is not None:
            self._listener.join(_GROUP_SECONDS)
        if process.stdout is not None:
            process.stdout.close()

    def _listen(self, stderr: IO[bytes]) -> None:
        with stderr:
            while piece := stderr.read1(_STDERR_BYTES):  # type: ignore[attr-defined] # it is buffered
                self._stderr_tail = (self._stderr_tail + piece)[-_STDERR_BYTES:]


def end_rest_of_group(leader: int) -> None:
    """End what a process that is over left behind in its group, which bears its number.

    Blocks, for half a second at most, while what is asked to end does so.
    """
    if not posix.group_alive(leader):
        return
    posix.end_group(leader, at_once=False)
    waiting = threading.Event()
    for _ in range(int(_GROUP_SECONDS / 0.02)):
        if not posix.group_runs(leader):
            return
        waiting.wait(0.02)
    posix.end_group(leader, at_once=True)


OnUpdate = Callable[[acp.SessionUpdate], None]
OnPermission = Callable[["Asked"], Awaitable[acp.RequestPermissionResponse]]


class Asked(Struct, frozen=True):
    """A permission request, with what earlier updates told about its call."""

    title: str
    kind: str
    options: tuple[acp.PermissionOption, ...]
    request: acp.RequestPermissionRequest


class AgentClient:
    """A connection to an agent that was started for it.

    Make one with `start`, `open` its session, `prompt` in it, and end it with `aclose`.
    """

    def __init__(self, *, on_update: OnUpdate, on_permission: OnPermission) -> None:
        self.session_id = ""
        self._on_update = on_update
        self._on_permission = on_permission
        self._calls: dict[str, tuple[str, str]] = {}  # title and kind by id
        self._unshown: OSError | None = None
        self._child: AgentChild

    @classmethod
    async def start(
        cls,
        flags: Sequence[str],
        *,
        cwd: Path,
        on_update: OnUpdate,
        on_permission: OnPermission,
    ) -> Self:
        """Start `acp-agent` with `flags` and shake hands.

        Raises:
            RpcError: the agent refused.
            ConnectionError: the agent ended at once.
            TimeoutError: the agent does not answer.
        """
        client = cls(on_update=on_update, on_permission=on_permission)
        client._child = await AgentChild.start(
            own_process("acp", *flags),
            {
                methods.SESSION_UPDATE.name: client._updated,
                methods.REQUEST_PERMISSION.name: client._asked,
            },
            cwd=cwd,
        )
        try:
            await client._child.initialize(
                acp.ClientCapabilities(
                    session=acp.ClientSessionCapabilities(notices=acp.NoticeCapabilities()),
                    meta={"terminal_output": True},
                )
            )
        except BaseException:
            await client.aclose()
            raise
        return client

    async def open(self, cwd: Path, *, resume: str | None = None) -> None:
        """Make a session in `cwd`, or go on with one.

        Raises:
            RpcError: the agent refused, for instance because no model is configured (-32000).
        """
        if resume is not None:
            await self._child.connection.request(
                methods.SESSION_RESUME,
                acp.ResumeSessionRequest(session_id=resume, cwd=str(cwd)),
                timeout=START_SECONDS,
            )
            self.session_id = resume
            return
        made = await self._child.connection.request(
            methods.SESSION_NEW,
            acp.NewSessionRequest(cwd=str(cwd), mcp_servers=[]),
            timeout=START_SECONDS,
        )
        self.session_id = made.session_id

    async def set_option(self, option: str, value: str) -> None:
        """Give a configuration option of the session a value. Raises RpcError."""
        await self._child.connection.request(
            methods.SESSION_SET_CONFIG_OPTION,
            acp.SetSessionConfigOptionRequest(
                session_id=self.session_id, config_id=option, value=value
            ),
            timeout=START_SECONDS,
        )

    async def prompt(self, text: str) -> acp.PromptResponse:
        """Prompt, and wait as long as the turn takes.

        Raises:
            RpcError: the turn failed; the message says why.
            ConnectionError: the agent ended.
            OSError: what came could not be shown, so the turn was cancelled.
        """
        answer = await self._child.connection.request(
            methods.SESSION_PROMPT,
            acp.PromptRequest(session_id=self.session_id, prompt=[acp.TextContent(text=text)]),
        )
        if self._unshown is not None:
            raise self._unshown
        return answer

    async def delete(self) -> None:
        """Delete the session, where nothing of it is worth keeping. Raises RpcError."""
        await self._child.connection.request(
            methods.SESSION_DELETE,
            acp.DeleteSessionRequest(session_id=self.session_id),
            timeout=START_SECONDS,
        )

    def cancel(self) -> None:
        """End the turn; its prompt answers soon after."""
        self._child.connection.notify(
            methods.SESSION_CANCEL, acp.CancelNotification(session_id=self.session_id)
        )

    async def aclose(self, *, timeout: float = EXIT_SECONDS) -> None:
        """Close the connection, which ends the agent; kill it after `timeout` seconds."""
        await self._child.aclose(timeout=timeout)

    def _updated(self, params: acp.SessionNotification) -> None:
        if params.session_id not in {"", self.session_id}:
            return
        update = params.update
        if isinstance(update, acp.ToolCall):
            kind = "other" if update.kind is UNSET else update.kind
            self._calls[update.tool_call_id] = (update.title, kind)
        try:
            self._on_update(update)
        except OSError as error:
            self._stop_showing(error)

    async def _asked(
        self, params: acp.RequestPermissionRequest, _: Call
    ) -> acp.RequestPermissionResponse:
        call = params.tool_call
        title, kind = self._calls.get(call.tool_call_id, (call.tool_call_id, "other"))
        asked = Asked(
            title=call.title or title,
            kind=call.kind or kind,
            options=tuple(params.options),
            request=params,
        )
        try:
            return await self._on_permission(asked)
        except OSError as error:
            self._stop_showing(error)
            return acp.RequestPermissionResponse(outcome=acp.CancelledPermissionOutcome())

    def _stop_showing(self, error: OSError) -> None:
        """End the turn: what it says has no reader any more. `prompt` then raises `error`."""
        if self._unshown is None:
            self._unshown = error
            self.cancel()
