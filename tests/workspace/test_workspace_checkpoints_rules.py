"""Which rules leave files out of a checkpoint: wherever they lie, and when they change."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Set as AbstractSet
from pathlib import Path

import pytest

from tests.workspace.checkpoint_folder import (
    Checkpoints,
    change_kinds,
    folder_contents,
    git,
    skip_reasons,
    write_files,
)


def repository(folder: Path) -> Path:
    """A repository with a commit."""
    write_files(folder, {"a": "1"})
    git(folder, "init", "-q")
    git(folder, "add", "a")
    git(folder, "commit", "-qm", "Start")
    return folder


def names(history: Checkpoints, root: Path) -> AbstractSet[str]:
    """What a checkpoint has that is made now."""
    name = history.save()
    for path, (kind, _) in folder_contents(root).items():
        if kind == "file":
            (root / os.fsdecode(path)).unlink()
    return change_kinds(history.plan(name)).keys()


def test_files_excluded_by_a_worktrees_repository_are_not_saved(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    worktree = tmp_path / "worktree"
    git(main, "worktree", "add", "-q", str(worktree))
    write_files(main, {".git/info/exclude": "mine\n"})
    write_files(worktree, {"mine": "secret"})
    assert names(Checkpoints(tmp_path, worktree), worktree) == {"a"}


def test_files_excluded_by_a_submodules_repository_are_not_saved(
    tmp_path: Path, root: Path
) -> None:
    other = repository(tmp_path / "other")
    git(root, "init", "-q")
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub")
    write_files(root, {".git/modules/sub/info/exclude": "mine\n", "sub/mine": "secret"})
    assert names(Checkpoints(tmp_path, root / "sub"), root / "sub") == {"a"}


def test_ignore_files_hold_in_a_repository_that_comes_to_be_in_the_folder(
    history: Checkpoints, root: Path
) -> None:
    write_files(root, {".gitignore": ".env\nbuild/\n", "a": "1"})
    name = history.save()
    write_files(root, {"new/f": "1", "new/.env": "secret", "new/build/out": "1"})
    git(root / "new", "init", "-q")
    assert change_kinds(history.restore(name)) == {"new/f": "delete"}
    assert {b"new/.env", b"new/build/out"} <= folder_contents(root).keys()


def test_exclusions_of_the_top_do_not_apply_in_nested_repositories(
    history: Checkpoints, root: Path
) -> None:
    git(root, "init", "-q")
    write_files(
        root, {".git/info/exclude": "/build/\n", "a": "1", "inner/f": "1", "inner/build/out": "1"}
    )
    git(root / "inner", "init", "-q")
    name = history.save()
    write_files(root, {"a": "2"})
    history.save()
    assert change_kinds(history.restore(name)) == {"a": "modify"}
    assert (root / "inner" / "build" / "out").exists()


def test_a_file_that_is_no_longer_excluded_is_not_deleted(history: Checkpoints, root: Path) -> None:
    git(root, "init", "-q")
    write_files(root, {".git/info/exclude": "mine\n", "mine": "1", "a": "1"})
    name = history.save()
    write_files(root, {".git/info/exclude": ""})
    plan = history.restore(name)
    assert skip_reasons(plan) == {"mine": "it was left out then"}
    assert (root / "mine").read_text() == "1"


def test_new_exclusions_apply_to_an_open_session(history: Checkpoints, root: Path) -> None:
    git(root, "init", "-q")
    write_files(root, {"mine": "1", "a": "1"})
    name = history.save()
    write_files(root, {".git/info/exclude": "mine\n", "mine": "2"})
    assert change_kinds(history.restore(name)) == {}
    assert (root / "mine").read_text() == "2"


def test_ignore_files_above_the_folder_hold_as_they_are_now(tmp_path: Path, root: Path) -> None:
    write_files(root, {"part/a": "1", "part/b": "1"})
    part = Checkpoints(tmp_path, root / "part")
    name = part.save()
    git(root, "init", "-q")  # only now is it a part of something
    write_files(root, {".gitignore": "a\n", "part/a": "2", "part/b": "2"})
    assert change_kinds(part.restore(name)) == {"b": "modify"}
    assert (root / "part" / "a").read_text() == "2"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows a process's open files")
def test_files_with_rules_are_closed_after_reading(tmp_path: Path, root: Path) -> None:
    git(root, "init", "-q")
    write_files(root, {"part/a": "1"})
    (root / ".gitignore").mkdir()
    Checkpoints(tmp_path, root / "part").save()
    opened = [os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()]
    assert [path for path in opened if path.startswith(str(root))] == []


@pytest.mark.parametrize("place", ["project", "project/part"])
@pytest.mark.parametrize("what", ["link", "folder"])
def test_a_pipe_in_place_of_an_ignore_file_does_not_block(
    what: str, place: str, tmp_path: Path, root: Path
) -> None:
    git(root, "init", "-q")
    write_files(root, {"part/a": "1"})
    ignore = tmp_path / place / ".gitignore"
    if what == "link":
        ignore.symlink_to("/dev/zero")
    else:
        ignore.mkdir()
    part = Checkpoints(tmp_path, root / "part")
    working = threading.Thread(target=part.save, daemon=True)  # it may never end
    working.start()
    working.join(30)
    assert not working.is_alive()
    write_files(root, {"part/a": "2"})
    assert change_kinds(part.restore("ckpt_1")) == {"a": "modify"}
