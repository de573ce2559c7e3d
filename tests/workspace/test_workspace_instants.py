"""What is stopped in the very moment in which something begins or is half done."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from acp_agent.platform.watchdog import Watchdog
from acp_agent.workspace import files as files_module
from acp_agent.workspace.file_io import replace_file
from acp_agent.workspace.files import WorkspaceFiles


async def test_a_watchdog_is_started_once_and_not_after_it_was_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def record(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(start(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", record)
    watch = Watchdog("ACP_AGENT_COMMAND=test")
    await asyncio.gather(*(asyncio.to_thread(watch.start) for _ in range(5)))
    await watch.aclose()
    watch.start()
    assert [process.returncode for process in started] == [0]


@pytest.mark.parametrize("times", [1, 2])
async def test_a_stopped_write_does_not_happen_after_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
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
    for _ in range(times):  # the user may stop a turn and then close the session
        first.cancel()
        await asyncio.sleep(0)
    second = asyncio.create_task(write("second"))
    await asyncio.wait([second], timeout=0.1)  # it is not to end before the first one has
    go.set()
    await asyncio.wait([first, second])
    assert first.cancelled()
    await asyncio.get_running_loop().shutdown_default_executor()  # no thread writes any more
    assert path.read_text() == "second"
