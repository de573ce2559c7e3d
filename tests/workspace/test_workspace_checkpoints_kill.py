"""kill -9 at any moment of keeping files or putting them back: nothing is lost."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from acp_agent.errors import CheckpointTooSlowError
from acp_agent.workspace.checkpoints.base import Deadline
from acp_agent.workspace.checkpoints.store import CheckpointStore
from tests.workspace.checkpoint_folder import (
    Checkpoints,
    change_kinds,
    folder_contents,
    write_files,
)

CHILD = """
import sys
from pathlib import Path
from tests.workspace.checkpoint_folder import Checkpoints
base, action, target = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
history = Checkpoints(base, base / "project")
history.count = 100
print("ready", flush=True)
if action == "save":
    history.save()
else:
    history.restore(target)
print("done", flush=True)
"""


def run_and_kill(base: Path, action: str, target: str, delay: float) -> bool:
    """Do it in another process, which is killed after `delay` seconds; whether it was done."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(base), action, target],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        time.sleep(delay)  # not to wait for something, but to strike at any instant
        os.killpg(child.pid, signal.SIGKILL)
        return child.stdout.readline() == b"done\n"


def of_three_hundred_files(base: Path, root: Path) -> tuple[Checkpoints, str]:
    """Checkpoints of a folder of that many, and the first of them."""
    write_files(root, {f"d{n % 7}/f{n}": f"{n}\n" * n for n in range(300)})
    history = Checkpoints(base, root)
    return history, history.save()


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_checkpoint_damages_no_other_checkpoint(seed: int, tmp_path: Path) -> None:
    root, choice = tmp_path / "project", random.Random(seed)
    history, first = of_three_hundred_files(tmp_path, root)
    before = folder_contents(root)
    for number in range(3):
        write_files(
            root, {f"d{n % 7}/f{n}": f"{seed} {number} {n}\n" * 40 for n in range(0, 300, 2)}
        )
        changed = folder_contents(root)
        run_and_kill(tmp_path, "save", "", choice.uniform(0, 0.08))
        assert folder_contents(root) == changed
        later_history = history.save()
        history.restore(first)
        assert folder_contents(root) == before
        history.restore(later_history)
        assert folder_contents(root) == changed


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_restore_loses_nothing_and_can_be_repeated(seed: int, tmp_path: Path) -> None:
    root, choice = tmp_path / "project", random.Random(seed)
    history, first = of_three_hundred_files(tmp_path, root)
    before = folder_contents(root)
    write_files(root, {f"d{n % 7}/f{n}": f"{seed} {n}\n" * 40 for n in range(0, 300, 2)})
    write_files(root, {f"new/f{n}": f"new {n}" for n in range(100)})
    changed = folder_contents(root)
    run_and_kill(tmp_path, "back", first, choice.uniform(0.02, 0.12))
    replaced = "ckpt_101"
    if history.checkpoints.has(replaced):  # it got that far; what was there can be had
        history.restore(replaced)
    assert folder_contents(root) == changed
    history.restore(first)
    assert folder_contents(root) == before
    assert not list(root.rglob(".acp-agent*"))


def test_the_lock_of_a_killed_git_does_not_block_the_next_checkpoint(tmp_path: Path) -> None:
    root = tmp_path / "project"
    write_files(root, {"a": "1"})
    history = Checkpoints(tmp_path, root)
    checkpoint = history.save()
    (store,) = history.folder.glob("*.git")
    (store / "index.lock").write_bytes(b"half")
    (store / "restoring.json").write_text(f'["{bytes(root / ".acp-agent-restoring").hex()}"]')
    write_files(root, {".acp-agent-restoring": "half of a file", "a": "2"})
    assert change_kinds(history.plan(checkpoint)) == {"a": "modify"}
    assert not (root / ".acp-agent-restoring").exists()
    (store / "index").write_bytes(b"not an index")
    assert change_kinds(history.restore(checkpoint)) == {"a": "modify"}


def test_waiting_for_the_lock_of_another_process_ends_at_the_deadline(tmp_path: Path) -> None:
    root = tmp_path / "project"
    write_files(root, {"a": "1"})
    history = Checkpoints(tmp_path, root)
    history.save()
    with (
        CheckpointStore(history.folder, root).locked(Deadline(5)),
        pytest.raises(CheckpointTooSlowError),
    ):
        history.save(seconds=0.2)


def test_a_git_that_outlives_the_agent_still_has_the_lock(tmp_path: Path) -> None:
    root, programs, start_marker = tmp_path / "project", tmp_path / "bin", tmp_path / "begun"
    write_files(root, {"a": "1"})
    git = shutil.which("git")
    slow = f'case "$*" in *update-index*) : > {start_marker}; sleep 1;; esac'
    write_files(programs, {"git": f'#!/bin/sh\n{slow}\nexec {git} "$@"\n'})
    (programs / "git").chmod(0o755)
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path), "save", ""],
        stdout=subprocess.DEVNULL,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"},
        start_new_session=True,
    ) as child:
        while not start_marker.exists():
            assert child.poll() is None
            time.sleep(0.01)
        os.killpg(child.pid, signal.SIGKILL)
    history = Checkpoints(tmp_path, root)
    with pytest.raises(CheckpointTooSlowError):
        history.save(seconds=0.2)
    checkpoint = history.save()  # when that git has ended
    write_files(root, {"a": "2"})
    assert change_kinds(history.restore(checkpoint)) == {"a": "modify"}
