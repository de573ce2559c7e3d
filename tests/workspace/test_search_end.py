from __future__ import annotations

import asyncio
import stat
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from acp_agent.errors import WorkspaceError
from acp_agent.workspace import ripgrep
from acp_agent.workspace.search import find_files, find_lines, list_files
from tests.support.open_session import is_alive
from tests.support.waiting import until


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return (tmp_path / "project").resolve()


def slow_ripgrep(folder: Path) -> tuple[Path, Path]:
    """A program in the place of ripgrep that prints one line and then hangs with a child."""
    folder.mkdir()
    program, pids = folder / "rg", folder / "pids"
    program.write_text(
        f"#!{sys.executable}\n"
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "sys.stdout.write('./a.py\\0'); sys.stdout.flush()\n"
        "time.sleep(600)\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program, pids


def has_ended(pids: Path) -> bool:
    """Whether all processes noted in the file have ended."""
    return not any(is_alive(int(pid)) for pid in pids.read_text().split())


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
async def test_a_search_that_takes_too_long_ends_with_all_its_processes(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, pids = slow_ripgrep(tmp_path / "bin")
    monkeypatch.setattr(ripgrep, "find_ripgrep", lambda: str(program))
    with pytest.raises(WorkspaceError, match=r"took over 1\.5 s; name a folder further down"):
        await find_files(project, "*.py", limit=10, timeout=1.5)
    await until(lambda: has_ended(pids))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
async def test_a_search_whose_process_does_not_end_is_reported_as_too_slow(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, pids = slow_ripgrep(tmp_path / "bin")
    started, start = list[asyncio.subprocess.Process](), asyncio.create_subprocess_exec

    async def starts(*command: str, **options: Any) -> asyncio.subprocess.Process:
        started.append(await start(*command, **options))
        return started[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", starts)
    monkeypatch.setattr(ripgrep, "find_ripgrep", lambda: str(program))
    monkeypatch.setattr(ripgrep, "_MAX_REAP_SECONDS", 0)  # as where it hangs in the kernel
    with pytest.raises(WorkspaceError, match=r"took over 1\.5 s"):
        await list_files(project, timeout=1.5)
    await until(lambda: has_ended(pids))
    await started[0].wait()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
async def test_a_cancelled_search_ends_its_processes(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, pids = slow_ripgrep(tmp_path / "bin")
    monkeypatch.setattr(ripgrep, "find_ripgrep", lambda: str(program))
    search = asyncio.create_task(
        find_lines(project, "x", glob=None, ignore_case=False, context=0, limit=10, width=100)
    )
    await until(lambda: pids.exists() and " " in pids.read_text())
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
    await until(lambda: has_ended(pids))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
@pytest.mark.parametrize("steps", range(2, 8))
async def test_a_search_cancelled_while_its_process_starts_ends_at_once_and_leaves_none(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    program, pids = slow_ripgrep(tmp_path / "bin")
    monkeypatch.setattr(ripgrep, "find_ripgrep", lambda: str(program))
    search = asyncio.create_task(list_files(project))
    for _ in range(steps):
        await asyncio.sleep(0)
    deadline = time.monotonic() + 60
    while not (pids.exists() and " " in pids.read_text()) and time.monotonic() < deadline:
        time.sleep(0.005)
    search.cancel()
    done, _ = await asyncio.wait([search], timeout=60)
    assert done
    assert search.cancelled()
    await until(lambda: has_ended(pids))


def test_a_missing_ripgrep_is_reported_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WorkspaceError, match=r"ripgrep \(rg\) is missing: install"):
        ripgrep.find_ripgrep()


async def test_a_folder_that_vanished_before_the_search_is_named(project: Path) -> None:
    project.rmdir()
    with pytest.raises(WorkspaceError, match=r"ripgrep cannot be started in .*project"):
        await find_files(project, "*", limit=1)
