"""`acp-agent watch`: run a workflow on file changes or on a schedule, until stopped."""

from __future__ import annotations

import argparse
import asyncio
import time
from datetime import datetime

from acp_agent.cli.flow.command import add_run_options, report_usage_errors
from acp_agent.cli.flow.file_changes import FileChanges
from acp_agent.cli.flow.locate import locate, require_trust, workflow_name
from acp_agent.cli.flow.own_changes import RunChanges
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
from acp_agent.cli.flow.schedule import Schedule
from acp_agent.cli.flow.view import FlowView
from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.output import FAILED, USAGE, complain, run_guarded
from acp_agent.cli.parser import Parser, add_folder
from acp_agent.cli.signals import ending_signals, interrupts
from acp_agent.errors import AcpAgentError
from acp_agent.extensions.workflows.patterns import FilePatterns
from acp_agent.extensions.workflows.types import Triggers
from acp_agent.platform import posix

_MAX_NAMED = 5  # changed files that are listed


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
    return run_guarded(lambda: report_usage_errors(lambda: _run(options)))


def _run(options: argparse.Namespace) -> int:
    options.cwd = options.cwd.expanduser().absolute()
    if not options.cwd.is_dir():
        complain(translate("{folder} is not a directory", folder=options.cwd))
        return USAGE
    trust_if_requested(options)
    file = check_workflow(locate(options.file, options.cwd))
    if file is None or file.workflow is None:
        return FAILED
    require_trust_by_name(file, options.file)
    parse_inputs(file.workflow, options.input)
    triggers = file.workflow.triggers
    if not triggers:
        complain(
            translate(
                "{file} has no trigger; add on: with files:, every: or cron:",
                file=file.path,
            )
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
        schedule = Schedule(self._triggers, now=_local_now, monotonic=time.monotonic)
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


def _local_now() -> datetime:
    return datetime.now()  # noqa: DTZ005 - schedules are in local time
