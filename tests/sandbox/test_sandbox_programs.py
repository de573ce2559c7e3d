"""This program's own helpers run confined."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from acp_agent.config.sandbox_types import SandboxConfig
from acp_agent.sandbox.launch import Confine
from acp_agent.sandbox.sandbox import Unavailable, find_backend
from acp_agent.session.services import SharedSandboxes
from acp_agent.workspace.git_repositories import GitRepositories
from acp_agent.workspace.git_status import git_status

TRIES = """
import os, socket, sys
def refused(act, *given):
    try:
        act(*given)
    except OSError:
        return True
    return False
print([refused(open, sys.argv[1], "w"), refused(os.mkdir, sys.argv[1] + ".d"),
       refused(socket.socket, socket.AF_UNIX), refused(socket.socket, socket.AF_INET),
       refused(os.kill, int(sys.argv[2]), 0), os.path.exists(sys.argv[1])])
"""


@pytest.fixture
def confine() -> Confine:
    found = find_backend(os.environ.get("PATH"))
    if isinstance(found, Unavailable):
        pytest.skip(f"no sandbox: {found.reason}")
    return SharedSandboxes().confine(SandboxConfig(), os.environ.get("PATH"))


def test_a_helper_that_reads_changes_nothing_and_reaches_nobody(
    confine: Confine, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()
    argv = [sys.executable, "-c", TRIES, str(file), str(os.getppid())]
    process = confine(argv, os.environ, "/").start("/", stdout=subprocess.PIPE)
    assert process.communicate(timeout=20)[0] == b"[True, True, True, True, True, True]\n"


def test_git_says_the_same_confined(confine: Confine, workspace_repo: Path) -> None:
    (workspace_repo / "new").touch()
    folder = os.path.realpath(workspace_repo)
    used = GitRepositories(confine=confine).used_in(folder)
    assert used is not None
    assert used == GitRepositories().used_in(folder)
    status = git_status(folder, lambda: False, confine)
    assert status is not None
    assert ("??", "new") in status.changed


def test_helpers_run_as_before_where_the_user_wants_no_sandbox() -> None:
    confine = SharedSandboxes().confine(SandboxConfig(enabled=False), os.environ.get("PATH"))
    assert confine(["git", "status"], {}, "/").argv == ("git", "status")
