"""Run shell commands, each in a new session and process group that ends with it.

`child_process` describes what happens to processes that a command leaves behind.
"""

from __future__ import annotations

import asyncio
import errno
import os
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

from acp_agent.errors import WorkspaceError
from acp_agent.platform import posix
from acp_agent.platform.descriptor_limit import describe_os_error
from acp_agent.platform.posix import outside_folders
from acp_agent.platform.watchdog import Watchdog
from acp_agent.sandbox.launch import CONFINED, Confinement, Launch
from acp_agent.sandbox.sandbox import Sandbox
from acp_agent.workspace.child_process import (
    MARK,
    REAP_LIMIT,
    ChildOutput,
    RunningCommand,
    end_marked,
    start_transport,
    wait_at_most,
)
from acp_agent.workspace.command_output import CommandOutput, LiveOutput
from acp_agent.workspace.environment import added_variables, command_environ, plain_variables
from acp_agent.workspace.network import system_resolve

if TYPE_CHECKING:  # known once the first command runs
    from acp_agent.sandbox.watch import RenamedFile


class CommandResult(Struct, frozen=True, kw_only=True):
    """The result of a command. `output` is stdout and stderr combined, limited in length.

    If `output` is incomplete, `full_output` names the file with all of it. `stopped` is true if
    the user ended the command, and `confined` if it ran in the sandbox. The sandbox refused the
    connections to `refused_hosts`, and moved away files that other programs would run.
    """

    output: str
    exit_code: int | None
    signal: str | None = None
    timed_out: bool = False
    stopped: bool = False
    confined: bool = False
    refused_hosts: tuple[str, ...] = ()
    moved: tuple[RenamedFile, ...] = ()
    total_bytes: int = 0
    full_output: str | None = None


class CommandWatcher(Protocol):
    """Follows a command while it runs."""

    def started(self) -> None:
        """Called when the command runs."""

    def wrote(self, text: str, file: Path | None) -> None:
        """Called with new output; `file` has the complete output once that is long."""


class EditorTerminals(Protocol):
    """The editor's terminals; used only if the user enables them and the editor supports them."""

    async def run(
        self,
        command: str,
        cwd: Path,
        *,
        limit_bytes: int,
        timeout: float,
        only_reads: bool,
        on_start: Callable[[str], Awaitable[None]],
    ) -> CommandResult:
        """Run a command line; `on_start` is called with the id of the terminal to show.

        `only_reads` is as in `LocalProcesses.run`.
        """


class LocalProcesses:
    """Runs commands on this machine as the user, with the user's environment minus credentials."""

    def __init__(
        self,
        outputs: Path,
        *,
        environ: Mapping[str, str],
        keep: Collection[str] = (),
        hide: Collection[str] = (),
        clean: Callable[[str], str] = str,
        sandbox: Sandbox | None = None,
        roots: Sequence[Path] = (),
    ) -> None:
        """Create an instance; no process starts yet.

        Args:
            outputs: the folder for outputs that are too long for the model.
            environ: the user's environment; `environment.command_environ` removes credentials.
            keep: names of variables that are passed on although they look like credentials.
            hide: further names that are removed, such as variables with keys of providers.
            clean: removes secrets from stored outputs.
            sandbox: confines the commands if this machine supports it; None for no sandbox.
            roots: the project's folders. The shell, and programs of commands that run without
                permission, are never taken from there.
        """
        self.sandbox = sandbox
        self.variables: dict[str, str] = {}  # that hooks set
        self._clean = clean
        self._outputs = outputs
        self._environ = command_environ(environ, keep=keep, hide=hide)
        self._read_only_environ = self._environ | added_variables(self._environ, only_reads=True)
        outside = outside_folders(environ.get("PATH", os.defpath), roots)
        if "PATH" in self._read_only_environ:
            self._read_only_environ["PATH"] = outside
        self._shell = posix.find_shell(outside)
        self._mark = uuid.uuid4().hex + "."
        self._watch = Watchdog(f"{MARK}={self._mark}")
        self._command_count = 0
        self._running: set[RunningCommand] = set()
        self._reaping: set[asyncio.Task[None]] = set()
        self._closed = asyncio.Event()

    async def run(
        self,
        command: str,
        cwd: Path,
        *,
        timeout: float | None,
        on_output: Callable[[str], Awaitable[None]],
        stop: asyncio.Event | None = None,
        watcher: CommandWatcher | None = None,
        only_reads: bool = False,
        confinement: Confinement = CONFINED,
    ) -> CommandResult:
        """Run a shell command line with no input; stdout and stderr are one stream.

        A cancelled call kills the whole group and reaps it in the background. Setting `stop` asks
        the group to end, like a timeout, and the result is still returned. A `timeout` of None
        means no limit. `confinement` says whether the command runs in the sandbox, if there is one.

        Raises:
            WorkspaceError: the command cannot be started, or the session is closed.
        """
        started = await self._start(command, cwd, only_reads=only_reads, confinement=confinement)
        is_watched = watcher is not None
        output = CommandOutput(self._outputs, clean=self._clean, is_watched=is_watched)
        if watcher is not None:
            watcher.started()
        late_notes: list[str] = []  # notes that arrive after the pump has finished

        def note(line: str) -> None:
            if pump.done():
                late_notes.append(line)
            else:
                started.reader.pipe_data_received(1, line.encode("utf-8", "replace"))

        started.follow_sandbox(note, report_moved=watcher is not None)
        pump = asyncio.create_task(_pump(started, output, LiveOutput(on_output), watcher))
        try:
            stopped = await _wait_for_end(started, timeout, stop or asyncio.Event())
            if stopped is not None:
                await started.end()
            await started.end_background()
            await started.finish()
            rest = asyncio.create_task(started.reader.wait_for_rest())
            try:
                await asyncio.wait({rest, pump}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                rest.cancel()
            started.transport.close()
            await pump
            for line in late_notes:
                await on_output(line)
        finally:
            self._release(started, pump, output)
        if watcher is not None:
            watcher.wrote("".join(late_notes), output.path)
        text = output.model_text() + "".join(late_notes)
        if started.background_ended and stopped is None:
            text += "" if text.endswith("\n") or not text else "\n"
            text += "[processes left in the background were ended]\n"
        code = started.transport.get_returncode()
        return CommandResult(
            output=text,
            exit_code=code if code is not None and code >= 0 else None,
            signal=posix.signal_name(-code) if code is not None and code < 0 else None,
            timed_out=stopped == "timeout",
            stopped=stopped == "user",
            confined=started.confined is not None,
            refused_hosts=() if started.confined is None else started.confined.refused_hosts,
            moved=started.moved,
            total_bytes=output.total_bytes,
            full_output=str(output.path) if output.path else None,
        )

    async def aclose(self) -> None:
        """End all processes that still run, including daemons. Takes at most a few seconds."""
        self._closed.set()
        ending = [command.end() for command in self._running]
        await asyncio.gather(*ending)
        if self._reaping:
            await asyncio.wait(set(self._reaping), timeout=REAP_LIMIT)
        if self._command_count:
            await asyncio.to_thread(end_marked, self._mark)
        await self._watch.aclose()

    async def _start(
        self, command: str, cwd: Path, *, only_reads: bool, confinement: Confinement
    ) -> RunningCommand:
        if self._closed.is_set():
            raise WorkspaceError("the session is closed: no command can be started")
        self._watch.start()
        self._command_count += 1
        mark = f"{self._mark}{self._command_count}."
        added = plain_variables(self.variables) if only_reads else self.variables
        environ = (self._read_only_environ if only_reads else self._environ) | added
        environ |= {MARK: mark, "PWD": str(cwd)}
        sandbox = self.sandbox if confinement.confined else None
        spawn = self._spawn(
            command, cwd, environ, mark, sandbox, only_reads=only_reads, hosts=confinement.hosts
        )
        starting = asyncio.ensure_future(spawn)
        try:
            started = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # The child may already exist: wait until it has started, then kill it.
            self._in_background(self._end_unwanted(starting))
            raise
        except ValueError:
            raise WorkspaceError(
                "the command has a NUL or a lone surrogate in it, which no shell can be given"
            ) from None
        except OSError as error:
            raise _start_error(command, cwd, error) from None
        if self._closed.is_set():
            posix.end_group(started.group, at_once=True)
        self._watch.add_group(started.group, started.confined.end if started.confined else ())
        self._running.add(started)
        return started

    async def _spawn(
        self,
        command: str,
        cwd: Path,
        environ: dict[str, str],
        mark: str,
        sandbox: Sandbox | None,
        *,
        only_reads: bool,
        hosts: Sequence[str],
    ) -> RunningCommand:
        plain = Launch((self._shell, "-c", command), environ)
        confined = None
        if sandbox is not None:
            confined = await sandbox.launch(
                plain.argv,
                cwd,
                environ,
                only_reads=only_reads,
                exclusive=not self._running,
                hosts=hosts,
                resolve=system_resolve,
            )
        launch = confined or plain
        transport, reader = await start_transport(
            ChildOutput,
            launch,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=cwd,
        )
        return RunningCommand(transport, reader, mark, confined=confined)

    def _release(
        self, started: RunningCommand, pump: asyncio.Task[None], output: CommandOutput
    ) -> None:
        """Forget a command; if it still runs, kill it now and reap it in the background."""
        self._running.discard(started)
        ended = started.reader.exited.is_set() and pump.done()
        if not ended:
            posix.end_group(started.group, at_once=True)
            pump.cancel()
        self._in_background(self._clean_up(started, pump, output, ended=ended))

    async def _clean_up(
        self,
        started: RunningCommand,
        pump: asyncio.Task[None],
        output: CommandOutput,
        *,
        ended: bool,
    ) -> None:
        await asyncio.wait({pump}, timeout=REAP_LIMIT)
        if pump.done() and not pump.cancelled():
            pump.exception()  # retrieved here in case `run` was cancelled
        if not ended:
            await wait_at_most(started.reader.exited.wait(), REAP_LIMIT)
            await started.end_strays()
        if started.confined is not None:
            await started.confined.aclose()
        self._watch.remove_group(started.group)
        started.transport.close()
        if output.path is not None:
            await asyncio.to_thread(output.close)

    async def _end_unwanted(self, starting: asyncio.Future[RunningCommand]) -> None:
        with suppress(OSError, ValueError):
            started = await starting
            posix.end_group(started.group, at_once=True)
            await wait_at_most(started.reader.exited.wait(), REAP_LIMIT)
            if started.confined is not None:
                await started.confined.aclose()
            started.transport.close()

    def _in_background(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._reaping.add(task)
        task.add_done_callback(self._reaping.discard)


async def _wait_for_end(
    command: RunningCommand, timeout: float | None, stop: asyncio.Event
) -> Literal["timeout", "user"] | None:
    """Wait for a command's end; return what stopped the wait early, or None."""
    waits = [asyncio.ensure_future(event.wait()) for event in (command.reader.exited, stop)]
    try:
        await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    if command.reader.exited.is_set():
        return None
    return "user" if stop.is_set() else "timeout"


async def _pump(
    command: RunningCommand, output: CommandOutput, live: LiveOutput, watcher: CommandWatcher | None
) -> None:
    """Pass a command's output to its readers until the pipe ends."""
    loop = asyncio.get_running_loop()
    reader = command.reader
    try:
        ended = False
        while not ended:
            data = await reader.take(live.wait(loop.time()))
            ended = reader.closed.is_set() and not data
            text = output.feed(data, final=ended)
            if watcher is not None and text:
                watcher.wrote(text, output.path)
            live.add(text, loop.time())
            if ended or live.wait(loop.time()) == 0:
                await live.flush(loop.time(), final=ended)
            if output.wants_writing:
                await asyncio.to_thread(output.write)
                if watcher is not None:
                    watcher.wrote("", output.path)
    except Exception:
        # Nobody reads the output any more, so kill the command.
        posix.end_group(command.group, at_once=True)
        raise


def _start_error(command: str, cwd: Path, error: OSError) -> WorkspaceError:
    if error.errno == errno.E2BIG:
        return WorkspaceError(
            f"the command is too long to start ({len(command):,} characters)",
            advice="write it to a script and run that",
        )
    if not os.path.isdir(cwd):
        return WorkspaceError(f"the folder {cwd} does not exist any more: choose another one")
    return WorkspaceError(f"the command could not be started: {describe_os_error(error)}")
