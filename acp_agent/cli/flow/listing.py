"""`acp-agent flow list` and `acp-agent flow check`."""

from __future__ import annotations

import argparse
import os
from datetime import datetime

from acp_agent.cli.flow.journal import RunRecord, is_running, read_runs
from acp_agent.cli.flow.locate import list_workflows, locate, mistake_lines
from acp_agent.cli.flow.prompts import step_mistakes
from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.output import FAILED, complain, say, say_json, say_table
from acp_agent.cli.user_config import load_user_config
from acp_agent.config.paths import find_paths
from acp_agent.extensions.workflows.find import WorkflowFile
from acp_agent.extensions.workflows.types import Triggers

_MAX_RUNS = 10


def show(options: argparse.Namespace) -> int:
    """List a folder's workflows and the runs that can be resumed; return the exit status."""
    files = list_workflows(options.cwd)
    trusts = load_user_config().trusts
    runs = unfinished_runs(str(options.cwd))
    if options.json:
        say_json(
            {
                "workflows": [
                    {
                        "name": entry.name,
                        "description": "" if entry.workflow is None else entry.workflow.description,
                        "source": entry.source,
                        "path": os.fsencode(entry.path).decode("utf-8", "replace"),
                        "trusted": entry.item is None or trusts(entry.item),
                        "mistakes": [
                            {"line": mistake.line, "why": mistake.why} for mistake in entry.mistakes
                        ],
                    }
                    for entry in files
                ],
                "runs": [
                    {"runId": entry.started.run, "file": entry.started.file, "status": entry.status}
                    for entry in runs
                ],
            }
        )
        return 0
    if files:
        say_table(("NAME", "SOURCE", "ON", "PATH"), [_row(entry) for entry in files])
    else:
        user = find_paths(os.environ).config_file.parent / "flows"
        say(
            translate(
                "No workflows found. Add one as .acp-agent/flows/NAME.yaml in the project, or "
                "as {folder}/NAME.yaml for every project.",
                folder=user,
            )
        )
    lines = [line for entry in files for line in mistake_lines(entry)]
    untrusted = [entry for entry in files if entry.item is not None and not trusts(entry.item)]
    if untrusted and untrusted[0].item is not None:
        lines.append(
            translate(
                (
                    "Cannot be run by name until you trust the folder: {names}. Run acp-agent "
                    "trust {folder}"
                ),
                names=", ".join(entry.name for entry in untrusted),
                folder=untrusted[0].item.folder,
            )
        )
    if lines:
        say()
        for line in lines:
            say(line)
    if runs:
        say()
        say(translate("Runs to resume with acp-agent flow run --resume RUN:"))
        for run in runs:
            done = sum(entry.done for entry in run.steps.values())
            say(
                translate(
                    "  {run}  {time}  {file}, completed steps: {count}",
                    run=run.started.run,
                    time=_local_time(run.started.at),
                    file=run.started.file,
                    count=done,
                )
            )
    return 0


def unfinished_runs(cwd: str) -> list[RunRecord]:
    """Return the latest unfinished runs of a folder, newest first."""
    folder = find_paths(os.environ).flows_dir
    return [
        run
        for run in read_runs(folder)
        if run.started.cwd == cwd
        and run.status not in {0, 4}
        and not is_running(folder, run.started.run)
    ][:_MAX_RUNS]


def check(options: argparse.Namespace) -> int:
    """Report the errors in workflow files; return the exit status."""
    files = [locate(name, options.cwd) for name in options.file]
    lines = {file.path: [*mistake_lines(file), *step_mistakes(file, options.cwd)] for file in files}
    if options.json:
        say_json(
            [
                {
                    "path": os.fsencode(file.path).decode("utf-8", "replace"),
                    "mistakes": [
                        {"line": mistake.line, "why": translate_rendered(mistake.why)}
                        for mistake in file.mistakes
                    ],
                }
                for file in files
            ]
        )
    for file in files:
        for line in lines[file.path]:
            complain(line)
        if not lines[file.path] and file.workflow is not None and not options.json:
            count = sum(1 for _ in file.workflow.every_step())
            say(translate("{file}: no errors, steps: {count}", file=file.path, count=count))
    return FAILED if any(lines.values()) else 0


def _row(file: WorkflowFile) -> list[str]:
    source = translate("user") if file.source == "user" else translate("project")
    triggers = Triggers() if file.workflow is None else file.workflow.triggers
    return [file.name, source, _triggers(triggers), str(file.path)]


def _triggers(triggers: Triggers) -> str:
    texts = [*triggers.files, *(line.text for line in triggers.cron)]
    if triggers.every is not None:
        texts.append(f"{triggers.every:g} s")
    return ", ".join(texts)


def _local_time(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000).astimezone():%Y-%m-%d %H:%M}"
