"""`acp-agent flow list` and `acp-agent flow check`."""

from __future__ import annotations

import argparse
import os
from datetime import datetime

from acp_agent.cli.flow.journal import RunRecord, is_running, read_runs
from acp_agent.cli.flow.locate import listed, locate, mistake_lines, trust_store
from acp_agent.cli.flow.skills import step_mistakes
from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.output import FAILED, complain, say, say_json, say_table
from acp_agent.config.paths import find_paths
from acp_agent.extensions.workflows.find import WorkflowFile
from acp_agent.extensions.workflows.types import Triggers

_RUNS = 10


def show(options: argparse.Namespace) -> int:
    """List a folder's workflows and the runs that can be resumed; return the exit status."""
    files = listed(options.cwd)
    trusts = trust_store().trusts
    runs = unfinished(str(options.cwd))
    if options.json:
        say_json(
            {
                "workflows": [
                    {
                        "name": one.name,
                        "description": "" if one.workflow is None else one.workflow.description,
                        "source": one.source,
                        "path": os.fsencode(one.path).decode("utf-8", "replace"),
                        "trusted": one.item is None or trusts(one.item),
                        "mistakes": [{"line": bad.line, "why": bad.why} for bad in one.mistakes],
                    }
                    for one in files
                ],
                "runs": [
                    {"runId": one.started.run, "file": one.started.file, "status": one.status}
                    for one in runs
                ],
            }
        )
        return 0
    if files:
        headings = [translate("NAME"), translate("SOURCE"), translate("ON"), translate("PATH")]
        say_table(headings, [_row(one) for one in files])
    else:
        user = find_paths(os.environ).config_file.parent / "flows"
        say(
            translate(
                "No workflows found. Add one as .acp-agent/flows/NAME.yaml in the project, or "
                "as {folder}/NAME.yaml for every project.",
                folder=user,
            )
        )
    lines = [line for one in files for line in mistake_lines(one)]
    untrusted = [one for one in files if one.item is not None and not trusts(one.item)]
    if untrusted and untrusted[0].item is not None:
        lines.append(
            translate(
                (
                    "Cannot be run by name until you trust the folder: {names}. Run acp-agent "
                    "trust {folder}"
                ),
                names=", ".join(one.name for one in untrusted),
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
            done = sum(one.done for one in run.steps.values())
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


def unfinished(cwd: str) -> list[RunRecord]:
    """Return the latest unfinished runs of a folder, newest first."""
    folder = find_paths(os.environ).flows_dir
    return [
        one
        for one in read_runs(folder)
        if one.started.cwd == cwd
        and one.status not in {0, 4}
        and not is_running(folder, one.started.run)
    ][:_RUNS]


def check(options: argparse.Namespace) -> int:
    """Report the errors in workflow files; return the exit status."""
    files = [locate(name, options.cwd) for name in options.file]
    lines = {one.path: [*mistake_lines(one), *step_mistakes(one, options.cwd)] for one in files}
    if options.json:
        say_json(
            [
                {
                    "path": os.fsencode(one.path).decode("utf-8", "replace"),
                    "mistakes": [
                        {"line": bad.line, "why": translate_rendered(bad.why)}
                        for bad in one.mistakes
                    ],
                }
                for one in files
            ]
        )
    for one in files:
        for line in lines[one.path]:
            complain(line)
        if not lines[one.path] and one.workflow is not None and not options.json:
            count = sum(1 for _ in one.workflow.every_step())
            say(translate("{file}: no errors, steps: {count}", file=one.path, count=count))
    return FAILED if any(lines.values()) else 0


def _row(one: WorkflowFile) -> list[str]:
    source = translate("user") if one.source == "user" else translate("project")
    triggers = Triggers() if one.workflow is None else one.workflow.triggers
    return [one.name, source, _triggers(triggers), str(one.path)]


def _triggers(triggers: Triggers) -> str:
    parts = [*triggers.files, *(line.text for line in triggers.cron)]
    if triggers.every is not None:
        parts.append(f"{triggers.every:g} s")
    return ", ".join(parts)


def _local_time(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000).astimezone():%Y-%m-%d %H:%M}"
