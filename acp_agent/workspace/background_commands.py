"""Commands that continue after their tool call returns, at most until the session ends.

The model refers to a command by a number, and the user's terminal by the id of the call. Unread
output is held in bounded memory; if there is more, all of it is in the command's output file.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from acp_agent.errors import AcpAgentError, ToolError, WorkspaceError
from acp_agent.sandbox.launch import CONFINED, Confinement
from acp_agent.workspace.command_output import replace_invalid

if TYPE_CHECKING:
    from acp_agent.workspace.processes import CommandResult, LocalProcesses

MAX_COMMANDS = 32  # commands that are remembered, including ended ones
UNREAD_LIMIT = 48_000  # characters of unread output; beyond it there is a file
UNREAD_TAIL = 32_000  # unread output is cut to this many characters at the limit

_log = logging.getLogger(__name__)


class BackgroundCommand:
    """A background command.

    Attributes:
        call: the id of the call that started it.
        result: how it ended; None while it runs.
        failure: the error if running it failed without a result, else "".
        reported: whether a call reports its end to the model.
    """

    def __init__(self, name: str, call: str, command: str) -> None:
        self.name = name
        self.call = call
        self.command = command
        self.result: CommandResult | None = None
        self.failure = ""
        self.reported = False
        self.stopped_by_call = False
        self._start_time = time.monotonic()
        self._ended_at: float | None = None
        self._unread = ""
        self._omitted = 0
        self._awaited_pattern = ""  # the pattern that `wait` looks for
        self._matched = False  # whether a line that matched it was cut off since
        self._file: Path | None = None
        self._running = asyncio.Event()
        self._changed = asyncio.Event()
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    # -- state and output ---------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Return whether the command still runs."""
        return self._ended_at is None

    @property
    def seconds(self) -> float:
        """Return how long the command has run, or ran until its end."""
        return (time.monotonic() if self._ended_at is None else self._ended_at) - self._start_time

    @property
    def file(self) -> Path | None:
        """The file with the complete output; None while the output is short."""
        return self._file

    def read_output(self) -> str:
        """Return the unread output, and mark it as read."""
        text, self._unread = self._unread, ""
        omitted, self._omitted = self._omitted, 0
        if not omitted:
            return text
        omitted += max(0, len(text) - UNREAD_TAIL)
        text = text[-UNREAD_TAIL:]
        location = "it is not kept" if self._file is None else f"{self._file} has the first 64 MB"
        return f"[... {omitted:,} characters are left out here; {location} ...]\n{text}"

    async def wait(self, seconds: float, until: str = "") -> bool:
        """Wait until the command ends or a line of unread output matches, with a timeout.

        Args:
            seconds: the timeout.
            until: text that the line must contain, in which `*` matches anything. With "", no line
                matches.

        Returns:
            Whether a line matched.
        """
        self._awaited_pattern, self._matched = until, False
        try:
            async with asyncio.timeout(seconds):
                while self.is_running:
                    if self._line_matched():
                        return True
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass
        finally:
            matched, self._awaited_pattern = self._line_matched(), ""
        return matched

    def _line_matched(self) -> bool:
        """Return whether a line matched the awaited pattern."""
        return bool(self._awaited_pattern) and (
            self._matched or _has_line(self._unread, self._awaited_pattern)
        )

    def stop(self, *, by_call: bool = False) -> None:
        """Ask the command to end. `by_call` says that the model requested it."""
        if not self._stop.is_set():
            self.stopped_by_call = by_call
        self._stop.set()

    # -- `CommandWatcher` --------------------------------------------------------------------

    def started(self) -> None:
        """Note that the command runs."""
        self._running.set()

    def wrote(self, text: str, file: Path | None) -> None:
        """Add output of the command."""
        self._file = file or self._file
        self._unread += replace_invalid(text)
        if len(self._unread) > UNREAD_LIMIT:
            self._matched = self._line_matched()
            self._omitted += len(self._unread) - UNREAD_TAIL
            self._unread = self._unread[-UNREAD_TAIL:]
        self._changed.set()

    # -- life cycle --------------------------------------------------------------------------

    async def start(
        self,
        processes: LocalProcesses,
        cwd: Path,
        *,
        timeout: float | None,
        only_reads: bool = False,
        confinement: Confinement = CONFINED,
        on_output: Callable[[str], Awaitable[None]],
        on_end: Callable[[BackgroundCommand], Awaitable[None]],
    ) -> None:
        """Start the command in a new task; return once it runs. Raises WorkspaceError."""

        async def run() -> None:
            try:
                self.result = await processes.run(
                    self.command,
                    cwd,
                    timeout=timeout,
                    on_output=on_output,
                    stop=self._stop,
                    watcher=self,
                    only_reads=only_reads,
                    confinement=confinement,
                )
            except AcpAgentError as error:
                self.failure = str(error)
            finally:
                self._ended_at = time.monotonic()
                has_started = self._running.is_set()
                self._running.set()
                self._changed.set()
            if has_started:
                try:
                    await on_end(self)
                except AcpAgentError as error:
                    _log.info("the end of a background command was not kept: %s", error)

        self._task = asyncio.create_task(run())
        try:
            await self._running.wait()
        except asyncio.CancelledError:
            self._task.cancel()
            raise
        if self.failure and self.result is None and not self.is_running:
            raise WorkspaceError(self.failure)

    def mark_ended(self) -> None:
        """Mark a command that never ran as ended, in a replay."""
        self._ended_at = time.monotonic()

    async def ended(self) -> None:
        """Wait until the command has ended and its end is reported."""
        if self._task is not None:
            await asyncio.wait([self._task])


class BackgroundCommands:
    """The background commands of one session."""

    def __init__(self, limit: int = 8) -> None:
        """Args: limit: how many commands may run at the same time; 0 disables them."""
        self.limit = limit
        self._commands: dict[str, BackgroundCommand] = {}
        self._count = 0

    def __iter__(self) -> Iterator[BackgroundCommand]:
        """Iterate over the known commands, oldest first."""
        return iter(tuple(self._commands.values()))

    @property
    def running(self) -> Sequence[BackgroundCommand]:
        """The running commands, oldest first."""
        return [command for command in self._commands.values() if command.is_running]

    def get(self, name: str) -> BackgroundCommand:
        """Return the command of a name.

        Raises:
            ToolError: there is none; the error lists the existing names.
        """
        command = self._commands.get(name.strip().lstrip("#"))
        if command is None:
            names = ", ".join(self._commands) or "none yet"
            raise ToolError(
                f"there is no background command {name!r}", advice=f"there are: {names}"
            )
        return command

    def check_limit(self) -> None:
        """Raise an error if no further command may be started.

        Raises:
            ToolError: the limit is reached, or background commands are disabled.
        """
        if not self.limit:
            raise ToolError(
                "background commands are disabled in the settings",
                advice="run it without `background`",
            )
        if len(self.running) >= self.limit:
            names = ", ".join(command.name for command in self.running)
            raise ToolError(
                f"{self.limit} background commands run already, as many as may: {names}",
                advice="stop one that is not needed any more",
            )

    def new(self, call: str, command: str) -> BackgroundCommand:
        """Return a new command that is not started yet.

        Raises:
            ToolError: the limit is reached, or background commands are disabled.
        """
        self.check_limit()
        self._count += 1
        background_command = BackgroundCommand(str(self._count), call, command)
        self._commands[background_command.name] = background_command
        for old in tuple(self._commands.values()):
            if len(self._commands) > MAX_COMMANDS and not old.is_running:
                del self._commands[old.name]
        return background_command

    def forget(self, command: BackgroundCommand) -> None:
        """Remove a command that could not be started."""
        self._commands.pop(command.name, None)

    def stop_call(self, call: str) -> bool:
        """Stop the command of a call; return False if no such command runs."""
        for command in self.running:
            if command.call == call:
                command.stop()
                return True
        return False

    async def ended(self) -> None:
        """Wait until all commands have ended and their ends are reported. Stops none of them."""
        await asyncio.gather(*(command.ended() for command in self._commands.values()))


def _has_line(text: str, pattern: str) -> bool:
    """Return whether a line contains the parts of the pattern in order."""
    fragments = pattern.split("*")
    return any(_matches(line, fragments) for line in text.splitlines())


def _matches(line: str, fragments: Sequence[str]) -> bool:
    position = 0
    for fragment in fragments:
        index = line.find(fragment, position)
        if index < 0:
            return False
        position = index + len(fragment)
    return True
