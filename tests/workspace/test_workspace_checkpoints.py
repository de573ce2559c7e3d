"""A folder's files are kept as they were and come back as they were, by git and without it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from acp_agent.errors import CheckpointTooSlowError, WorkspaceError
from acp_agent.workspace.checkpoints import restore
from acp_agent.workspace.checkpoints.base import Deadline
from tests.workspace.checkpoint_folder import (
    Checkpoints,
    change_kinds,
    folder_contents,
    git,
    skip_reasons,
    write_files,
)


@pytest.mark.parametrize("around", [False, True])
def test_a_folder_that_was_deleted_as_a_whole_comes_back_and_that_can_be_undone(
    history: Checkpoints, root: Path, around: bool
) -> None:
    if around:
        git(root.parent, "init", "-q")
    write_files(root, {"a.txt": "one\n", "sub/b.txt": "two\n", ".gitignore": "*.log\n"})
    before = folder_contents(root)
    checkpoint = history.save()
    shutil.rmtree(root)
    gone = history.save()
    assert history.skipped_files(gone) == {}
    assert set(change_kinds(history.plan(checkpoint))) == {"a.txt", "sub/b.txt", ".gitignore"}
    assert not root.exists(), "to look changes nothing"
    assert skip_reasons(history.restore(checkpoint)) == {}
    assert folder_contents(root) == before
    history.restore(gone)
    assert folder_contents(root) == {}


def test_files_come_back_as_they_were(history: Checkpoints, root: Path) -> None:
    write_files(
        root, {"a.txt": "one\n", "sub/b.txt": b"\x00\xff\r\n", "sub/c": "", "run.sh": "#!/bin/sh\n"}
    )
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("sub/b.txt")
    (root / "dangling").symlink_to("/nowhere/at/all")
    before = folder_contents(root)
    checkpoint = history.save()
    write_files(root, {"a.txt": "two\n", "new/deep/file": "new\n"})
    (root / "sub/c").unlink()
    (root / "run.sh").chmod(0o644)
    (root / "link").unlink()
    (root / "link").symlink_to("a.txt")
    plan = history.plan(checkpoint)
    assert change_kinds(plan) == {
        "a.txt": "modify",
        "link": "modify",
        "new/deep/file": "delete",
        "run.sh": "modify",
        "sub/c": "add",
    }
    assert folder_contents(root) != before
    result = history.restore(checkpoint)
    assert (change_kinds(result), skip_reasons(result)) == (change_kinds(plan), {})
    assert folder_contents(root) == before
    assert not (root / "new").exists()
    assert change_kinds(history.plan(checkpoint)) == {}


def test_a_restore_saves_what_it_replaces(history: Checkpoints, root: Path) -> None:
    write_files(root, {"a.txt": "one\n"})
    first = history.save()
    write_files(root, {"a.txt": "hours of work\n", "b.txt": "more\n"})
    after = folder_contents(root)
    history.restore(first)
    replaced = f"ckpt_{history.count}"
    assert folder_contents(root) != after
    history.restore(replaced)
    assert folder_contents(root) == after


def test_files_and_folders_may_take_each_others_place(history: Checkpoints, root: Path) -> None:
    write_files(root, {"a": "file\n", "b/c": "in a folder\n", "d/e/f": "deep\n"})
    (root / "g").symlink_to("b")
    before, first = folder_contents(root), history.save()
    (root / "a").unlink()
    write_files(root, {"a/inner": "now a folder\n"})
    shutil.rmtree(root / "b")
    write_files(root, {"b": "now a file\n"})
    shutil.rmtree(root / "d")
    (root / "d").symlink_to("a")
    (root / "g").unlink()
    write_files(root, {"g/h": "no link any more\n"})
    swapped, second = folder_contents(root), history.save()
    history.restore(first)
    assert folder_contents(root) == before
    history.restore(second)
    assert folder_contents(root) == swapped


def test_files_with_any_name_are_saved(history: Checkpoints, root: Path) -> None:
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
    before, checkpoint = folder_contents(root), history.save()
    assert len(before) == len(names)
    assert history.unsaved() == {}
    for path in list(root.iterdir()):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    history.restore(checkpoint)
    assert folder_contents(root) == before


def test_a_file_that_changed_since_its_checkpoint_is_not_overwritten(
    history: Checkpoints, root: Path
) -> None:
    write_files(root, {"a": "1", "b": "1"})
    checkpoint = history.save()
    write_files(root, {"a": "2", "b": "2", "c": "2"})
    plan = history.plan(checkpoint)
    write_files(root, {"a": "saved in this moment", "c": "likewise"})
    (result,) = history.checkpoints.restore([plan], checkpoint, Deadline(30))
    assert skip_reasons(result) == {"a": "it changed meanwhile", "c": "it changed meanwhile"}
    assert (root / "a").read_text() == "saved in this moment"
    assert (root / "b").read_text() == "1"


def test_a_file_that_is_saved_while_its_old_content_is_written_is_not_overwritten(
    history: Checkpoints, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(root, {"a": "1", "b": "1"})
    checkpoint = history.save()
    write_files(root, {"a": "2", "b": "2"})
    write = restore._write

    def write_slowly(*what: Any, **how: Any) -> None:
        write(*what, **how)
        write_files(root, {"a": "saved"})

    monkeypatch.setattr(restore, "_write", write_slowly)
    result = history.restore(checkpoint)
    assert (root / "a").read_text() == "saved"
    assert change_kinds(result) == {"b": "modify"}
    assert skip_reasons(result) == {"a": "it changed meanwhile"}
    assert sorted(os.listdir(root)) == ["a", "b"]


def test_a_symlink_put_in_a_folders_place_leads_no_write_outside(
    history: Checkpoints, root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    write_files(outside, {"f": "not yours", "other": "x"})
    write_files(root, {"sub/f": "1"})
    checkpoint = history.save()
    write_files(root, {"sub/f": "2"})
    plan = history.plan(checkpoint)
    shutil.rmtree(root / "sub")
    (root / "sub").symlink_to(outside)
    (result,) = history.checkpoints.restore([plan], checkpoint, Deadline(30))
    assert skip_reasons(result) == {"sub/f": "something else is in the place of its folder"}
    assert folder_contents(outside) == {b"f": ("file", b"not yours"), b"other": ("file", b"x")}
    # Where the link is part of what was kept it gives way, and what it leads to stays.
    history.restore(checkpoint)
    assert (root / "sub/f").read_text() == "1"
    assert not (root / "sub").is_symlink()
    assert (outside / "f").read_text() == "not yours"


def test_permissions_stay_and_a_private_file_comes_back_private(
    history: Checkpoints, root: Path
) -> None:
    write_files(root, {"key": "secret", "page": "1", "gone": "1", "read_only": "1"})
    for name, mode in (("key", 0o600), ("page", 0o640), ("gone", 0o644), ("read_only", 0o444)):
        (root / name).chmod(mode)
    checkpoint = history.save()
    history.save()
    (root / "key").unlink()
    (root / "gone").unlink()
    (root / "read_only").chmod(0o644)
    write_files(root, {"page": "2", "read_only": "2"})
    (root / "read_only").chmod(0o444)
    result = history.restore(checkpoint)
    assert skip_reasons(result) == {}
    assert oct((root / "key").stat().st_mode & 0o777) == "0o600"
    assert oct((root / "page").stat().st_mode & 0o777) == "0o640"
    assert oct((root / "read_only").stat().st_mode & 0o777) == "0o444"
    assert (root / "read_only").read_text() == "1"


def test_a_file_that_was_made_private_without_being_written_comes_back_private(
    history: Checkpoints, root: Path
) -> None:
    write_files(root, {"key": "1", "open": "1"})
    (root / "open").chmod(0o600)
    history.save()
    (root / "key").chmod(0o600)
    (root / "open").chmod(0o644)
    name = history.save()
    (root / "key").unlink()
    (root / "open").unlink()
    history.restore(name)
    assert (root / "key").stat().st_mode & 0o777 == 0o600
    assert (root / "open").stat().st_mode & 0o077


def test_empty_folders_are_left_as_they_are(history: Checkpoints, root: Path) -> None:
    (root / "empty/inner").mkdir(parents=True)
    write_files(root, {"a": "1"})
    checkpoint = history.save()
    write_files(root, {"a": "2", "empty/inner/file": "new"})
    (root / "another").mkdir()
    history.restore(checkpoint)
    assert (root / "another").is_dir()
    assert (root / "a").read_text() == "1"
    assert not (root / "empty/inner/file").exists()


def test_a_folder_is_emptied_and_filled_again_as_it_was(history: Checkpoints, root: Path) -> None:
    empty = history.save()
    write_files(root, {"a/b": "1"})
    full = history.save()
    history.restore(empty)
    assert folder_contents(root) == {}
    history.restore(full)
    assert folder_contents(root) == {b"a/b": ("file", b"1")}


def test_other_users_cannot_read_checkpoints(history: Checkpoints, root: Path) -> None:
    write_files(root, {".env": "KEY=1", "sub/a": "1"})
    history.save()
    history.restore(history.save())
    assert oct(history.folder.stat().st_mode & 0o777) == "0o700"
    (store,) = history.folder.glob("*.git")
    assert oct(store.stat().st_mode & 0o777) == "0o700"


def test_a_deadline_is_held_and_what_comes_after_it_works(history: Checkpoints, root: Path) -> None:
    write_files(root, {f"f{number}": "x" * number for number in range(200)})
    with pytest.raises(CheckpointTooSlowError):
        history.save(seconds=0.0001)
    with pytest.raises(CheckpointTooSlowError, match="less than an hour ago"):
        history.save(seconds=0.0001)  # nobody waits for it again at once
    cancelled_deadline = Deadline(60)
    cancelled_deadline.cancel()
    with pytest.raises(CheckpointTooSlowError, match="given up"):
        history.checkpoints.save("ckpt_x", cancelled_deadline)
    checkpoint = history.save()
    write_files(root, {"f7": "other"})
    assert change_kinds(history.plan(checkpoint)) == {"f7": "modify"}


def test_a_missing_checkpoint_is_reported_by_name(history: Checkpoints, root: Path) -> None:
    write_files(root, {"a": "1"})
    history.save()
    with pytest.raises(WorkspaceError, match="no longer saved"):
        history.plan("ckpt_unknown")
    assert not history.checkpoints.has("ckpt_unknown")


def test_without_git_the_error_says_to_install_it(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path: None)
    with pytest.raises(WorkspaceError, match="install it"):
        Checkpoints(tmp_path, root).save()


def test_a_file_takes_the_place_of_folders_with_nothing_in_them(tmp_path: Path) -> None:
    root = tmp_path / "project"
    write_files(root, {"b": "one"})
    history = Checkpoints(tmp_path, root)
    checkpoint = history.save()
    (root / "b").unlink()
    (root / "b" / "c" / "d").mkdir(parents=True)
    history.save()
    assert skip_reasons(history.restore(checkpoint)) == {}
    assert (root / "b").read_text() == "one"


NAMES = st.sampled_from(["a", "b", "a/c", "a/d", "b/c/d", "B"])
STEP = st.tuples(NAMES, st.sampled_from(["one", "two", "", None, "link"]))


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(states=st.lists(st.lists(STEP, max_size=6), min_size=2, max_size=4), data=st.data())
def test_any_state_comes_back_from_any_other(
    states: list[list[tuple[str, str | None]]],
    data: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    base = tmp_path_factory.mktemp("any")
    root = base / "project"
    root.mkdir()
    history = Checkpoints(base, root)
    pictures = {}
    for steps in states:
        for name, content in steps:
            _apply(root, name, content)
        pictures[history.save()] = folder_contents(root)
    for checkpoint in data.draw(st.permutations(list(pictures))):
        assert skip_reasons(history.restore(checkpoint)) == {}
        assert folder_contents(root) == pictures[checkpoint]


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
        write_files(root, {name: content})
