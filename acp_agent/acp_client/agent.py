"""Another agent that works on a task: started, given a session and prompts, and ended."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Protocol, Self, TypeVar

from msgspec import Struct

from acp_agent.acp_client.process import AgentChild, AgentOutput
from acp_agent.acp_client.programs import convert_server
from acp_agent.acp_client.updates import ExternalCall, UpdateReader
from acp_agent.content import printable_line
from acp_agent.errors import AcpAgentError, MissingFileError, StoreError, ToolError
from acp_agent.events import AgentText, AgentThought, AnyEvent, StopReason
from acp_agent.extensions.mcp.config import HttpServer, ProgramServer
from acp_agent.platform import posix
from protocol.jsonrpc.handlers import Call
from protocol.jsonrpc.messages import AUTH_REQUIRED, INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcError
from protocol.v1 import methods, types as acp

START_SECONDS = 60.0  # for the answer to `initialize`, and to `session/new`
_EXIT_SECONDS = 1.0  # for the program to end by itself
_STATUS_SECONDS = 0.5  # between the end of its output and that of the program, or the reverse
_MAX_PENDING_EVENTS = 500  # events that wait to be written, from which on nothing more is read
_MAX_PENDING_TEXT = 50_000  # characters of text in those events
_MAX_REASON_LENGTH = 400  # characters of the agent's own words in an error

R = TypeVar("R")


class Program(Struct, frozen=True, kw_only=True):
    """How an agent is started: its name, the command line, the environment and the folder.

    `mode` is the id of a mode of its own; empty for the one that it begins in. `servers` are the
    MCP servers that it gets, as far as it can use their transports.
    """

    name: str
    command: tuple[str, ...]
    environ: Mapping[str, str]
    cwd: Path
    mode: str = ""
    servers: tuple[ProgramServer | HttpServer, ...] = ()


class PermissionOption(Struct, frozen=True):
    """An answer that the agent offers; `kind` is one of the protocol's four."""

    id: str
    label: str
    kind: acp.PermissionOptionKind


class Host(Protocol):
    """Host of an agent: shows what the agent does, asks the user, and gives access to files."""

    async def show(self, events: Sequence[AnyEvent]) -> None:
        """Show events of the agent. Raises StoreError if they could not be written."""

    async def ask(self, call: ExternalCall, options: Sequence[PermissionOption]) -> str | None:
        """Ask the user to decide about a call; return the id of an option, None without one."""

    async def read_file(self, path: str) -> str:
        """Return the text of a file. Raises AcpAgentError."""

    async def write_file(self, path: str, text: str) -> None:
        """Write a file. Raises AcpAgentError."""


class ExternalAgent:
    """An agent that was started for one task. Make one with `start`, end it with `aclose`."""

    def __init__(self, program: Program, host: Host) -> None:
        self._program = program
        self._host = host
        self._reader = UpdateReader(program.name)
        self._pending: list[AnyEvent] = []
        self._pending_text = 0
        self._has_pending = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._show_lock = asyncio.Lock()
        self._failure: AcpAgentError | None = None  # to write what the agent did
        self._session = ""
        self._tasks: list[asyncio.Task[None]] = []
        self._output: AgentOutput
        self._child: AgentChild

    @classmethod
    async def start(cls, program: Program, host: Host) -> Self:
        """Start the program and make a session. Raises ToolError."""
        agent = cls(program, host)
        try:
            await agent._start()
        except BaseException:
            await agent.aclose()
            raise
        return agent

    async def _start(self) -> None:
        name = self._program.name
        try:
            self._child = await AgentChild.start(
                self._program.command,
                {
                    methods.SESSION_UPDATE.name: self._receive_update,
                    methods.REQUEST_PERMISSION.name: self._request_permission,
                    methods.FS_READ_TEXT_FILE.name: self._read_file,
                    methods.FS_WRITE_TEXT_FILE.name: self._write_file,
                },
                cwd=self._program.cwd,
                keep_stderr=True,
                environ=self._program.environ,
                grace=_EXIT_SECONDS,
                map_error=_error_response,
                transport=self._make_output,
            )
        except OSError as error:
            reason = error.strerror or type(error).__name__
            message = f"{name} cannot be started ({self._program.command[0]}): {reason}"
            raise ToolError(message) from None
        self._tasks = [
            asyncio.create_task(self._show_pending()),
            asyncio.create_task(self._stop_at_exit()),
        ]
        capabilities = acp.ClientCapabilities(
            fs=acp.FileSystemCapabilities(read_text_file=True, write_text_file=True)
        )
        initialized = await self._await_response(
            methods.INITIALIZE.name,
            self._child.initialize(capabilities, name="acp-agent", timeout=START_SECONDS),
        )
        if initialized.protocol_version != 1:
            raise ToolError(
                f"{name} speaks version {initialized.protocol_version} of the Agent Client "
                "Protocol; acp-agent can use version 1 of other agents"
            )
        supported = initialized.agent_capabilities.mcp_capabilities
        servers = [
            wire for server in self._program.servers for wire in convert_server(server, supported)
        ]
        request = acp.NewSessionRequest(cwd=str(self._program.cwd), mcp_servers=servers)
        session = await self._await_response(
            methods.SESSION_NEW.name,
            self._child.connection.request(methods.SESSION_NEW, request, timeout=START_SECONDS),
        )
        self._session = session.session_id
        await self._choose_mode(session)

    async def _choose_mode(self, session: acp.NewSessionResponse) -> None:
        name, mode = self._program.name, self._program.mode
        modes = session.modes
        if not mode or (modes is not None and modes.current_mode_id == mode):
            return
        mode_ids = [] if modes is None else [available.id for available in modes.available_modes]
        if mode not in mode_ids:
            mode_list = printable_line(", ".join(mode_ids), _MAX_REASON_LENGTH) or "none"
            raise ToolError(f"{name} has no mode {mode}; its modes are: {mode_list}")
        request = acp.SetSessionModeRequest(session_id=self._session, mode_id=mode)
        await self._await_response(
            methods.SESSION_SET_MODE.name,
            self._child.connection.request(
                methods.SESSION_SET_MODE, request, timeout=START_SECONDS
            ),
        )

    def _make_output(self, in_fd: int, out_fd: int) -> AgentOutput:
        self._output = AgentOutput(in_fd, out_fd, self._wait_for_room)
        return self._output

    async def _wait_for_room(self) -> None:
        await self._room.wait()

    async def prompt(self, text: str) -> StopReason:
        """Give it a task, and wait until it is done with it. Raises ToolError, StoreError."""
        prompt = acp.PromptRequest(session_id=self._session, prompt=[acp.TextContent(text=text)])
        try:
            response = await self._await_response(
                methods.SESSION_PROMPT.name,
                self._child.connection.request(methods.SESSION_PROMPT, prompt),
            )
        except asyncio.CancelledError:
            cancel = acp.CancelNotification(session_id=self._session)
            self._child.connection.notify(methods.SESSION_CANCEL, cancel)
            raise
        self._pending += [*self._reader.end_message(), *self._reader.usage_events(response.usage)]
        await self._show_now()
        return response.stop_reason

    async def aclose(self) -> None:
        """End the program and all that it left in its process group."""
        if not self._tasks:  # it was not started
            return
        self._room.set()
        await self._child.aclose(timeout=0.0 if self._output.fault else _EXIT_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def finish(self, *, cancelled: bool) -> None:
        """Show what the agent left open as ended. Call it once after `aclose`."""
        self._pending += [*self._reader.end(cancelled=cancelled), *self._reader.usage_events(None)]
        await self._show_now()

    # -- requests and their failures -----------------------------------------------------------

    async def _await_response(self, method: str, request: Coroutine[None, None, R]) -> R:
        """Wait for the answer to a request. Raises ToolError, StoreError."""
        name = self._program.name
        try:
            return await request
        except RpcError as error:
            reason = printable_line(error.message, _MAX_REASON_LENGTH)
            if error.code == AUTH_REQUIRED:
                raise ToolError(
                    f"{name} needs a login, which acp-agent cannot do for it ({reason}); log in "
                    "with that program, or name the variable with its key in env_vars"
                ) from None
            raise ToolError(
                f"{name} answered {method} with an error: {reason} ({error.code})"
            ) from None
        except TimeoutError:
            raise ToolError(
                f"{name} did not answer {method} within {START_SECONDS:g} s; its output: "
                f"{self._diagnostic_output()}"
            ) from None
        except ConnectionError:
            if self._failure is not None:
                raise self._failure from None
            raise await self._connection_error(method) from None

    async def _connection_error(self, method: str) -> ToolError:
        """Describe how the connection ended before a request was answered."""
        name = self._program.name
        if self._output.fault:
            return ToolError(
                f"{name} was ended, because it {self._output.fault}: {self._diagnostic_output()}"
            )
        with suppress(TimeoutError):
            async with asyncio.timeout(_STATUS_SECONDS):
                await self._child.exited()
        status, reason = self._child.status, self._diagnostic_output()
        if status is None:
            return ToolError(f"{name} closed its output before it answered {method}: {reason}")
        if status < 0:
            signal = posix.signal_name(-status)
            return ToolError(f"{name} was ended by {signal} before it answered {method}: {reason}")
        return ToolError(
            f"{name} ended with exit status {status} before it answered {method}: {reason}"
        )

    def _diagnostic_output(self) -> str:
        """Return what the program wrote besides messages."""
        reason = self._output.first_noise or self._child.stderr_tail[-_MAX_REASON_LENGTH:]
        return printable_line(reason, _MAX_REASON_LENGTH) or "it wrote nothing"

    # -- what the agent sends ------------------------------------------------------------------

    def _receive_update(self, params: acp.SessionNotification) -> None:
        if params.session_id != self._session:
            return
        events = self._reader.read(params.update)
        self._pending += events
        self._has_pending.set()
        self._pending_text += sum(
            len(event.text) for event in events if isinstance(event, AgentText | AgentThought)
        )
        if len(self._pending) > _MAX_PENDING_EVENTS or self._pending_text > _MAX_PENDING_TEXT:
            self._room.clear()

    async def _show_pending(self) -> None:
        """Show what comes, until cancelled; a failure to do so ends the connection."""
        try:
            while True:
                await self._has_pending.wait()
                self._has_pending.clear()
                await self._show_now()
        except AcpAgentError as error:
            self._failure = error
            self._room.set()
            self._child.connection.stop()

    async def _stop_at_exit(self) -> None:
        """End the connection with the program: what it left may hold its output open."""
        await self._child.exited()
        await asyncio.sleep(_STATUS_SECONDS)  # for its last output to be read
        self._child.connection.stop()

    async def _show_now(self) -> None:
        async with self._show_lock:
            events, self._pending, self._pending_text = self._pending, [], 0
            self._room.set()
            if events:
                await self._host.show(_join_texts(events))

    async def _request_permission(
        self, params: acp.RequestPermissionRequest, _: Call
    ) -> acp.RequestPermissionResponse:
        self._check_session(params.session_id)
        call, events = self._reader.read_call(params.tool_call)
        self._pending += events
        await self._show_now()
        options = [
            PermissionOption(offer.option_id, offer.name, offer.kind) for offer in params.options
        ]
        option_id = await self._host.ask(call, options)
        if option_id is None:
            return acp.RequestPermissionResponse(outcome=acp.CancelledPermissionOutcome())
        outcome = acp.SelectedPermissionOutcome(option_id=option_id)
        return acp.RequestPermissionResponse(outcome=outcome)

    async def _read_file(
        self, params: acp.ReadTextFileRequest, _: Call
    ) -> acp.ReadTextFileResponse:
        self._check_session(params.session_id)
        text = await self._host.read_file(params.path)
        if params.line is not None or params.limit is not None:
            first = max(0, (params.line or 1) - 1)
            last = None if params.limit is None else first + params.limit
            text = "".join(text.splitlines(keepends=True)[first:last])
        return acp.ReadTextFileResponse(content=text)

    async def _write_file(
        self, params: acp.WriteTextFileRequest, _: Call
    ) -> acp.WriteTextFileResponse:
        self._check_session(params.session_id)
        await self._show_now()
        await self._host.write_file(params.path, params.content)
        return acp.WriteTextFileResponse()

    def _check_session(self, session_id: str) -> None:
        if session_id != self._session:
            raise RpcError(INVALID_PARAMS, "there is no such session")


def _error_response(error: Exception) -> RpcError | None:
    """Return what the agent is told of a request that failed; None: nothing but that it did."""
    if isinstance(error, MissingFileError):
        return RpcError(RESOURCE_NOT_FOUND, str(error))
    if isinstance(error, AcpAgentError) and not isinstance(error, StoreError):
        return RpcError(INVALID_PARAMS, str(error))
    return None


def _join_texts(events: Sequence[AnyEvent]) -> list[AnyEvent]:
    """Return events with the pieces of one text as one."""
    joined: list[AnyEvent] = []
    for key, group in groupby(events, _text_key):
        pieces = list(group)
        first = pieces[0]
        if key is not None and isinstance(first, AgentText | AgentThought):
            text = "".join(piece.text for piece in pieces if isinstance(piece, type(first)))
            joined.append(type(first)(message=first.message, text=text))
        else:
            joined += pieces
    return joined


def _text_key(event: AnyEvent) -> tuple[type, str] | None:
    if isinstance(event, AgentText | AgentThought):
        return type(event), event.message
    return None
