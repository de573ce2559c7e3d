"""What is stopped in the very moment in which something begins or is half done."""

from __future__ import annotations

import asyncio
import threading
from asyncio.subprocess import Process
from pathlib import Path

import pytest

from acp_agent.platform.watchdog import Watchdog
from acp_agent.workspace import files as files_module
from acp_agent.workspace.file_io import replace_file
from acp_agent.workspace.files import WorkspaceFiles


class Starts:
    """Starting a process, which is held up until `go`; `made` are those that were started."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go = asyncio.Event(), asyncio.Event()
        self.made: list[Process] = []
        self._start = asyncio.create_subprocess_exec
        monkeypatch.setattr(asyncio, "create_subprocess_exec", self._slowly)

    async def _slowly(self, *command: str, **options: object) -> Process:
        self.begun.set()
        await self.go.wait()
        process = await self._start(*command, **options)  # type: ignore[arg-type]  # passed on
        self.made.append(process)
        return process


async def test_commands_are_watched_after_the_first_was_stopped_during_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starts, watch = Starts(monkeypatch), Watchdog("ACP_AGENT_COMMAND=test")
    first = asyncio.create_task(watch.start())
    await starts.begun.wait()
    first.cancel()
    await asyncio.wait([first])
    starts.go.set()
    await watch.start()
    assert len(starts.made) == 1
    await watch.aclose()
    assert starts.made[0].returncode == 0


async def test_a_watch_that_is_closed_as_it_begins_leaves_no_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starts, watch = Starts(monkeypatch), Watchdog("ACP_AGENT_COMMAND=test")
    starting = asyncio.create_task(watch.start())
    await starts.begun.wait()
    closing = asyncio.create_task(watch.aclose())
    await asyncio.sleep(0)
    starts.go.set()
    await asyncio.gather(starting, closing)
    await watch.start()
    assert [process.returncode for process in starts.made] == [0]


async def test_a_stopped_write_does_not_happen_after_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, go = threading.Event(), threading.Event()

    def slowly(path: Path, data: bytes, *, label: str) -> None:
        if data == b"first":
            started.set()
            go.wait(10)
        replace_file(path, data, label=label)

    monkeypatch.setattr(files_module, "replace_file", slowly)
    files = WorkspaceFiles(tmp_path)
    path = files.resolve("a.txt")

    async def write(text: str) -> None:
        async with files.locked(path):
            await files.write_text(path, text)

    first = asyncio.create_task(write("first"))
    await asyncio.to_thread(started.wait, 10)
    first.cancel()
    second = asyncio.create_task(write("second"))
    await asyncio.wait([second], timeout=0.1)  # it is not to end before the first one has
    go.set()
    await asyncio.wait([first, second])
    assert first.cancelled()
    await asyncio.get_running_loop().shutdown_default_executor()  # no thread writes any more
    assert path.read_text() == "second"
