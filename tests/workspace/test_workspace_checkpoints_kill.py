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
from tests.workspace.checkpoint_folder import Checkpoints, kinds, picture, put

CHILD = """
import sys
from pathlib import Path
from tests.workspace.checkpoint_folder import Checkpoints
base, what, target = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
kept = Checkpoints(base, base / "project")
kept.count = 100
print("ready", flush=True)
if what == "keep":
    kept.keep()
else:
    kept.back(target)
print("done", flush=True)
"""


def run_and_kill(base: Path, what: str, target: str, delay: float) -> bool:
    """Do it in another process, which is killed after `delay` seconds; whether it was done."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(base), what, target],
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
    put(root, {f"d{n % 7}/f{n}": f"{n}\n" * n for n in range(300)})
    kept = Checkpoints(base, root)
    return kept, kept.keep()


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_checkpoint_damages_no_other_checkpoint(seed: int, tmp_path: Path) -> None:
    root, choice = tmp_path / "project", random.Random(seed)
    kept, first = of_three_hundred_files(tmp_path, root)
    before = picture(root)
    for number in range(3):
        put(root, {f"d{n % 7}/f{n}": f"{seed} {number} {n}\n" * 40 for n in range(0, 300, 2)})
        changed = picture(root)
        run_and_kill(tmp_path, "keep", "", choice.uniform(0, 0.08))
        assert picture(root) == changed
        again = kept.keep()
        kept.back(first)
        assert picture(root) == before
        kept.back(again)
        assert picture(root) == changed


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_restore_loses_nothing_and_can_be_repeated(seed: int, tmp_path: Path) -> None:
    root, choice = tmp_path / "project", random.Random(seed)
    kept, first = of_three_hundred_files(tmp_path, root)
    before = picture(root)
    put(root, {f"d{n % 7}/f{n}": f"{seed} {n}\n" * 40 for n in range(0, 300, 2)})
    put(root, {f"new/f{n}": f"new {n}" for n in range(100)})
    changed = picture(root)
    run_and_kill(tmp_path, "back", first, choice.uniform(0.02, 0.12))
    replaced = "ckpt_101"
    if kept.checkpoints.has(replaced):  # it got that far; what was there can be had
        kept.back(replaced)
    assert picture(root) == changed
    kept.back(first)
    assert picture(root) == before
    assert not list(root.rglob(".acp-agent*"))


def test_the_lock_of_a_killed_git_does_not_block_the_next_checkpoint(tmp_path: Path) -> None:
    root = tmp_path / "project"
    put(root, {"a": "1"})
    kept = Checkpoints(tmp_path, root)
    checkpoint = kept.keep()
    (store,) = kept.folder.glob("*.git")
    (store / "index.lock").write_bytes(b"half")
    (store / "restoring.json").write_text(f'["{bytes(root / ".acp-agent-restoring").hex()}"]')
    put(root, {".acp-agent-restoring": "half of a file", "a": "2"})
    assert kinds(kept.plan(checkpoint)) == {"a": "modify"}
    assert not (root / ".acp-agent-restoring").exists()
    (store / "index").write_bytes(b"not an index")
    assert kinds(kept.back(checkpoint)) == {"a": "modify"}


def test_waiting_for_the_lock_of_another_process_ends_at_the_deadline(tmp_path: Path) -> None:
    root = tmp_path / "project"
    put(root, {"a": "1"})
    kept = Checkpoints(tmp_path, root)
    kept.keep()
    with (
        CheckpointStore(kept.folder, root).locked(Deadline(5)),
        pytest.raises(CheckpointTooSlowError),
    ):
        kept.keep(seconds=0.2)


def test_a_git_that_outlives_the_agent_still_has_the_lock(tmp_path: Path) -> None:
    root, programs, begun = tmp_path / "project", tmp_path / "bin", tmp_path / "begun"
    put(root, {"a": "1"})
    git = shutil.which("git")
    slow = f'case "$*" in *update-index*) : > {begun}; sleep 1;; esac'
    put(programs, {"git": f'#!/bin/sh\n{slow}\nexec {git} "$@"\n'})
    (programs / "git").chmod(0o755)
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path), "keep", ""],
        stdout=subprocess.DEVNULL,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"},
        start_new_session=True,
    ) as child:
        while not begun.exists():
            assert child.poll() is None
            time.sleep(0.01)
        os.killpg(child.pid, signal.SIGKILL)
    kept = Checkpoints(tmp_path, root)
    with pytest.raises(CheckpointTooSlowError):
        kept.keep(seconds=0.2)
    checkpoint = kept.keep()  # when that git has ended
    put(root, {"a": "2"})
    assert kinds(kept.back(checkpoint)) == {"a": "modify"}
