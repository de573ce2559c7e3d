"""What an agent leaves in the folder for temporary files, however it ends."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from acp_agent.sandbox.sandbox import Unavailable, find_backend
from acp_agent.sandbox.temporary_folder import remove_abandoned_folders, remove_tree
from tests.support.agent_process import StartAgent, config_file
from tests.support.model_server import Call, ModelServer, answer
from tests.support.ordinary_user import without_root
from tests.support.waiting import until

HELD = """
import os, sys
sys.path[:0] = eval(sys.argv[1])
from acp_agent.sandbox.temporary_folder import TemporaryFolder
folder = TemporaryFolder()
folder.create()
os.mkdir(folder.path + "/session")
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """The folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


@pytest.fixture
def environ(temporary: Path, model_server: ModelServer) -> dict[str, str]:
    """The environment of an agent that confines commands and runs them unasked."""
    added = {"TMPDIR": str(temporary), "ACP_AGENT_SANDBOX": "true", "ACP_AGENT_MODE": "full"}
    return model_server.environ() | added


def hold(temporary: Path) -> subprocess.Popen[str]:
    """Start another process that has a folder with something in it."""
    return subprocess.Popen(
        [sys.executable, "-c", HELD, repr(sys.path)],
        env=os.environ | {"TMPDIR": str(temporary)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def folder_of(process: subprocess.Popen[str]) -> Path:
    """The folder that a process has."""
    assert process.stdout is not None
    return Path(process.stdout.readline().strip())


async def test_a_killed_agent_leaves_no_process_though_it_was_trying_the_sandbox(
    agent: StartAgent, temporary: Path, environ: dict[str, str], workspace_repo: Path
) -> None:
    stand_in = workspace_repo.parent / "programs" / "bwrap"
    stand_in.parent.mkdir()
    stand_in.write_text(f"#!/bin/sh\n: > {temporary}/tried\nexec sleep 600\n")
    stand_in.chmod(0o700)
    search_path = f"{stand_in.parent}:{os.environ['PATH']}"
    running = await agent(environ=environ | {"PATH": search_path})
    await running.initialize()
    await running.new_session(workspace_repo)
    await until((temporary / "tried").exists)
    await running.kill()
    await until(lambda: not running.left_behind())


async def test_an_agent_that_ends_in_order_leaves_no_file(
    agent: StartAgent,
    temporary: Path,
    environ: dict[str, str],
    workspace_repo: Path,
    model_server: ModelServer,
    home: Path,
) -> None:
    if isinstance(find_backend(os.environ.get("PATH")), Unavailable):
        pytest.skip("no sandbox")
    hook = '[[hooks.UserPromptSubmit]]\ncommand = "echo x > /tmp/of-a-hook"\n'
    config_file(home, f"[sandbox]\nhooks = true\n{hook}")
    model_server.add(
        answer(Call("shell", {"command": "mkdir -p /tmp/a/b"})), answer("Done."), answer("Done.")
    )
    running = await agent(environ=environ)
    await running.initialize()
    session = await running.new_session(workspace_repo)
    await running.prompt(session, "go")
    (folder,) = temporary.iterdir()
    assert (folder / session / "a" / "b").is_dir()
    other = await running.new_session(workspace_repo)
    await running.request("session/close", {"sessionId": session})
    assert not (folder / session).exists()
    await running.prompt(other, "only the hook runs")
    assert (folder / other).exists()
    await running.stop()
    assert list(temporary.iterdir()) == []


async def test_files_of_dead_processes_are_removed_and_those_of_running_processes_stay(
    temporary: Path,
) -> None:
    unrelated = [
        temporary / name for name in ("acp-agent-notes", "acp-agent-0123456789abcdeg", "x")
    ]
    for folder in unrelated:
        folder.mkdir()
    with hold(temporary) as running, hold(temporary) as dead:
        kept, left = folder_of(running), folder_of(dead)
        (left / "session" / "link").symlink_to(kept)
        dead.kill()
        dead.wait()
        interrupted = temporary / "acp-agent-0123456789abcdef.new0"
        interrupted.mkdir()
        remove_abandoned_folders(str(temporary))
        # The running process may be removing them, too.
        await until(lambda: sorted(temporary.iterdir()) == sorted([kept, *unrelated]))
        assert (kept / "session").is_dir()
        running.kill()


def test_folders_without_write_permission_are_removed() -> None:
    with without_root(), tempfile.TemporaryDirectory() as top:
        below = Path(top, "folder", "a", "b")
        below.mkdir(parents=True)
        (below / "file").touch()
        outside = Path(top, "outside")
        outside.mkdir(mode=0o500)
        (below.parent / "link").symlink_to(outside)
        for folder in (below, below.parent):
            folder.chmod(0o500)
        remove_tree(f"{top}/folder")
        assert os.listdir(top) == ["outside"]
        assert stat.S_IMODE(outside.stat().st_mode) == 0o500
