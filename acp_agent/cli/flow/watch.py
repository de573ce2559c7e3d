"""`acp-agent watch`: run a workflow on file changes or on a schedule, until stopped."""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from msgspec import UNSET

from acp_agent.cli.flow.command import add_run_options, report_usage_errors
from acp_agent.cli.flow.file_changes import FileChanges
from acp_agent.cli.flow.locate import locate, require_trust, workflow_name
from acp_agent.cli.flow.runner import FlowRunner
from acp_agent.cli.flow.running import (
    Trigger,
    check_workflow,
    execute,
    make_view,
    new_run,
    parse_inputs,
    require_trust_by_name,
    trust_if_requested,
)
from acp_agent.cli.flow.view import FlowView
from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.output import FAILED, complain
from acp_agent.cli.parser import Parser, add_folder
from acp_agent.cli.signals import ending_signals, interrupts
from acp_agent.errors import AcpAgentError
from acp_agent.extensions.workflows.patterns import FilePatterns
from acp_agent.extensions.workflows.types import Triggers
from acp_agent.platform import posix
from protocol.v1 import types as acp

_CHANGES = {"edit", "delete", "move"}
# After this many runs in a row that were only started by changes during the previous run,
# further changes are attributed to the run itself.
MAX_FOLLOWING = 3
_MAX_WAIT = 30.0  # seconds; the clock may be changed, and the computer may sleep
_MAX_NAMED = 5  # changed files that are listed


class RunChanges:
    """Collects the files that the agent changes, according to its updates.

    Args:
        top: the folder that names are relative to.
    """

    def __init__(self, top: Path) -> None:
        self._top = os.path.realpath(top)
        self._names: set[str] = set()
        self._changing: set[str] = set()  # calls that change the files in their locations
        self._follow_count = 0

    def record(self, update: acp.SessionUpdate) -> None:
        """Record the files that an update changes."""
        if not isinstance(update, acp.ToolCall | acp.ToolCallProgress):
            return
        if update.kind in _CHANGES:
            self._changing.add(update.tool_call_id)
        for path in _paths(update, locations=update.tool_call_id in self._changing):
            name = os.path.relpath(os.path.realpath(path), self._top)
            self._names.add(name.replace(os.sep, "/"))

    def start_run(self, *, follows: bool) -> None:
        """Start a run; `follows` means that only changes during the last run started it."""
        self._names.clear()
        self._changing.clear()
        self._follow_count = self._follow_count + 1 if follows else 0

    def exclude_own(self, changed: Sequence[str]) -> list[str]:
        """Return the changed files that the run did not change itself.

        A command can change files that no update names. After several following runs in a row, all
        changes are therefore attributed to the run; otherwise it could start itself forever.
        """
        if self._follow_count >= MAX_FOLLOWING:
            return []
        return [name for name in changed if name not in self._names]


def _paths(update: acp.ToolCall | acp.ToolCallProgress, *, locations: bool) -> Iterator[str]:
    content = update.content
    for part in () if content is UNSET or content is None else content:
        if isinstance(part, acp.Diff):
            yield part.path
    locations_ = update.locations
    if locations and locations_ is not UNSET and locations_ is not None:
        yield from (location.path for location in locations_)


class Schedule:
    """The scheduled times of a workflow. Times missed during a run lead to one run after it.

    Args:
        now: returns the local time, without a time zone.
        monotonic: returns seconds of a monotonic clock.
    """

    def __init__(
        self, triggers: Triggers, *, now: Callable[[], datetime], monotonic: Callable[[], float]
    ) -> None:
        self._triggers = triggers
        self._now = now
        self._monotonic = monotonic
        self._next_interval = monotonic() + (triggers.every or 0.0)
        self._next_time = self._next_cron()

    async def wait_next(self) -> None:
        """Wait until the next time, then schedule the following one."""
        while True:
            wait = self._seconds_left()
            if wait <= 0:
                break
            await asyncio.sleep(min(wait, _MAX_WAIT))
        self.advance()

    def advance(self) -> None:
        """Skip the times that have passed."""
        every = self._triggers.every
        if every is not None:
            passed = self._monotonic() - self._next_interval
            if passed >= 0:
                self._next_interval += every * (int(passed / every) + 1)
        if self._next_time is not None and self._next_time <= self._now():
            self._next_time = self._next_cron()

    def _seconds_left(self) -> float:
        remaining = []
        if self._triggers.every is not None:
            remaining.append(self._next_interval - self._monotonic())
        if self._next_time is not None:
            remaining.append((self._next_time - self._now()).total_seconds())
        return min(remaining, default=_MAX_WAIT)

    def _next_cron(self) -> datetime | None:
        moment = self._now()
        times = (line.next_after(moment) for line in self._triggers.cron)
        return min((time for time in times if time is not None), default=None)


def run(argv: list[str]) -> int:
    """Run a workflow repeatedly; return the exit status."""
    parser = Parser(
        prog="acp-agent watch",
        description="Run a workflow when files change or on a schedule (its field `on`), until "
        "it is stopped.",
    )
    parser.add_argument("file", metavar="FILE", help="the workflow file, or a name from flow list")
    add_run_options(parser)
    parser.add_argument("--now", action="store_true", help="also run once at the start")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    add_folder(parser)
    options = parser.parse_args(argv)
    posix.forbid_inspection()  # the agent's commands must not read our environment
    return report_usage_errors(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    trust_if_requested(options)
    file = check_workflow(locate(options.file, options.cwd))
    if file is None or file.workflow is None:
        return FAILED
    require_trust_by_name(file, options.file)
    parse_inputs(file.workflow, options.input)
    triggers = file.workflow.triggers
    if not triggers:
        complain(
            translate("{file} has no trigger; add on: with files:, every: or cron:", file=file.path)
        )
        return FAILED
    asyncio.run(_Watch(options, triggers, make_view(options)).run())
    return 0


class _Watch:
    """Waits for triggers and runs the workflow, one run at a time."""

    def __init__(self, options: argparse.Namespace, triggers: Triggers, view: FlowView) -> None:
        self._options = options
        self._triggers = triggers
        self._view = view
        self._stopped = asyncio.Event()
        self._runner: FlowRunner | None = None
        self._run_changes = RunChanges(options.cwd)
        self._changes: FileChanges | None = None
        self._pending: list[str] = []  # files that changed during a run

    async def run(self) -> None:
        """Run until a signal arrives."""
        task = asyncio.current_task()
        assert task is not None

        def stop() -> None:
            if self._stopped.is_set():
                task.cancel()
                return
            self._stopped.set()
            if self._runner is not None:
                self._runner.stop()

        try:
            with interrupts(stop), ending_signals(lambda _: stop()):
                await self._loop()
        except asyncio.CancelledError:
            return
        finally:
            if self._changes is not None:
                self._changes.close()

    async def _loop(self) -> None:
        if self._triggers.files:
            self._changes = FileChanges(self._options.cwd, FilePatterns(self._triggers.files))
            await self._changes.start()
        schedule = Schedule(self._triggers, now=datetime.now, monotonic=time.monotonic)
        self._view.notice(
            translate("Watching {what}; Ctrl-C stops.", what=describe_triggers(self._triggers))
        )
        if self._options.now:
            await self._run_once(Trigger(), follows=False)
        while not self._stopped.is_set():
            follows = bool(self._pending)
            trigger = await self._next(schedule)
            if trigger is not None:
                await self._run_once(trigger, follows=follows)

    async def _next(self, schedule: Schedule) -> Trigger | None:
        """Wait for the next trigger; return None if the watch was stopped."""
        if self._pending:
            files, self._pending = self._pending, []
            schedule.advance()
            return Trigger("files", files)
        stopped = asyncio.create_task(self._stopped.wait())
        wait_next = asyncio.create_task(schedule.wait_next())
        tasks: set[asyncio.Task[object]] = {stopped, wait_next}
        wait_changes = None
        if self._changes is not None:
            wait_changes = asyncio.create_task(self._changes.wait_changes())
            tasks.add(wait_changes)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if stopped.done():
                return None
            if wait_changes is not None and wait_changes.done():
                return Trigger("files", wait_changes.result())
            return Trigger("schedule")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _run_once(self, trigger: Trigger, *, follows: bool) -> None:
        if trigger.files:
            names = ", ".join(trigger.files[:_MAX_NAMED])
            more = len(trigger.files) - _MAX_NAMED
            names += translate(" and {count} more", count=more) if more > 0 else ""
            self._view.notice(translate("Changed: {files}", files=names))
        self._run_changes.start_run(follows=follows)
        try:
            await self._run_workflow(trigger)
        except AcpAgentError as error:
            self._view.show_failure(translate_rendered(str(error)))
        if self._changes is not None and not self._stopped.is_set():
            self._pending = self._run_changes.exclude_own(await self._changes.changes())

    async def _run_workflow(self, trigger: Trigger) -> None:
        """Read the file again, because it may have changed, and run it."""
        argument = self._options.file
        file = check_workflow(locate(argument, self._options.cwd))
        if file is None:
            return
        if workflow_name(file, argument):
            require_trust(file)
        with new_run(
            file,
            workflow_name(file, argument),
            self._options,
            self._view,
            trigger,
            observe=self._run_changes.record,
        ) as runner:
            self._runner = runner
            try:
                await execute(runner, self._view)
            finally:
                self._runner = None


def describe_triggers(triggers: Triggers) -> str:
    """Return a short description of the triggers."""
    texts = [*triggers.files, *(f"cron {line.text}" for line in triggers.cron)]
    if triggers.every is not None:
        texts.append(translate("every {seconds} s", seconds=f"{triggers.every:g}"))
    return ", ".join(texts)
