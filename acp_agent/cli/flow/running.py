"""`acp-agent flow run`: a new or resumed run of a workflow."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from acp_agent.acp_client.process import EXIT_SECONDS
from acp_agent.cli.agent_client import OnUpdate
from acp_agent.cli.flow.journal import RunJournal, RunRecord, RunStarted, journal_path, read_runs
from acp_agent.cli.flow.locate import (
    is_file_name,
    locate,
    mistake_lines,
    require_trust,
    workflow_name,
)
from acp_agent.cli.flow.runner import FlowRunner
from acp_agent.cli.flow.step_sessions import RunOptions
from acp_agent.cli.flow.view import FlowView, JsonView, TextView
from acp_agent.cli.localization import translate
from acp_agent.cli.output import FAILED, INTERRUPTED, USAGE, complain
from acp_agent.cli.session_lookup import match_id
from acp_agent.cli.signals import ending_signals, interrupts
from acp_agent.config.paths import find_paths
from acp_agent.errors import InvalidInputError
from acp_agent.extensions.workflows.find import WorkflowFile, read_workflow
from acp_agent.extensions.workflows.types import Workflow
from acp_agent.ids import new_flow_id
from protocol.jsonrpc.messages import RpcError

_FORCED_EXIT_SECONDS = 1.0  # for the agent to exit after a second Ctrl-C


class Trigger(Struct, frozen=True):
    """The trigger of a run: `manual`, `files` with the changed files, or `schedule`."""

    kind: str = "manual"
    files: Sequence[str] = ()


def run_workflow(options: argparse.Namespace) -> int:
    """Run a workflow; return the exit status."""
    argument, resume = _split_arguments(options.file, options.resume)
    if argument is None and resume is None:
        complain(translate("name a workflow, or --resume; see acp-agent flow run --help"))
        return USAGE
    trust_if_requested(options)
    view = make_view(options)
    if resume is None:
        assert argument is not None
        file = check_workflow(locate(argument, options.cwd))
        if file is None:
            return FAILED
        require_trust_by_name(file, argument)
        _mention_unfinished_run(argument, options.cwd, view)
        return asyncio.run(_run_new(file, workflow_name(file, argument), options, view))
    if options.input:
        complain(translate("--input: a resumed run uses its original inputs; remove the option"))
        return USAGE
    return _continue(argument, resume, options, view)


def _split_arguments(file: str | None, resume: str | None) -> tuple[str | None, str | None]:
    """Return the workflow and the run; in `--resume FILE` the argument is the workflow."""
    if file is None and resume and not resume.startswith("flow_") and is_file_name(resume):
        return resume, ""
    return file, resume


def require_trust_by_name(file: WorkflowFile, argument: str) -> None:
    """Raise ConfigError if a workflow was found by name and is not trusted."""
    if workflow_name(file, argument):
        require_trust(file)


def trust_if_requested(options: argparse.Namespace) -> None:
    """Trust the folder if `--trust` is set."""
    if options.trust:
        from acp_agent.cli.trust import trust_folder  # noqa: PLC0415 - where it is wanted

        trust_folder(options.cwd)


def make_view(options: argparse.Namespace) -> FlowView:
    """Return the view that shows the runs."""
    if options.json:
        return JsonView(sys.stdout)
    return TextView(sys.stderr, cwd=options.cwd, answer=sys.stdout)


def check_workflow(file: WorkflowFile) -> WorkflowFile | None:
    """Return the file if it has no errors; otherwise report them."""
    if file.workflow is not None and not file.mistakes:
        return file
    for line in mistake_lines(file):
        complain(line)
    return None


def _continue(
    argument: str | None, resume: str, options: argparse.Namespace, view: FlowView
) -> int:
    folder = find_paths(os.environ).flows_dir
    record = _find_run(read_runs(folder), argument, resume, options.cwd)
    file = read_workflow(Path(record.started.file))
    if record.started.named:
        file = locate(record.started.named, options.cwd)
        require_trust(file)
    if check_workflow(file) is None:
        return FAILED
    assert file.workflow is not None
    journal = RunJournal.reopen(journal_path(folder, record.started.run))
    try:
        if _digest(file) != journal.record.last.digest:
            view.notice(
                translate(
                    "{file} changed since the run started; completed steps do not run again",
                    file=file.path,
                )
            )
        first = journal.record.started
        run_options = RunOptions(
            cwd=Path(first.cwd),
            model=options.model or first.model,
            agent=options.agent or first.agent,
            mode=options.mode or first.mode,
            allow=options.allow,
        )
        journal.write(
            RunStarted(
                run=first.run,
                file=first.file,
                digest=_digest(file),
                cwd=first.cwd,
                named=first.named,
                resumed=True,
            )
        )
        runner = FlowRunner(file.workflow, journal, run_options, view)
        view.run_started(first.run, file.workflow.name, resumed=True)
        return asyncio.run(_finish(runner, view))
    finally:
        journal.close()


def _mention_unfinished_run(argument: str, cwd: Path, view: FlowView) -> None:
    """Say how to continue the last run of a workflow if that was not completed."""
    with suppress(InvalidInputError):
        record = _find_run(read_runs(find_paths(os.environ).flows_dir), argument, "", cwd)
        view.notice(
            translate(
                "The last run of this workflow was not completed; to continue it, run acp-agent "
                "flow run --resume {run}",
                run=record.started.run,
            )
        )


def _find_run(runs: Sequence[RunRecord], argument: str | None, resume: str, cwd: Path) -> RunRecord:
    """Return the run to resume.

    Raises:
        InvalidInputError: there is none, or the ID is ambiguous.
    """
    if resume:
        run_id = match_id(resume, [(run.started.run, run.started.file) for run in runs])
        if run_id is None:
            raise InvalidInputError(f"run not found: {resume}; see acp-agent flow list")
        return next(run for run in runs if run.started.run == run_id)
    path = None if argument is None else str(locate(argument, cwd).path)
    for run in runs:
        if run.started.cwd == str(cwd) and path in {None, run.started.file}:
            if run.status in {0, 4}:
                break
            return run
    raise InvalidInputError(
        "the last run here was not cut off, so there is nothing to continue; start one with "
        "acp-agent flow run FILE"
    )


async def _run_new(
    file: WorkflowFile, workflow_name_: str, options: argparse.Namespace, view: FlowView
) -> int:
    with new_run(file, workflow_name_, options, view, Trigger()) as runner:
        return await _finish(runner, view)


@contextmanager
def new_run(
    file: WorkflowFile,
    lookup_name: str,
    options: argparse.Namespace,
    view: FlowView,
    trigger: Trigger,
    *,
    observe: OnUpdate = lambda _: None,
) -> Iterator[FlowRunner]:
    """Open the journal of a new run for the duration of the block, and yield its runner.

    Args:
        file: the workflow file, without errors.
        options: the command line arguments.

    Raises:
        InvalidInputError: the inputs do not match the workflow.
        StoreError: the journal cannot be written.
    """
    assert file.workflow is not None
    inputs = parse_inputs(file.workflow, options.input)
    started = RunStarted(
        run=new_flow_id(),
        file=_utf8(str(file.path)),
        named=lookup_name,
        digest=_digest(file),
        inputs={name: _utf8(value) for name, value in inputs.items()},
        cwd=_utf8(str(options.cwd)),
        model=options.model,
        agent=options.agent,
        mode=options.mode,
        trigger=trigger.kind,
        changed=[name.encode("utf-8", "replace").decode() for name in trigger.files],
    )
    journal = RunJournal.create(find_paths(os.environ).flows_dir, started)
    try:
        run_options = RunOptions(
            cwd=options.cwd,
            model=options.model,
            agent=options.agent,
            mode=options.mode,
            allow=options.allow,
        )
        view.run_started(started.run, file.workflow.name, resumed=False)
        yield FlowRunner(file.workflow, journal, run_options, view, observe=observe)
    finally:
        journal.close()


def parse_inputs(workflow: Workflow, assignments: Sequence[str]) -> Mapping[str, str]:
    """Return the values of all inputs.

    Raises:
        InvalidInputError: an input is unknown or missing.
    """
    values = {definition.name: definition.default or "" for definition in workflow.inputs}
    values_by_name = {}
    for word in assignments:
        name, equals, value = word.partition("=")
        if not equals or name not in values:
            names = ", ".join(values)
            raise InvalidInputError(
                f"--input {word[:60]}: write it as NAME=VALUE; inputs of this workflow: {names}"
            )
        values_by_name[name] = value
    for definition in workflow.inputs:
        if (
            definition.required
            and definition.default is None
            and not values_by_name.get(definition.name)
        ):
            raise InvalidInputError(
                f"the input {definition.name} is missing; add --input {definition.name}=VALUE"
            )
    return values | values_by_name


async def _finish(runner: FlowRunner, view: FlowView) -> int:
    """Run the unfinished steps, handling signals; return the exit status."""
    task = asyncio.current_task()
    assert task is not None
    status = INTERRUPTED
    stopped = False

    def stop() -> None:
        nonlocal stopped
        if stopped or not runner.started:
            task.cancel()
            return
        stopped = True
        runner.stop()
        view.notice(translate("Cancelling the run; press Ctrl-C again to quit immediately."))

    def leave(number: int) -> None:
        nonlocal status
        status = number
        task.cancel()

    try:
        with interrupts(stop), ending_signals(leave):
            return await execute(runner, view)
    except asyncio.CancelledError:
        return status


async def execute(runner: FlowRunner, view: FlowView) -> int:
    """Run the unfinished steps and end the agent; return the exit status."""
    timeout = EXIT_SECONDS
    try:
        outcome = await runner.run()
        view.show_end(outcome)
    except asyncio.CancelledError:
        timeout = _FORCED_EXIT_SECONDS
        raise
    except RpcError as error:
        view.show_failure(error.message)
        return FAILED
    except BrokenPipeError:  # the reader of our output is gone, not the agent
        raise
    except (ConnectionError, TimeoutError):
        view.show_failure(
            translate("the agent exited unexpectedly; run `acp-agent doctor` to find out why")
        )
        return FAILED
    else:
        return outcome.status
    finally:
        await runner.aclose(timeout=timeout)


def _utf8(text: str) -> str:
    """Return the text if the journal can store it.

    Raises:
        InvalidInputError: it contains bytes that are not UTF-8.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        escaped = text.encode("utf-8", "backslashreplace").decode()
        raise InvalidInputError(f"{escaped[:80]} is not UTF-8; use another name or value") from None
    return text


def _digest(file: WorkflowFile) -> str:
    return hashlib.sha256(file.raw).hexdigest()
