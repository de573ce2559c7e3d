"""The stdio transport: a server's program, with one message per line over stdin and stdout.

Source: Model Context Protocol, Transports, stdio. The package's own transport is not used: it reads
lines without a limit, cannot end processes that left the group, and takes seconds to end a program.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from msgspec import Struct
from pydantic import ValidationError

from acp_agent.content import printable_line
from acp_agent.extensions.mcp.config import (
    MARK,
    Launched,
    Launcher,
    ProgramServer,
    server_environ,
)
from acp_agent.extensions.mcp.errors import MAX_LINE_LENGTH
from acp_agent.platform import posix
from acp_agent.platform.watchdog import Watchdog

MESSAGE_LIMIT = 16_000_000  # bytes of one message
_THREAD_SIZE = 500_000  # bytes; larger messages are decoded in a thread
_MAX_QUEUED = (
    64  # messages that may wait to be written, so that a cancel need not wait for a reader
)
_MAX_INVALID_LINES = 10_000  # lines on stdout that are not messages, before the program is ended
_MAX_LOGGED_LINES = 200  # lines of stderr that are logged
_MAX_LOGGED_LENGTH = 500  # characters of such a line

_MAX_LOG_MESSAGES = 100  # messages of the server's log that are taken in within _LOG_SECONDS
_LOG_SECONDS = 10.0

_EXIT_SECONDS = 0.25  # seconds for a program to end after its stdin is closed
_TERM_SECONDS = 0.5  # seconds between SIGTERM and SIGKILL for its group
_REAP_SECONDS = 1.0  # seconds to wait for a killed process
_POLL_SECONDS = 0.01

_HEAD = 500  # bytes in which the method or the id of a message is looked for
_LOG = b'"notifications/message"'
_ID = re.compile(rb'"id"\s*:\s*(\d+|"[^"\\]*")')

_log = logging.getLogger(__name__)


_READ_SIZE = 65_536  # bytes that are read at a time


class LongLine(Struct, frozen=True):
    """A line over the limit: only its beginning; the rest was discarded."""

    head: bytes


async def read_lines(
    stream: asyncio.StreamReader, *, limit: int, head: int = 4_096
) -> AsyncIterator[bytes | LongLine]:
    """Yield the lines of a stream without line ends; empty lines are skipped.

    Args:
        limit: bytes of the longest line that is returned whole.
        head: bytes of a longer line that are returned.
    """
    buffer = bytearray()
    is_long = False
    while data := await stream.read(_READ_SIZE):
        *lines, tail = data.split(b"\n")
        for piece in lines:
            if not is_long:
                buffer += piece
            if line := _line(buffer, limit, head, is_long=is_long):
                yield line
            buffer, is_long = bytearray(), False
        if not is_long:
            buffer += tail
            if len(buffer) > limit:
                is_long = True
                del buffer[head:]
    if line := _line(buffer, limit, head, is_long=is_long):
        yield line


def _line(buffer: bytearray, limit: int, head: int, *, is_long: bool) -> bytes | LongLine | None:
    if is_long or len(buffer) > limit:
        return LongLine(bytes(buffer[:head]))
    return bytes(buffer).strip() or None


class ServerProcess:
    """A running server program, and how it ended."""

    def __init__(self, process: asyncio.subprocess.Process, label: str, mark: str) -> None:
        self._process = process
        self._label = label
        self._mark = mark
        self._last_error_line = ""
        self._invalid_lines = 0
        self._log_start = 0.0
        self._logged = 0
        self._open_requests: set[RequestId] = set()
        self._ending = ""

    def ending(self) -> str:
        """Return a description of how it ended."""
        return self._ending or self._describe()

    def _describe(self) -> str:
        code = self._process.returncode
        if self._invalid_lines > _MAX_INVALID_LINES:
            text = "it writes to stdout what is no message"
        elif code is None:
            text = "it closed its output"
        elif code < 0:
            text = f"it was ended by {posix.signal_name(-code)}"
        else:
            text = f"it ended with exit code {code}"
        return f"{text}: {self._last_error_line}" if self._last_error_line else text

    async def write(self, messages: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Write messages to the program until the client closes its side."""
        stdin = self._process.stdin
        assert stdin is not None
        with suppress(OSError):
            async for item in messages:
                message = item.message
                if isinstance(message, JSONRPCRequest):
                    self._open_requests.add(message.id)
                text = message.model_dump_json(by_alias=True, exclude_unset=True)
                stdin.write(text.encode("utf-8", "replace") + b"\n")
                await stdin.drain()

    async def read(self, messages: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Read messages until the program closes its side."""
        assert self._process.stdout is not None
        async with messages:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                async for line in read_lines(self._process.stdout, limit=MESSAGE_LIMIT):
                    for message in await self._messages(line):
                        await messages.send(message)
                    if self._invalid_lines > _MAX_INVALID_LINES:
                        break
            await self._exited(_EXIT_SECONDS)  # so that the exit status is known
            self._ending = self._describe()

    async def _messages(self, line: bytes | LongLine) -> list[SessionMessage]:
        if isinstance(line, LongLine):
            why = f"the answer is longer than {MESSAGE_LIMIT // 1_000_000} MB"
            return [_failure(request, why) for request in self._answered_requests(line)]
        if _LOG in line[:_HEAD] and not self._may_log():
            return []
        try:
            if len(line) < _THREAD_SIZE:
                messages = _decode(line)
            else:
                messages = await asyncio.to_thread(_decode, line)
        except ValueError:
            if (request := self._answered_wrongly(line)) is not None:
                return [_failure(request, "the answer has the wrong shape")]
            self._invalid_lines += 1
            if self._invalid_lines == 1:
                _log.warning("the MCP server %s writes to stdout what is no message", self._label)
            return []
        for message in messages:
            if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
                self._open_requests.discard(message.id)
        return [SessionMessage(message) for message in messages]

    def _may_log(self) -> bool:
        """Return whether a message of the server's log is taken in: some log thousands at once."""
        now = asyncio.get_running_loop().time()
        if now - self._log_start > _LOG_SECONDS:
            self._log_start, self._logged = now, 0
        self._logged += 1
        return self._logged <= _MAX_LOG_MESSAGES

    def _answered_wrongly(self, line: bytes) -> RequestId | None:
        """Return the open request that an invalid message answers; None if it answers none."""
        match = _ID.search(line[:_HEAD])
        if match is None or b'"method"' in line[:_HEAD]:
            return None
        text = match[1].decode("utf-8", "replace")
        request: RequestId = text[1:-1] if text.startswith('"') else int(text)
        if request not in self._open_requests:
            return None
        self._open_requests.discard(request)
        return request

    def _answered_requests(self, line: LongLine) -> list[RequestId]:
        """Return the requests that a line over the limit may have answered."""
        match = _ID.search(line.head)
        if match is None:
            return list(self._open_requests)
        text = match[1].decode("utf-8", "replace")
        return [text[1:-1] if text.startswith('"') else int(text)]

    async def log_stderr(self, clean: Callable[[str], str]) -> None:
        """Write the program's stderr to the log, up to a limit."""
        assert self._process.stderr is not None
        count = 0
        async for line in read_lines(
            self._process.stderr, limit=_MAX_LOGGED_LENGTH, head=_MAX_LOGGED_LENGTH
        ):
            text = line.head if isinstance(line, LongLine) else line
            count += 1
            if count <= _MAX_LOGGED_LINES or count % 1_000 == 0:
                line_text = clean(text.decode("utf-8", "replace"))
                self._last_error_line = printable_line(line_text, MAX_LINE_LENGTH)
                _log.info("MCP server %s: %s", self._label, self._last_error_line)
            if count == _MAX_LOGGED_LINES:
                _log.info("MCP server %s: what follows is left out", self._label)

    async def end(self) -> None:
        """End the program: close its stdin, end its process group, and end remaining processes."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        group = self._process.pid
        if not await self._exited(_EXIT_SECONDS) or posix.group_alive(group):
            posix.end_group(group, at_once=False)
            await self._exited(_TERM_SECONDS)
            posix.end_group(group, at_once=True)
            await self._exited(_REAP_SECONDS)
        for process in await asyncio.to_thread(posix.marked_processes, f"{MARK}={self._mark}"):
            posix.end_process(process)

    def end_at_once(self) -> None:
        """End the program's group without waiting."""
        posix.end_group(self._process.pid, at_once=True)

    async def _exited(self, limit: float) -> bool:
        # Not `process.wait`, which also waits for the pipes, which a grandchild may hold open.
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limit
        while self._process.returncode is None:
            if loop.time() >= deadline:
                return False
            await asyncio.sleep(_POLL_SECONDS)
        return True


@asynccontextmanager
async def stdio_transport(
    server: ProgramServer,
    *,
    label: str,
    cwd: Path,
    environ: Mapping[str, str],
    watch: Watchdog,
    clean: Callable[[str], str],
    launch: Launcher,
    on_start: Callable[[ServerProcess], None],
) -> AsyncIterator[TransportStreams]:
    """Start a server's program in a separate process group, and end it on exit.

    Args:
        label: the server's name in the log.
        environ: the user's environment; `server_environ` selects what is passed on.
        launch: defines how the program is started.
        on_start: receives the program, which can later be asked how it ended.

    Raises:
        OSError: it cannot be started.
        ValueError: the command contains a NUL.
    """
    mark = f"{watch.mark.partition('=')[2]}{uuid.uuid4().hex}"
    watch.start()
    launched = await launch(
        (server.command, *server.args),
        server_environ(environ, server.env, mark),
        str(cwd),
        server.options,
    )
    try:
        process = await _start(launched, cwd)
    except BaseException:
        await launched.aclose()
        raise
    watch.add_group(process.pid)
    program = ServerProcess(process, label, mark)
    on_start(program)
    incoming_send, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, outgoing_receive = anyio.create_memory_object_stream[SessionMessage](_MAX_QUEUED)
    pumps = [
        asyncio.create_task(program.read(incoming_send)),
        asyncio.create_task(program.write(outgoing_receive)),
        asyncio.create_task(program.log_stderr(clean)),
    ]
    try:
        yield incoming, outgoing
    finally:
        ending = asyncio.create_task(_end_program(program, pumps))
        for stream in (incoming_send, incoming, outgoing, outgoing_receive):
            stream.close()
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            program.end_at_once()
            raise
        finally:
            watch.remove_group(process.pid)
            await launched.aclose()


def _decode(line: bytes) -> list[JSONRPCMessage]:
    """Decode a message, or a batch of messages. Raises ValueError if the line is none."""
    try:
        return [jsonrpc_message_adapter.validate_json(line, by_name=False)]
    except ValidationError:
        value = _decode_leniently(line)
    batch = value if isinstance(value, list) else [value]
    return [jsonrpc_message_adapter.validate_python(item, by_name=False) for item in batch]


def _decode_leniently(line: bytes) -> object:
    """Decode JSON that pydantic does not: it fails at 200 levels, and at lone surrogates.

    The deep value may be the schema of one tool of many.
    """
    try:
        try:
            value: object = msgspec.json.decode(line)
        except msgspec.DecodeError:
            text = json.dumps(json.loads(line), ensure_ascii=False)
            value = json.loads(text.encode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


async def _end_program(program: ServerProcess, pumps: list[asyncio.Task[None]]) -> None:
    await program.end()
    for pump in pumps:
        pump.cancel()
    await asyncio.wait(pumps)


async def _start(launched: Launched, cwd: Path) -> asyncio.subprocess.Process:
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *launched.argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=cwd,
            env=launched.environ,
            pass_fds=tuple(launched.descriptors),
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_end_started)  # the child process may already exist
        raise
    finally:
        launched.close_descriptors()


def _end_started(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        posix.end_group(starting.result().pid, at_once=True)


def _failure(request: RequestId, why: str) -> SessionMessage:
    error = ErrorData(code=INTERNAL_ERROR, message=why)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=error))
