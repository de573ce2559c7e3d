"""Checkpoints do not grow without end, and what is still needed stays."""

from __future__ import annotations

import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from acp_agent.errors import CheckpointTooSlowError
from acp_agent.workspace.checkpoints import prune
from acp_agent.workspace.checkpoints.base import Deadline
from acp_agent.workspace.checkpoints.git_repository import GitRepository
from acp_agent.workspace.checkpoints.store import CheckpointStore, remove_leftovers
from tests.workspace.checkpoint_folder import (
    SESSION,
    Checkpoints,
    change_kinds,
    folder_contents,
    write_files,
)

LARGE = 10**12
NOISE = random.Random(1).randbytes(300_000)


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("objects/**/*") if path.is_file())


def with_a_large_file_of_another(base: Path, root: Path) -> tuple[Checkpoints, Checkpoints]:
    """Those of a session, and of another that alone kept a large file, which is there no more."""
    session_history, other_history = (
        Checkpoints(base, root),
        Checkpoints(base, root, session="sess_other"),
    )
    write_files(root, {"big": NOISE, "a": "1"})
    other_history.save()
    (root / "big").unlink()
    return session_history, other_history


def test_deleting_a_session_removes_only_objects_that_no_other_session_uses(
    tmp_path: Path, root: Path
) -> None:
    session_history, _ = with_a_large_file_of_another(tmp_path, root)
    checkpoint, before = session_history.save(), folder_contents(root)
    prune.forget_session(session_history.folder, "sess_other", Deadline(30))
    assert prune.sessions_with_checkpoints(session_history.folder) == {SESSION}
    assert size(session_history.folder) < 100_000
    write_files(root, {"a": "2"})
    session_history.restore(checkpoint)
    assert folder_contents(root) == before
    prune.forget_session(session_history.folder, SESSION, Deadline(30))
    assert list(session_history.folder.glob("*.git")) == []


def test_a_fork_has_all_its_checkpoints_when_its_source_is_deleted(
    tmp_path: Path, root: Path
) -> None:
    source, fork = Checkpoints(tmp_path, root), Checkpoints(tmp_path, root, session="sess_fork")
    write_files(root, {"a": "1"})
    history = [source.save()]
    write_files(root, {"a": "2"})
    history.append(source.save())
    prune.copy_session(source.folder, SESSION, "sess_fork", Deadline(30))
    # So little is larger once it is packed, which is no reason to forget any of it.
    prune.forget_session(source.folder, SESSION, Deadline(30))
    assert [fork.checkpoints.has(checkpoint) for checkpoint in history] == [True, True]


def test_the_next_sweep_removes_leftovers_of_the_last_one(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_history, other_history = with_a_large_file_of_another(tmp_path, root)
    checkpoint, before = session_history.save(), folder_contents(root)

    def too_slow(*_: object) -> None:
        raise CheckpointTooSlowError("it takes too long")

    with monkeypatch.context() as slow:
        slow.setattr(GitRepository, "sweep", too_slow)
        with pytest.raises(CheckpointTooSlowError):
            prune.forget_session(session_history.folder, "sess_other", Deadline(30))
    assert prune.sessions_with_checkpoints(session_history.folder) == {SESSION}
    assert size(session_history.folder) > 300_000
    write_files(root, {"a": "2"})
    session_history.save()
    prune.sweep(session_history.folder, [], LARGE, Deadline(30))
    assert size(session_history.folder) < 100_000
    write_files(root, {"big": NOISE})
    (store,) = session_history.folder.glob("*.git")
    other_history.save()
    (root / "big").unlink()
    session_history.save()
    prune.sweep(session_history.folder, ["sess_other"], LARGE, Deadline(30))
    assert size(session_history.folder) < 100_000
    assert store.exists()
    session_history.restore(checkpoint)
    assert folder_contents(root) == before


def test_the_store_is_removed_with_its_last_session_and_created_again(
    tmp_path: Path, root: Path
) -> None:
    write_files(root, {"a": "1"})
    history = Checkpoints(tmp_path, root)
    history.save()
    prune.sweep(history.folder, [SESSION], LARGE, Deadline(30))
    assert list(history.folder.glob("*.git")) == []
    later_history = Checkpoints(tmp_path, root)
    checkpoint = later_history.save()
    write_files(root, {"a": "2"})
    later_history.restore(checkpoint)
    assert (root / "a").read_text() == "1"


def test_the_oldest_checkpoints_are_removed_first(tmp_path: Path, root: Path) -> None:
    history, noise = Checkpoints(tmp_path, root), random.Random(2)
    names = []
    for number in range(8):
        write_files(root, {"noise": noise.randbytes(100_000)})
        names.append(history.save())
        for record in history.folder.glob(f"*/checkpoints/*/{names[-1]}.json"):
            os.utime(record, (number, number))
    prune.sweep(history.folder, [], 450_000, Deadline(60))
    left = [name for name in names if history.checkpoints.has(name)]
    assert left == names[-len(left) :]
    assert 1 <= len(left) <= 4
    assert size(history.folder) <= 450_000
    before = folder_contents(root)
    write_files(root, {"noise": b"other"})
    history.restore(names[-1])
    assert folder_contents(root) == before


def test_a_sweep_is_due_once_a_day(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    assert prune.is_due(folder)
    assert not prune.is_due(folder)
    os.utime(folder / "swept", (0, 0))
    assert prune.is_due(folder)


def test_checkpoints_during_sweeps_do_not_fail(tmp_path: Path, root: Path) -> None:
    write_files(root, {"a": "1"})
    history = Checkpoints(tmp_path, root)
    history.save()
    failures: list[BaseException] = []

    def save() -> None:
        try:
            for _ in range(10):
                Checkpoints(tmp_path, root).save()
        except BaseException as error:  # noqa: BLE001 - told below
            failures.append(error)

    threads = [threading.Thread(target=save) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        prune.sweep(history.folder, [SESSION], LARGE, Deadline(60))
    for thread in threads:
        thread.join(60)
    assert failures == []


def test_a_sweep_keeps_files_that_another_process_is_writing(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill = CheckpointStore._fill

    def filled(self: CheckpointStore, path: Path) -> None:
        fill(self, path)
        remove_leftovers(path.parents[1])

    monkeypatch.setattr(CheckpointStore, "_fill", filled)
    write_files(root, {"a": "1"})
    history = Checkpoints(tmp_path, root)
    history.restore(history.save())


def test_a_checkpoint_made_while_the_store_is_removed_is_saved(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(root, {"a": "1"})
    history = Checkpoints(tmp_path, root)
    history.save()
    other_history = Checkpoints(tmp_path, root, session="sess_other")
    made: list[str] = []
    rename = Path.rename

    def meanwhile(path: Path, target: Path) -> Path:
        renamed = rename(path, target)
        if not made and not list(history.folder.glob("*.git")):
            made.append("")
            made[0] = other_history.save(5)
        return renamed

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", meanwhile)
        prune.forget_session(history.folder, SESSION, Deadline(30))
    write_files(root, {"a": "2"})
    assert change_kinds(other_history.restore(made[0])) == {"a": "modify"}


@pytest.mark.parametrize("part", ["HEAD", "config", "objects", "refs"])
def test_the_next_checkpoint_repairs_an_incomplete_store(
    tmp_path: Path, root: Path, part: str
) -> None:
    write_files(root, {"a": "1"})
    history = Checkpoints(tmp_path, root)
    history.save()
    (place,) = history.folder.glob("*.git")
    (place / part).rename(tmp_path / "lost")
    later_history = Checkpoints(tmp_path, root)
    checkpoint = later_history.save()
    write_files(root, {"a": "2"})
    assert change_kinds(later_history.restore(checkpoint)) == {"a": "modify"}


def test_many_that_begin_in_a_new_folder_at_the_same_time_all_keep_it(
    tmp_path: Path, root: Path
) -> None:
    write_files(root, {"a": "1"})
    many = [Checkpoints(tmp_path, root, session=f"sess_{number}") for number in range(4)]
    with ThreadPoolExecutor() as pool:
        checkpoints = list(pool.map(Checkpoints.save, many))
    write_files(root, {"a": "2"})
    assert all(one.checkpoints.has(name) for one, name in zip(many, checkpoints, strict=True))
    assert change_kinds(many[0].restore(checkpoints[0])) == {"a": "modify"}
    assert [path.suffix for path in many[0].folder.iterdir()] == [".git"]


def test_the_next_sweep_finishes_the_removal_of_a_killed_process(
    tmp_path: Path, root: Path
) -> None:
    write_files(root, {"a": "1"})
    history = Checkpoints(tmp_path, root)
    history.save()
    (history.folder / "passing-killed" / "old.git" / "objects").mkdir(parents=True)
    prune.sweep(history.folder, [], LARGE, Deadline(60))
    assert [path.suffix for path in history.folder.iterdir()] == [".git"]
