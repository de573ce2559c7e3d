"""A folder's files are kept as they were and come back as they were, by git and without it."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from acp_agent.errors import CheckpointTooSlowError, WorkspaceError
from acp_agent.workspace.checkpoints import restore
from acp_agent.workspace.checkpoints.base import Deadline
from tests.workspace.checkpoint_folder import Checkpoints, git, kinds, picture, put, skipped


@pytest.mark.parametrize("around", [False, True])
def test_a_folder_that_was_deleted_as_a_whole_comes_back_and_that_can_be_undone(
    kept: Checkpoints, root: Path, around: bool
) -> None:
    if around:
        git(root.parent, "init", "-q")
    put(root, {"a.txt": "one\n", "sub/b.txt": "two\n", ".gitignore": "*.log\n"})
    before = picture(root)
    checkpoint = kept.keep()
    shutil.rmtree(root)
    gone = kept.keep()
    assert kept.without(gone) == {}
    assert set(kinds(kept.plan(checkpoint))) == {"a.txt", "sub/b.txt", ".gitignore"}
    assert not root.exists(), "to look changes nothing"
    assert skipped(kept.back(checkpoint)) == {}
    assert picture(root) == before
    kept.back(gone)
    assert picture(root) == {}


def test_files_come_back_as_they_were(kept: Checkpoints, root: Path) -> None:
    put(
        root, {"a.txt": "one\n", "sub/b.txt": b"\x00\xff\r\n", "sub/c": "", "run.sh": "#!/bin/sh\n"}
    )
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("sub/b.txt")
    (root / "dangling").symlink_to("/nowhere/at/all")
    before = picture(root)
    checkpoint = kept.keep()
    put(root, {"a.txt": "two\n", "new/deep/file": "new\n"})
    (root / "sub/c").unlink()
    (root / "run.sh").chmod(0o644)
    (root / "link").unlink()
    (root / "link").symlink_to("a.txt")
    plan = kept.plan(checkpoint)
    assert kinds(plan) == {
        "a.txt": "modify",
        "link": "modify",
        "new/deep/file": "delete",
        "run.sh": "modify",
        "sub/c": "add",
    }
    assert picture(root) != before
    result = kept.back(checkpoint)
    assert (kinds(result), skipped(result)) == (kinds(plan), {})
    assert picture(root) == before
    assert not (root / "new").exists()
    assert kinds(kept.plan(checkpoint)) == {}


def test_a_restore_saves_what_it_replaces(kept: Checkpoints, root: Path) -> None:
    put(root, {"a.txt": "one\n"})
    first = kept.keep()
    put(root, {"a.txt": "hours of work\n", "b.txt": "more\n"})
    after = picture(root)
    kept.back(first)
    replaced = f"ckpt_{kept.count}"
    assert picture(root) != after
    kept.back(replaced)
    assert picture(root) == after


def test_files_and_folders_may_take_each_others_place(kept: Checkpoints, root: Path) -> None:
    put(root, {"a": "file\n", "b/c": "in a folder\n", "d/e/f": "deep\n"})
    (root / "g").symlink_to("b")
    before, first = picture(root), kept.keep()
    (root / "a").unlink()
    put(root, {"a/inner": "now a folder\n"})
    shutil.rmtree(root / "b")
    put(root, {"b": "now a file\n"})
    shutil.rmtree(root / "d")
    (root / "d").symlink_to("a")
    (root / "g").unlink()
    put(root, {"g/h": "no link any more\n"})
    swapped, second = picture(root), kept.keep()
    kept.back(first)
    assert picture(root) == before
    kept.back(second)
    assert picture(root) == swapped


def test_files_with_any_name_are_saved(kept: Checkpoints, root: Path) -> None:
    names = [
        b"new\nline",
        b"tab\t",
        b"quote\"'",
        b"back\\slash",
        b"not utf-8 \xff\xfe",
        b" space ",
        b"-n",
        b":(top)x",
        b"*",
        b"[a]",
        b"!x",
        b"#y",
        "über/🦆".encode(),
        b"aux",
        b"git~1",
        b"Case",
        b"case",
        b"x" * 250,
    ]
    for name in names:
        place = os.path.join(os.fsencode(root), name)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "wb") as file:
            file.write(name)
    before, checkpoint = picture(root), kept.keep()
    assert len(before) == len(names)
    assert kept.unsaved() == {}
    for path in list(root.iterdir()):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    kept.back(checkpoint)
    assert picture(root) == before


def test_a_file_that_changed_since_its_checkpoint_is_not_overwritten(
    kept: Checkpoints, root: Path
) -> None:
    put(root, {"a": "1", "b": "1"})
    checkpoint = kept.keep()
    put(root, {"a": "2", "b": "2", "c": "2"})
    plan = kept.plan(checkpoint)
    put(root, {"a": "saved in this moment", "c": "likewise"})
    (result,) = kept.checkpoints.restore([plan], checkpoint, Deadline(30))
    assert skipped(result) == {"a": "it changed meanwhile", "c": "it changed meanwhile"}
    assert (root / "a").read_text() == "saved in this moment"
    assert (root / "b").read_text() == "1"


def test_a_file_that_is_saved_while_its_old_content_is_written_is_not_overwritten(
    kept: Checkpoints, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, {"a": "1", "b": "1"})
    checkpoint = kept.keep()
    put(root, {"a": "2", "b": "2"})
    write = restore._write

    def write_slowly(*what: Any, **how: Any) -> None:
        write(*what, **how)
        put(root, {"a": "saved"})

    monkeypatch.setattr(restore, "_write", write_slowly)
    result = kept.back(checkpoint)
    assert (root / "a").read_text() == "saved"
    assert kinds(result) == {"b": "modify"}
    assert skipped(result) == {"a": "it changed meanwhile"}
    assert sorted(os.listdir(root)) == ["a", "b"]


def test_a_symlink_put_in_a_folders_place_leads_no_write_outside(
    kept: Checkpoints, root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    put(outside, {"f": "not yours", "other": "x"})
    put(root, {"sub/f": "1"})
    checkpoint = kept.keep()
    put(root, {"sub/f": "2"})
    plan = kept.plan(checkpoint)
    shutil.rmtree(root / "sub")
    (root / "sub").symlink_to(outside)
    (result,) = kept.checkpoints.restore([plan], checkpoint, Deadline(30))
    assert skipped(result) == {"sub/f": "something else is in the place of its folder"}
    assert picture(outside) == {b"f": ("file", b"not yours"), b"other": ("file", b"x")}
    # Where the link is part of what was kept it gives way, and what it leads to stays.
    kept.back(checkpoint)
    assert (root / "sub/f").read_text() == "1"
    assert not (root / "sub").is_symlink()
    assert (outside / "f").read_text() == "not yours"


def test_permissions_stay_and_a_private_file_comes_back_private(
    kept: Checkpoints, root: Path
) -> None:
    put(root, {"key": "secret", "page": "1", "gone": "1", "read_only": "1"})
    for name, mode in (("key", 0o600), ("page", 0o640), ("gone", 0o644), ("read_only", 0o444)):
        (root / name).chmod(mode)
    checkpoint = kept.keep()
    kept.keep()
    (root / "key").unlink()
    (root / "gone").unlink()
    (root / "read_only").chmod(0o644)
    put(root, {"page": "2", "read_only": "2"})
    (root / "read_only").chmod(0o444)
    result = kept.back(checkpoint)
    assert skipped(result) == {}
    assert oct((root / "key").stat().st_mode & 0o777) == "0o600"
    assert oct((root / "page").stat().st_mode & 0o777) == "0o640"
    assert oct((root / "read_only").stat().st_mode & 0o777) == "0o444"
    assert (root / "read_only").read_text() == "1"


def test_a_file_that_was_made_private_without_being_written_comes_back_private(
    kept: Checkpoints, root: Path
) -> None:
    put(root, {"key": "1", "open": "1"})
    (root / "open").chmod(0o600)
    kept.keep()
    (root / "key").chmod(0o600)
    (root / "open").chmod(0o644)
    name = kept.keep()
    (root / "key").unlink()
    (root / "open").unlink()
    kept.back(name)
    assert (root / "key").stat().st_mode & 0o777 == 0o600
    assert (root / "open").stat().st_mode & 0o077


def test_empty_folders_are_left_as_they_are(kept: Checkpoints, root: Path) -> None:
    (root / "empty/inner").mkdir(parents=True)
    put(root, {"a": "1"})
    checkpoint = kept.keep()
    put(root, {"a": "2", "empty/inner/file": "new"})
    (root / "another").mkdir()
    kept.back(checkpoint)
    assert (root / "another").is_dir()
    assert (root / "a").read_text() == "1"
    assert not (root / "empty/inner/file").exists()


def test_a_folder_is_emptied_and_filled_again_as_it_was(kept: Checkpoints, root: Path) -> None:
    empty = kept.keep()
    put(root, {"a/b": "1"})
    full = kept.keep()
    kept.back(empty)
    assert picture(root) == {}
    kept.back(full)
    assert picture(root) == {b"a/b": ("file", b"1")}


def test_other_users_cannot_read_checkpoints(kept: Checkpoints, root: Path) -> None:
    put(root, {".env": "KEY=1", "sub/a": "1"})
    kept.keep()
    kept.back(kept.keep())
    assert oct(kept.folder.stat().st_mode & 0o777) == "0o700"
    (store,) = kept.folder.glob("*.git")
    assert oct(store.stat().st_mode & 0o777) == "0o700"


def test_a_deadline_is_held_and_what_comes_after_it_works(kept: Checkpoints, root: Path) -> None:
    put(root, {f"f{number}": "x" * number for number in range(200)})
    with pytest.raises(CheckpointTooSlowError):
        kept.keep(seconds=0.0001)
    with pytest.raises(CheckpointTooSlowError, match="less than an hour ago"):
        kept.keep(seconds=0.0001)  # nobody waits for it again at once
    given_up = Deadline(60)
    given_up.cancel()
    with pytest.raises(CheckpointTooSlowError, match="given up"):
        kept.checkpoints.save("ckpt_x", given_up)
    checkpoint = kept.keep()
    put(root, {"f7": "other"})
    assert kinds(kept.plan(checkpoint)) == {"f7": "modify"}


def test_a_checkpoint_that_is_no_longer_saved_is_named(kept: Checkpoints, root: Path) -> None:
    put(root, {"a": "1"})
    kept.keep()
    with pytest.raises(WorkspaceError, match="no longer saved"):
        kept.plan("ckpt_unknown")
    assert not kept.checkpoints.has("ckpt_unknown")


def test_without_git_and_dulwich_the_error_says_what_to_install(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(WorkspaceError, match="install it"):
        Checkpoints(tmp_path, root).keep()


def test_checkpoints_made_without_git_can_be_restored_with_git(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, {"a": "1", "sub/b": "1"})
    before = picture(root)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "which", lambda name, path: None)
        checkpoint = Checkpoints(tmp_path, root).keep()
    put(root, {"a": "2", "c": "2"})
    kept = Checkpoints(tmp_path, root)
    kept.count = 10
    kept.back(checkpoint)
    assert picture(root) == before


def test_a_file_takes_the_place_of_folders_with_nothing_in_them(tmp_path: Path) -> None:
    root = tmp_path / "project"
    put(root, {"b": "one"})
    kept = Checkpoints(tmp_path, root)
    checkpoint = kept.keep()
    (root / "b").unlink()
    (root / "b" / "c" / "d").mkdir(parents=True)
    kept.keep()
    assert skipped(kept.back(checkpoint)) == {}
    assert (root / "b").read_text() == "one"


NAMES = st.sampled_from(["a", "b", "a/c", "a/d", "b/c/d", "B"])
STEP = st.tuples(NAMES, st.sampled_from(["one", "two", "", None, "link"]))


@pytest.mark.parametrize("without", [False, True])
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(states=st.lists(st.lists(STEP, max_size=6), min_size=2, max_size=4), data=st.data())
def test_any_state_comes_back_from_any_other(
    states: list[list[tuple[str, str | None]]],
    data: Any,
    without: bool,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if without:
        monkeypatch.setattr(shutil, "which", lambda name, path: None)
    base = tmp_path_factory.mktemp("any")
    root = base / "project"
    root.mkdir()
    kept = Checkpoints(base, root)
    pictures = {}
    for steps in states:
        for name, content in steps:
            _apply(root, name, content)
        pictures[kept.keep()] = picture(root)
    for checkpoint in data.draw(st.permutations(list(pictures))):
        assert skipped(kept.back(checkpoint)) == {}
        assert picture(root) == pictures[checkpoint]


def _apply(root: Path, name: str, content: str | None) -> None:
    path = root / name
    for parent in reversed(path.relative_to(root).parents):
        place = root / parent
        if place.is_symlink() or place.is_file():
            place.unlink()
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    if content == "link":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to("anywhere")
    elif content is not None:
        put(root, {name: content})
