"""Checkpoints do not grow without end, and what is still needed stays."""

from __future__ import annotations

import os
import random
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from acp_agent.errors import CheckpointTooSlowError
from acp_agent.workspace.checkpoints import prune
from acp_agent.workspace.checkpoints.base import Deadline
from acp_agent.workspace.checkpoints.dulwich_repository import DulwichRepository
from acp_agent.workspace.checkpoints.git_repository import GitRepository
from acp_agent.workspace.checkpoints.store import CheckpointStore, remove_leftovers
from tests.workspace.checkpoint_folder import SESSION, Checkpoints, kinds, picture, put

LARGE = 10**12
NOISE = random.Random(1).randbytes(300_000)


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("objects/**/*") if path.is_file())


@pytest.fixture(params=["git", "dulwich"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param == "dulwich":
        monkeypatch.setattr(shutil, "which", lambda name, path: None)
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def with_a_large_file_of_another(base: Path, root: Path) -> tuple[Checkpoints, Checkpoints]:
    """Those of a session, and of another that alone kept a large file, which is there no more."""
    mine, other = Checkpoints(base, root), Checkpoints(base, root, session="sess_other")
    put(root, {"big": NOISE, "a": "1"})
    other.keep()
    (root / "big").unlink()
    return mine, other


def test_deleting_a_session_removes_only_objects_that_no_other_session_uses(
    tmp_path: Path, root: Path
) -> None:
    mine, _ = with_a_large_file_of_another(tmp_path, root)
    checkpoint, before = mine.keep(), picture(root)
    prune.forget_session(mine.folder, "sess_other", Deadline(30))
    assert prune.sessions_with_checkpoints(mine.folder) == {SESSION}
    assert size(mine.folder) < 100_000
    put(root, {"a": "2"})
    mine.back(checkpoint)
    assert picture(root) == before
    prune.forget_session(mine.folder, SESSION, Deadline(30))
    assert list(mine.folder.glob("*.git")) == []


def test_a_fork_has_all_its_checkpoints_when_its_source_is_deleted(
    tmp_path: Path, root: Path
) -> None:
    source, fork = Checkpoints(tmp_path, root), Checkpoints(tmp_path, root, session="sess_fork")
    put(root, {"a": "1"})
    kept = [source.keep()]
    put(root, {"a": "2"})
    kept.append(source.keep())
    prune.copy_session(source.folder, SESSION, "sess_fork", Deadline(30))
    # So little is larger once it is packed, which is no reason to forget any of it.
    prune.forget_session(source.folder, SESSION, Deadline(30))
    assert [fork.checkpoints.has(checkpoint) for checkpoint in kept] == [True, True]


def test_the_next_sweep_removes_what_the_last_one_had_no_time_for(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = with_a_large_file_of_another(tmp_path, root)
    checkpoint, before = mine.keep(), picture(root)

    def too_slow(*_: object) -> None:
        raise CheckpointTooSlowError("it takes too long")

    with monkeypatch.context() as slow:
        for kind in (GitRepository, DulwichRepository):
            slow.setattr(kind, "sweep", too_slow)
        with pytest.raises(CheckpointTooSlowError):
            prune.forget_session(mine.folder, "sess_other", Deadline(30))
    assert prune.sessions_with_checkpoints(mine.folder) == {SESSION}
    assert size(mine.folder) > 300_000
    put(root, {"a": "2"})
    mine.keep()
    prune.sweep(mine.folder, [], LARGE, Deadline(30))
    assert size(mine.folder) < 100_000
    put(root, {"big": NOISE})
    (store,) = mine.folder.glob("*.git")
    other.keep()
    (root / "big").unlink()
    mine.keep()
    prune.sweep(mine.folder, ["sess_other"], LARGE, Deadline(30))
    assert size(mine.folder) < 100_000
    assert store.exists()
    mine.back(checkpoint)
    assert picture(root) == before


def test_the_store_is_removed_with_its_last_session_and_created_again(
    tmp_path: Path, root: Path
) -> None:
    put(root, {"a": "1"})
    kept = Checkpoints(tmp_path, root)
    kept.keep()
    prune.sweep(kept.folder, [SESSION], LARGE, Deadline(30))
    assert list(kept.folder.glob("*.git")) == []
    again = Checkpoints(tmp_path, root)
    checkpoint = again.keep()
    put(root, {"a": "2"})
    again.back(checkpoint)
    assert (root / "a").read_text() == "1"


def test_the_oldest_go_first_where_there_is_too_much(tmp_path: Path, root: Path) -> None:
    kept, noise = Checkpoints(tmp_path, root), random.Random(2)
    names = []
    for number in range(8):
        put(root, {"noise": noise.randbytes(100_000)})
        names.append(kept.keep())
        for record in kept.folder.glob(f"*/checkpoints/*/{names[-1]}.json"):
            os.utime(record, (number, number))
    prune.sweep(kept.folder, [], 450_000, Deadline(60))
    left = [name for name in names if kept.checkpoints.has(name)]
    assert left == names[-len(left) :]
    assert 1 <= len(left) <= 4
    assert size(kept.folder) <= 450_000
    before = picture(root)
    put(root, {"noise": b"other"})
    kept.back(names[-1])
    assert picture(root) == before


def test_a_sweep_is_due_once_a_day(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    assert prune.is_due(folder)
    assert not prune.is_due(folder)
    os.utime(folder / "swept", (0, 0))
    assert prune.is_due(folder)


def test_checkpoints_during_sweeps_do_not_fail(tmp_path: Path, root: Path) -> None:
    put(root, {"a": "1"})
    kept = Checkpoints(tmp_path, root)
    kept.keep()
    failures: list[BaseException] = []

    def keep() -> None:
        try:
            for _ in range(10):
                Checkpoints(tmp_path, root).keep()
        except BaseException as error:  # noqa: BLE001 - told below
            failures.append(error)

    threads = [threading.Thread(target=keep) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        prune.sweep(kept.folder, [SESSION], LARGE, Deadline(60))
    for thread in threads:
        thread.join(60)
    assert failures == []


def test_a_sweep_leaves_alone_what_another_process_is_making(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill = CheckpointStore._fill

    def filled(self: CheckpointStore, path: Path) -> None:
        fill(self, path)
        remove_leftovers(path.parents[1])

    monkeypatch.setattr(CheckpointStore, "_fill", filled)
    put(root, {"a": "1"})
    kept = Checkpoints(tmp_path, root)
    kept.back(kept.keep())


def test_a_checkpoint_made_while_the_store_is_removed_is_saved(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, {"a": "1"})
    kept = Checkpoints(tmp_path, root)
    kept.keep()
    other = Checkpoints(tmp_path, root, session="sess_other")
    made: list[str] = []
    remove = shutil.rmtree

    def meanwhile(path: Any, *rest: Any, **options: Any) -> None:
        if not made and not list(kept.folder.glob("*.git")):
            made.append("")
            made[0] = other.keep(5)
        remove(path, *rest, **options)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", meanwhile)
        prune.forget_session(kept.folder, SESSION, Deadline(30))
    put(root, {"a": "2"})
    assert kinds(other.back(made[0])) == {"a": "modify"}


@pytest.mark.parametrize("part", ["HEAD", "config", "objects", "refs"])
def test_the_next_checkpoint_repairs_an_incomplete_store(
    tmp_path: Path, root: Path, part: str
) -> None:
    put(root, {"a": "1"})
    kept = Checkpoints(tmp_path, root)
    kept.keep()
    (place,) = kept.folder.glob("*.git")
    (place / part).rename(tmp_path / "lost")
    again = Checkpoints(tmp_path, root)
    checkpoint = again.keep()
    put(root, {"a": "2"})
    assert kinds(again.back(checkpoint)) == {"a": "modify"}


def test_many_that_begin_in_a_new_folder_at_the_same_time_all_keep_it(
    tmp_path: Path, root: Path
) -> None:
    put(root, {"a": "1"})
    many = [Checkpoints(tmp_path, root, session=f"sess_{number}") for number in range(4)]
    with ThreadPoolExecutor() as pool:
        checkpoints = list(pool.map(Checkpoints.keep, many))
    put(root, {"a": "2"})
    assert all(one.checkpoints.has(name) for one, name in zip(many, checkpoints, strict=True))
    assert kinds(many[0].back(checkpoints[0])) == {"a": "modify"}
    assert [path.suffix for path in many[0].folder.iterdir()] == [".git"]


def test_the_next_sweep_finishes_the_removal_of_a_killed_process(
    tmp_path: Path, root: Path
) -> None:
    put(root, {"a": "1"})
    kept = Checkpoints(tmp_path, root)
    kept.keep()
    (kept.folder / "passing-killed" / "old.git" / "objects").mkdir(parents=True)
    prune.sweep(kept.folder, [], LARGE, Deadline(60))
    assert [path.suffix for path in kept.folder.iterdir()] == [".git"]
