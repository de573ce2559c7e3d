"""Starts agents as children of a process that has imported the agent's modules already.

An agent spends nine tenths of a short test importing. One that is forked behind its imports is
the same program with the same pipes, in a session of its own; what it skips is the imports. Tests
of starting, of late imports, of other clients and of crashes start the real command.

    with WarmParent() as parent:
        process = await parent.start(["--model", "demo/demo"], cwd=folder, env={...})
        done = parent.run(["sessions", "list"], cwd=folder, env={...})

The parent is this file, run as a program: it is sent a request and four descriptors (stdin,
stdout, stderr and where to report to) for each agent, and reports its process id and its status.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import ctypes
import fcntl
import functools
import gc
import importlib
import inspect
import json
import os
import pkgutil
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

import msgspec
import pydantic

_ROOT = Path(__file__).resolve().parents[2]
_LONGEST = 1 << 18
_STREAM_LIMIT = 1 << 16
_LIMIT = 60.0  # seconds that a command may take

# What the packages that the agent is made with import when they are first used.
_LATE = (
    "aiofiles.tempfile",
    "anyio._backends._asyncio",
    "httpcore2",
    "tree_sitter_bash",
    "truststore",
)

_HUGE_PAGE = 1 << 21
_COLLAPSE = 25  # MADV_COLLAPSE of <linux/mman.h>

_Kind = TypeVar("_Kind")


class WarmProcess:
    """An agent that was forked; looks like an `asyncio.subprocess.Process`."""

    def __init__(
        self,
        pid: int,
        *,
        stdin: asyncio.StreamWriter | None = None,
        stdout: asyncio.StreamReader | None = None,
        stderr: asyncio.StreamReader | None = None,
        report: asyncio.StreamReader,
    ) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None
        self._ended = asyncio.ensure_future(self._wait_for(report))

    async def _wait_for(self, report: asyncio.StreamReader) -> int:
        self.returncode = os.waitstatus_to_exitcode(int(await report.readline()))
        return self.returncode

    async def wait(self) -> int:
        """Its exit status, negative for a signal."""
        return await asyncio.shield(self._ended)

    async def communicate(self, data: bytes = b"") -> tuple[bytes, bytes]:
        """Write its input, close it, and wait for its end; what it wrote to stdout and stderr."""
        assert self.stdin is not None
        assert self.stdout is not None
        assert self.stderr is not None
        with contextlib.suppress(ConnectionError):  # it has ended without reading
            self.stdin.write(data)
            await self.stdin.drain()
        self.stdin.close()
        out, err, _ = await asyncio.gather(self.stdout.read(), self.stderr.read(), self.wait())
        return out, err

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


class WarmChild:
    """An agent that was forked; looks like a `subprocess.Popen` with three pipes."""

    def __init__(self, stdin: int, stdout: int, stderr: int, report: int) -> None:
        self.stdin = open(stdin, "wb", buffering=0)  # noqa: SIM115 - closed with the object
        self.stdout = open(stdout, "rb")  # noqa: SIM115 - likewise
        self.stderr = open(stderr, "rb")  # noqa: SIM115 - likewise
        self._report = open(report, "rb")  # noqa: SIM115 - likewise
        self.pid = int(self._report.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit status, once it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, negative for a signal."""
        if self.returncode is None:
            if not select.select([self._report], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("acp-agent", timeout or 0)
            self.returncode = os.waitstatus_to_exitcode(int(self._report.readline()))
            self._report.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


class WarmParent:
    """The process that agents are forked from. A context manager; it ends with the block."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for side in (self._control, theirs):
            side.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * _LONGEST)
        self._folder = tempfile.TemporaryDirectory(prefix="warm-")
        self._path = os.path.join(self._folder.name, "socket")
        self._listens = False
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno()), self._path],
                cwd=_ROOT,
                env={**os.environ, "PYTHONPATH": str(_ROOT)},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._control.close()
        self._process.wait(timeout=30)
        self._folder.cleanup()

    def command(self) -> list[str]:
        """A command that starts `acp-agent` in a session of its own, for other programs."""
        if not self._listens:
            self.run(["--version"], cwd=_ROOT, env={})
            self._listens = True
        return _command(self._path)

    async def start(
        self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str]
    ) -> WarmProcess:
        """Start `acp-agent` with these arguments, in a session of its own, on three pipes."""
        ours_in, ours_out, ours_err, ours_report = self._fork(arguments, cwd, env)
        reports = await _reader(ours_report)
        pid = int(await reports.readline())
        return WarmProcess(
            pid,
            stdin=await _writer(ours_in),
            stdout=await _reader(ours_out),
            stderr=await _reader(ours_err),
            report=reports,
        )

    async def start_in_terminal(
        self, terminal: int, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str]
    ) -> WarmProcess:
        """Start `acp-agent` like `start`, but with a terminal for all of its streams."""
        ours_report, report = os.pipe()
        self._send([terminal, terminal, terminal, report], arguments, cwd, env)
        os.close(report)
        reports = await _reader(ours_report)
        return WarmProcess(int(await reports.readline()), report=reports)

    def spawn(self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> WarmChild:
        """Start `acp-agent` like `start`, for a caller without an event loop."""
        return WarmChild(*self._fork(arguments, cwd, env))

    def run(
        self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run `acp-agent` with these arguments until it ends."""
        child = self.spawn(arguments, cwd=cwd, env=env)
        with ThreadPoolExecutor(2) as pool, child.stdout, child.stderr:
            output, errors = pool.submit(child.stdout.read), pool.submit(child.stderr.read)
            with contextlib.suppress(BrokenPipeError), child.stdin:
                child.stdin.write(stdin.encode())
            try:
                status = child.wait(_LIMIT)
            except subprocess.TimeoutExpired:
                child.kill()
                status = child.wait()
            return subprocess.CompletedProcess(
                ["acp-agent", *arguments],
                status,
                output.result().decode(),
                errors.result().decode(),
            )

    def _fork(
        self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str]
    ) -> tuple[int, int, int, int]:
        """Ask for a process; our ends of its stdin, stdout, stderr and report."""
        stdin, ours_in = os.pipe()
        ours_out, stdout = os.pipe()
        ours_err, stderr = os.pipe()
        ours_report, report = os.pipe()
        given = [stdin, stdout, stderr, report]
        try:
            self._send(given, arguments, cwd, env)
        finally:
            for descriptor in given:
                os.close(descriptor)
        return ours_in, ours_out, ours_err, ours_report

    def _send(
        self,
        descriptors: Sequence[int],
        arguments: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
    ) -> None:
        request = {"arguments": list(arguments), "cwd": os.fspath(cwd), "environment": dict(env)}
        socket.send_fds(self._control, [json.dumps(request).encode()], descriptors)


def _command(path: str) -> list[str]:
    program = Path(__file__).with_name("warm_command.py")
    return [sys.executable, "-I", "-S", str(program), path]


@functools.cache
def shared_parent() -> WarmParent:
    """The parent of all agents and commands of this process, which ends with it."""
    parent = WarmParent()
    atexit.register(parent.__exit__, None, None, None)
    return parent


async def _reader(descriptor: int) -> asyncio.StreamReader:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_STREAM_LIMIT)
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
    )
    return reader


async def _writer(descriptor: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(descriptor, "wb", buffering=0)
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)


# --- the parent itself


class _Server:
    def __init__(self, control: socket.socket, path: str) -> None:
        self._control = control
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(path)
        self._listener.listen()
        self._reports: dict[int, int] = {}  # where to report to, by process id
        self._commands: dict[socket.socket, int] = {}  # process ids by the connection that asked
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()

    def serve(self) -> Mapping[str, Any] | None:
        """Fork as asked until the tests have ended; in a child: what it was asked to be."""
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        self._selector.register(self._control, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._selector.register(self._listener, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._woken:
                    self._woken.recv(4096)
                    self._report_ends()
                    continue
                if isinstance(key.fileobj, socket.socket) and key.fileobj in self._commands:
                    self._drop(key.fileobj)
                    continue
                command = self._listener.accept()[0] if key.fileobj is self._listener else None
                data, descriptors, _, _ = socket.recv_fds(command or self._control, _LONGEST, 4)
                if not data and command is None:
                    return None
                if not data and command is not None:
                    command.close()
                if data:
                    request = self._fork(json.loads(data), descriptors, command)
                    if request is not None:
                        return request

    def _drop(self, command: socket.socket) -> None:
        """Kill the agent of a command that was killed, or that saw the agent's end."""
        pid = self._commands.pop(command)
        if pid in self._reports:
            os.kill(pid, signal.SIGKILL)
        self._selector.unregister(command)
        command.close()

    def _fork(
        self,
        request: Mapping[str, Any],
        descriptors: Sequence[int],
        command: socket.socket | None,
    ) -> Mapping[str, Any] | None:
        pid = os.fork()
        if pid == 0:
            self._forget_everything()
            if command is not None:
                command.close()
            for number, descriptor in enumerate(descriptors[:3]):
                os.dup2(descriptor, number)
            for descriptor in descriptors:
                os.close(descriptor)
            encoding = request["environment"].get("PYTHONIOENCODING")
            for name, stream in (
                ("stdin", open(0, closefd=False)),  # noqa: SIM115 - for the process's life
                ("stdout", open(1, "w", encoding=encoding, closefd=False)),  # noqa: SIM115 - likewise
                ("stderr", open(2, "w", buffering=1, closefd=False)),  # noqa: SIM115 - likewise
            ):
                setattr(sys, name, stream)
                setattr(sys, f"__{name}__", stream)
            return request
        *pipes, report = descriptors
        for descriptor in pipes:
            os.close(descriptor)
        self._reports[pid] = report
        if command is not None:
            self._commands[command] = pid
            self._selector.register(command, selectors.EVENT_READ)
        os.write(report, b"%d\n" % pid)
        return None

    def _forget_everything(self) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        for one in (self._control, self._listener, self._woken, self._waker, *self._commands):
            one.close()
        for report in self._reports.values():
            os.close(report)

    def _report_ends(self) -> None:
        while self._reports:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            report = self._reports.pop(pid)
            with contextlib.suppress(BrokenPipeError):  # the test did not wait for it
                os.write(report, b"%d\n" % status)
            os.close(report)


def _import_everything() -> None:
    import acp_agent
    import protocol
    from acp_agent.workspace.scrub import scrub

    for package in (acp_agent, protocol):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                with contextlib.suppress(ImportError):  # of an extra that is not installed
                    importlib.import_module(module.name)
    for name in _LATE:
        importlib.import_module(name)
    scrub("")  # reads its patterns
    _describe_types()
    _read_tables()
    gc.collect()
    gc.freeze()  # so that no collection in a child copies these pages
    _use_huge_pages()


def _describe_types() -> None:
    """Build what msgspec and pydantic keep of each type, as they do where it is first used."""
    from acp_agent.tools.calls.parameter_schemas import parameters_schema

    for kind in _subclasses(msgspec.Struct):
        with contextlib.suppress(TypeError, NameError):  # those that are never decoded
            msgspec.json.Decoder(kind)
    for params in _subclasses(pydantic.BaseModel):
        if params.__module__.startswith("acp_agent.tools."):
            parameters_schema(params)


def _read_tables() -> None:
    """Call what keeps its only value: tables of patterns, decoders, texts."""
    for name, module in list(sys.modules.items()):
        # What is left out installs an audit hook, which would stay.
        if name.startswith(("acp_agent.", "protocol.")) and name != "acp_agent.replay.confinement":
            for function in list(vars(module).values()):
                if hasattr(function, "cache_info") and not inspect.signature(function).parameters:
                    function()


def _use_huge_pages() -> None:
    """Lay the memory out in pages of 2 MiB, so that a fork copies tables of hundreds, not tens of
    thousands of entries; a kernel that cannot (before Linux 6.1) is asked in vain.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    for line in Path("/proc/self/maps").read_text().splitlines():
        extent, access, _, _, inode, *_ = line.split()
        if access.startswith("rw") and inode == "0":
            start, end = (int(address, 16) for address in extent.split("-"))
            start, end = -(-start // _HUGE_PAGE) * _HUGE_PAGE, end // _HUGE_PAGE * _HUGE_PAGE
            if start < end:
                libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _COLLAPSE)


def _subclasses(kind: type[_Kind]) -> Iterator[type[_Kind]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _main() -> NoReturn:
    sys.path.remove(str(Path(__file__).parent))
    control = socket.socket(fileno=int(sys.argv[1]))
    _import_everything()
    request = _Server(control, sys.argv[2]).serve()
    if request is None:
        sys.exit(0)
    os.setsid()
    with contextlib.suppress(OSError):  # not a terminal, or another session's
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    path = sys.argv[2]
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["acp-agent", *request["arguments"]]
    from acp_agent.cli import agent_client, chat
    from acp_agent.cli.main import main
    from acp_agent.platform import module_cache
    from acp_agent.session.mcp import servers

    for module in () if "ACP_AGENT_TEST_COLD" in os.environ else (agent_client, chat):
        module.self_command = lambda *words: [*_command(path), *words]  # type: ignore[attr-defined]  # imported
    module_cache.use = lambda: None  # all is imported, and the file is that of other processes
    servers.READY_TIMEOUT = 60.0  # MCP servers start slowly on a busy machine

    _end(main)


def _end(main: Callable[[], int]) -> NoReturn:
    """Run the program and end without freeing what the parent imported, which takes longer."""
    try:
        sys.exit(main())
    except SystemExit as end:
        status = end.code
    except BaseException:  # noqa: BLE001 - shown as Python shows it
        sys.excepthook(*sys.exc_info())
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]  # as Python does first, for its threads
    atexit._run_exitfuncs()
    if isinstance(status, str):
        sys.stderr.write(f"{status}\n")
        status = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status or 0)


if __name__ == "__main__":
    _main()
