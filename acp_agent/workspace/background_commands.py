"""Commands that outlive the calls that started them, until the session ends at the latest.

Each is known by a number, which is what the model calls it, and by the id of its call, which is
what the user's terminal is called. Unread output is kept in bounded memory; where
more came, the file of the command's output has all of it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from acp_agent.errors import AcpAgentError, ToolError, WorkspaceError
from acp_agent.sandbox.launch import CONFINED, Reach
from acp_agent.workspace.command_output import replace_invalid

if TYPE_CHECKING:
    from acp_agent.workspace.processes import CommandResult, LocalProcesses

KNOWN_LIMIT = 32  # commands that are remembered, those that have ended among them
UNREAD_LIMIT = 48_000  # characters of unread output; beyond it there is a file
UNREAD_KEPT = 32_000  # characters that are kept of them where more came

_log = logging.getLogger(__name__)


class BackgroundCommand:
    """One command.

    Attributes:
        name: what the model calls it.
        call: the call that started it.
        command: the command line.
        result: how it ended; None while it runs.
        failure: why it is unknown how it ended; "" where that is known.
        reported: whether a call reports its end to the model.
        stopped_by_call: whether the model stopped it.
    """

    def __init__(self, name: str, call: str, command: str) -> None:
        self.name = name
        self.call = call
        self.command = command
        self.result: CommandResult | None = None
        self.failure = ""
        self.reported = False
        self.stopped_by_call = False
        self._began = time.monotonic()
        self._ended_at: float | None = None
        self._unread = ""
        self._left_out = 0
        self._awaited = ""  # what a line is to have in it
        self._matched = False  # whether one that had it was left out since
        self._file: Path | None = None
        self._running = asyncio.Event()
        self._news = asyncio.Event()
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    # -- state and output ---------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Whether it still runs."""
        return self._ended_at is None

    @property
    def seconds(self) -> float:
        """How long it has run, or ran."""
        return (time.monotonic() if self._ended_at is None else self._ended_at) - self._began

    @property
    def file(self) -> Path | None:
        """Where the whole of its output is; None while that is short."""
        return self._file

    def read_output(self) -> str:
        """Return the unread output, and count it as read."""
        text, self._unread = self._unread, ""
        left_out, self._left_out = self._left_out, 0
        if not left_out:
            return text
        left_out += max(0, len(text) - UNREAD_KEPT)
        text = text[-UNREAD_KEPT:]
        where = "it is not kept" if self._file is None else f"{self._file} has the first 64 MB"
        return f"[... {left_out:,} characters are left out here; {where} ...]\n{text}"

    async def wait(self, seconds: float, until: str = "") -> bool:
        """Wait for its end, at most so long, or for a line of unread output that matches.

        Args:
            seconds: how long at most.
            until: what the line has in it; `*` stands for anything. "": no line will do.

        Returns:
            Whether such a line came.
        """
        self._awaited, self._matched = until, False
        try:
            async with asyncio.timeout(seconds):
                while self.is_running:
                    if self._line_matched():
                        return True
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            pass
        finally:
            came, self._awaited = self._line_matched(), ""
        return came

    def _line_matched(self) -> bool:
        """Whether the line came that is awaited."""
        return bool(self._awaited) and (self._matched or _has_line(self._unread, self._awaited))

    def stop(self, *, by_call: bool = False) -> None:
        """Ask it to end; its end reports the result. `by_call`: the model asks for it."""
        if not self._stop.is_set():
            self.stopped_by_call = by_call
        self._stop.set()

    # -- `CommandWatcher` --------------------------------------------------------------------

    def started(self) -> None:
        """It runs."""
        self._running.set()

    def wrote(self, text: str, file: Path | None) -> None:
        """It wrote something."""
        self._file = file or self._file
        self._unread += replace_invalid(text)
        if len(self._unread) > UNREAD_LIMIT:
            self._matched = self._line_matched()
            self._left_out += len(self._unread) - UNREAD_KEPT
            self._unread = self._unread[-UNREAD_KEPT:]
        self._news.set()

    # -- its life ----------------------------------------------------------------------------

    async def start(
        self,
        processes: LocalProcesses,
        cwd: Path,
        *,
        timeout: float | None,
        only_reads: bool = False,
        reach: Reach = CONFINED,
        on_output: Callable[[str], Awaitable[None]],
        on_end: Callable[[BackgroundCommand], Awaitable[None]],
    ) -> None:
        """Run it in a new task; return once it runs.

        Raises:
            WorkspaceError: it cannot be started.
        """

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
                    reach=reach,
                )
            except AcpAgentError as error:
                self.failure = str(error)
            finally:
                self._ended_at = time.monotonic()
                began = self._running.is_set()
                self._running.set()
                self._news.set()
            if began:
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
        """Count a command as ended that never ran, in a replay."""
        self._ended_at = time.monotonic()

    async def ended(self) -> None:
        """Wait until it has ended and its end is reported."""
        if self._task is not None:
            await asyncio.wait([self._task])


class BackgroundCommands:
    """The background commands of one session."""

    def __init__(self, limit: int = 8) -> None:
        """Args: limit: how many may run at the same time; 0: none may."""
        self.limit = limit
        self._known: dict[str, BackgroundCommand] = {}
        self._count = 0

    def __iter__(self) -> Iterator[BackgroundCommand]:
        """Those that are known, oldest first."""
        return iter(tuple(self._known.values()))

    @property
    def running(self) -> Sequence[BackgroundCommand]:
        """Those that run, oldest first."""
        return [command for command in self._known.values() if command.is_running]

    def get(self, name: str) -> BackgroundCommand:
        """The command of this name.

        Raises:
            ToolError: there is none; the message says which there are.
        """
        command = self._known.get(name.strip().lstrip("#"))
        if command is None:
            names = ", ".join(self._known) or "none yet"
            raise ToolError(
                f"there is no background command {name!r}", advice=f"there are: {names}"
            )
        return command

    def check_limit(self) -> None:
        """Whether one more may be started.

        Raises:
            ToolError: as many run as may.
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
        """A command that is about to be started.

        Raises:
            ToolError: as many run as may.
        """
        self.check_limit()
        self._count += 1
        one = BackgroundCommand(str(self._count), call, command)
        self._known[one.name] = one
        for old in tuple(self._known.values()):
            if len(self._known) > KNOWN_LIMIT and not old.is_running:
                del self._known[old.name]
        return one

    def forget(self, command: BackgroundCommand) -> None:
        """A command could not be started."""
        self._known.pop(command.name, None)

    def stop_call(self, call: str) -> bool:
        """Stop the command of a call. False: no such command runs."""
        for command in self.running:
            if command.call == call:
                command.stop()
                return True
        return False

    async def ended(self) -> None:
        """Wait until all have ended and their ends are reported. The caller ends them."""
        await asyncio.gather(*(command.ended() for command in self._known.values()))


def _has_line(text: str, pattern: str) -> bool:
    """Whether a line has the pattern's parts in it, in their order."""
    parts = pattern.split("*")
    return any(_matches(line, parts) for line in text.splitlines())


def _matches(line: str, parts: Sequence[str]) -> bool:
    place = 0
    for part in parts:
        found = line.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return True
