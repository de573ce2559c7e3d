"""Nothing that a command started outlives it, however it ends."""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from acp_agent.errors import WorkspaceError
from acp_agent.workspace import child_process
from acp_agent.workspace.processes import CommandResult, LocalProcesses
from tests.support.orphans import MARK, marked_processes
from tests.support.waiting import until

SOON = 60.0  # seconds; what is not ended takes 100
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


class Home:
    """Commands of one test, and what is left of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = uuid.uuid4().hex
        self.processes = LocalProcesses(folder / "outputs", environ=os.environ | {MARK: self.mark})

    def left(self) -> dict[int, str]:
        return marked_processes(self.mark)

    async def run(self, command: str, *, timeout: float = 100.0) -> CommandResult:
        return await self.processes.run(command, self.folder, timeout=timeout, on_output=ignore)

    async def start(self, command: str) -> asyncio.Task[object]:
        """Start a command and wait until it says that it is ready."""
        ready = asyncio.Event()

        async def listen(text: str) -> None:
            if "ready" in text:
                ready.set()

        task: asyncio.Task[object] = asyncio.create_task(
            self.processes.run(command, self.folder, timeout=60, on_output=listen)
        )
        await asyncio.wait_for(ready.wait(), 60)
        return task


async def ignore(text: str) -> None:
    del text


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    home_processes = Home(tmp_path)
    yield home_processes
    await home_processes.processes.aclose()
    await until(lambda: not home_processes.left())


@linux
async def test_a_timeout_ends_the_command_and_all_its_children(home: Home) -> None:
    async with asyncio.timeout(SOON):
        result = await home.run("echo begun; sleep 100 & sleep 100 | sleep 100", timeout=1.5)
    assert result.timed_out
    assert result.output == "begun\n"
    assert result.signal == "SIGTERM"
    await until(lambda: not home.left())


@linux
async def test_a_command_that_ignores_the_request_to_end_is_killed(home: Home) -> None:
    async with asyncio.timeout(SOON):
        result = await home.run("trap '' TERM; while :; do sleep 0.05; done", timeout=1.5)
    assert (result.timed_out, result.signal) == (True, "SIGKILL")
    await until(lambda: not home.left())


async def test_a_command_can_clean_up_when_its_time_is_over(home: Home, tmp_path: Path) -> None:
    result = await home.run(
        "trap 'echo cleaned > cleaned; exit 3' TERM; while :; do sleep 0.02; done", timeout=1.5
    )
    assert (result.timed_out, result.exit_code) == (True, 3)
    assert (tmp_path / "cleaned").read_text() == "cleaned\n"


@linux
async def test_cancelling_a_command_kills_its_process_group(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The moment that a group is given otherwise.
    monkeypatch.setattr(child_process, "_TERM_GRACE", 100)
    task = await home.start("trap '' TERM; sleep 100 & sleep 100 & echo ready; wait")
    task.cancel()
    await asyncio.wait([task], timeout=SOON)
    assert task.cancelled()
    await until(lambda: not home.left())


@linux
async def test_a_command_cancelled_while_it_starts_leaves_nothing(home: Home) -> None:
    for steps in range(12):
        task = asyncio.create_task(home.run("sleep 100 & sleep 100"))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await until(lambda: not home.left())


@linux
@pytest.mark.parametrize("command", ["sleep 100 & echo on", "sleep 100 >/dev/null 2>&1 & echo on"])
async def test_a_process_left_in_the_background_ends_with_the_command(
    home: Home, command: str
) -> None:
    async with asyncio.timeout(SOON):
        result = await home.run(command)
    assert result.exit_code == 0
    assert result.output.startswith("on\n")
    assert "left in the background were ended" in result.output
    await until(lambda: not home.left())


async def test_a_background_process_that_ends_by_itself_is_waited_for(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process, "EXIT_GRACE", 20)
    result = await home.run("(sleep 0.1; echo late) & echo on")
    assert result.output == "on\nlate\n"


@linux
async def test_a_daemon_lives_on_after_its_command_and_ends_with_the_session(home: Home) -> None:
    async with asyncio.timeout(SOON):
        result = await home.run("setsid sleep 100 & sleep 0.1; echo started")
    assert result.output == "started\n"
    assert list(home.left().values()) == ["sleep 100"]
    await home.processes.aclose()
    await until(lambda: not home.left())


@linux
async def test_a_daemon_ends_with_its_cancelled_command(home: Home) -> None:
    task = await home.start("setsid sleep 100 & sleep 0.1; echo ready; sleep 100")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not home.left())


@linux
async def test_a_daemon_ends_with_a_command_that_timed_out(home: Home) -> None:
    result = await home.run("setsid sleep 100 & sleep 0.1; echo ready; sleep 100", timeout=1.0)
    assert result.timed_out
    await until(lambda: not home.left())


async def test_closing_its_output_does_not_end_a_command_early(home: Home) -> None:
    result = await home.run("exec >&- 2>&-; sleep 0.2; exit 3")
    assert result.exit_code == 3


@linux
async def test_closing_ends_all_running_commands(home: Home) -> None:
    tasks = [await home.start("trap '' TERM; echo ready; sleep 100") for _ in range(2)]
    async with asyncio.timeout(SOON):
        await home.processes.aclose()
    results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)
    assert len(results) == 2
    await until(lambda: not home.left())
    with pytest.raises(WorkspaceError, match="closed"):
        await home.run("true")


@linux
async def test_a_command_ends_when_its_output_has_no_reader(home: Home) -> None:
    async def fail(text: str) -> None:
        raise WorkspaceError("the journal is full")

    async with asyncio.timeout(SOON):
        with pytest.raises(WorkspaceError, match="the journal is full"):
            await home.processes.run("echo x; sleep 100", home.folder, timeout=100, on_output=fail)
    await until(lambda: not home.left())


async def test_a_reader_slower_than_its_command_gets_the_whole_output(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process, "BUFFER_LIMIT", 1)  # most of the output waits in the pipe
    shown: list[str] = []

    async def read(text: str) -> None:
        shown.append(text)
        (home.folder / "begun").touch()
        await until((home.folder / "written").exists)
        await asyncio.sleep(2 * child_process.EXIT_GRACE)  # the command has ended meanwhile

    end = "until [ -e begun ]; do sleep 0.01; done; echo two; sleep 0.05; seq 3 9999; touch written"
    result = await home.processes.run(f"echo one; {end}", home.folder, timeout=60, on_output=read)
    assert result.output.splitlines()[-1] == "9999"
    assert "".join(shown).endswith("\n9999\n")


@linux
async def test_a_stopped_command_is_terminated_and_returns_its_output(
    home: Home,
) -> None:
    stop = asyncio.Event()

    async def listen(text: str) -> None:
        if "ready" in text:
            stop.set()

    result = await home.processes.run(
        "trap 'echo tidied; exit 3' TERM; echo ready; sleep 100 & wait",
        home.folder,
        timeout=60,
        on_output=listen,
        stop=stop,
    )
    assert (result.stopped, result.timed_out, result.exit_code) == (True, False, 3)
    assert result.output == "ready\ntidied\n"
    await until(lambda: not home.left())
