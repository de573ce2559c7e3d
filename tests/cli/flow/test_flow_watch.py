"""`acp-agent watch`: runs a workflow on changes and on a schedule, until it is stopped."""

from __future__ import annotations

import asyncio
import signal
from datetime import datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest

from acp_agent.cli.flow import file_changes
from acp_agent.cli.flow.file_changes import FileChanges
from acp_agent.cli.flow.watch import MAX_FOLLOWING, RunChanges, Schedule
from acp_agent.extensions.workflows.cron import parse_cron
from acp_agent.extensions.workflows.patterns import FilePatterns
from acp_agent.extensions.workflows.types import Triggers
from tests.cli.flow.flow_process import finish, prompts, start
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.warm_parent import WarmProcess


async def read_until(process: WarmProcess, text: str) -> str:
    """Read its messages up to a line that has a text."""
    assert process.stderr is not None
    lines = ""
    async with asyncio.timeout(60):
        while text not in lines:
            line = await process.stderr.readline()
            assert line, lines
            lines += line.decode()
    return lines


async def test_changes_start_runs_except_those_of_the_run_itself(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    source = workspace_repo / "src"
    (workspace_repo / "f.yaml").write_text("""\
on: {files: ["src/**/*.py"]}
steps:
  - {id: a, prompt: "Changed: ${trigger.files}"}
""")
    working = Stall()
    edit = Call("write", {"path": "src/made.py", "content": "x = 1\n"})
    model_server.add(
        answer(edit), answer("edited", working), answer("second"), answer("begun", Stall())
    )
    process = await start(home, workspace_repo, model_server, "watch", "f.yaml", "--allow", "edits")
    await read_until(process, "Watching src/**/*.py")
    (source / "new").mkdir()
    (source / "new" / "a.py").write_text("a")
    (source / "ignored.txt").write_text("a")
    await model_server.arrived(2)
    assert (source / "made.py").exists()
    (source / "new" / "b.py").write_text("b")  # while it runs
    (source / "app.py").unlink()
    working.release()
    await model_server.arrived(3)
    await read_until(process, "Changed: src/app.py, src/new/b.py")
    await read_until(process, "Step a: done")
    (source / "made.py").write_text("y = 2\n")  # what the run wrote, and the user then changes
    await model_server.arrived(4)
    process.send_signal(signal.SIGTERM)
    status, out, err = await finish(process)
    assert status == 0, err
    assert out == "edited\nsecond\n"
    prompt_texts = [prompts(request)[-1] for request in model_server.requests]
    assert prompt_texts[0] == "Changed: src/new/a.py"
    assert prompt_texts[2:] == ["Changed: src/app.py\nsrc/new/b.py", "Changed: src/made.py"]
    assert "flow run --resume flow_" in err


async def test_an_interval_starts_runs_and_a_broken_file_only_stops_them(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    file = workspace_repo / "f.yaml"
    text = "on: {every: 1s}\nsteps:\n  - {id: a, prompt: 'At ${trigger.kind}'}\n"
    file.write_text(text)
    model_server.otherwise = answer("ok")
    process = await start(home, workspace_repo, model_server, "watch", "f.yaml", "--now")
    await model_server.arrived(1)
    file.write_text("steps: nothing\n")
    await read_until(process, "f.yaml:1: steps: expected a list")
    file.write_text(text)
    await model_server.arrived(2)
    process.send_signal(signal.SIGINT)
    status, _, err = await finish(process)
    assert status == 0, err
    assert [prompts(request) for request in model_server.requests[:2]] == [
        ["At manual"],
        ["At schedule"],
    ]


@pytest.mark.parametrize("noted", [True, False])
async def test_folders_that_are_made_later_are_watched_with_and_without_inotify(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    noted: bool,
) -> None:
    if not noted:
        monkeypatch.setattr(file_changes, "Inotify", _no_inotify)
        monkeypatch.setattr(file_changes, "_POLL_SECONDS", 0.02)
    changes = FileChanges(tmp_path, FilePatterns(["a/b/**/*.py", "!**/c/**"]))
    await changes.start()
    waiting = asyncio.create_task(changes.wait_changes())
    try:
        for folder in ("a", "a/b", "a/b/c", "a/b/d"):
            (tmp_path / folder).mkdir()
        for name in ("a/x.py", "a/b/x.txt", "a/b/c/x.py", "a/b/d/x.py"):
            (tmp_path / name).write_text("x")
        async with asyncio.timeout(60):
            assert await waiting == ["a/b/d/x.py"]
    finally:
        waiting.cancel()
        changes.close()


def _no_inotify() -> NoReturn:
    raise OSError("only Linux has inotify")


def test_runs_that_trigger_each_other_come_to_an_end(tmp_path: Path) -> None:
    changes = RunChanges(tmp_path)
    runs = 0
    following = False
    while changes.exclude_own(["made-by-nobody-knows.py"]):
        changes.start_run(follows=following)
        following = True
        runs += 1
    assert runs == MAX_FOLLOWING + 1
    changes.start_run(follows=False)  # the next change that comes after a run
    assert changes.exclude_own(["a.py"]) == ["a.py"]


async def test_triggers_during_a_run_start_one_more_run() -> None:
    clock = [0.0]
    triggers = Triggers(every=600, cron=(parse_cron("0 9 * * *"),))
    start_run = datetime(2026, 11, 24, 8, 30)  # noqa: DTZ001 - schedules are in local time
    schedule = Schedule(
        triggers,
        now=lambda: start_run + timedelta(seconds=clock[0]),
        monotonic=lambda: clock[0],
    )
    wait_next = []
    for second in range(0, 4_000, 50):
        clock[0] = float(second)
        if 700 < second < 2_500:
            continue  # a run: three times pass, and the hour
        wait = asyncio.ensure_future(schedule.wait_next())
        await asyncio.sleep(0)
        if wait.done():
            wait_next.append(second)
        wait.cancel()
    assert wait_next == [600, 2_500, 3_000, 3_600]
