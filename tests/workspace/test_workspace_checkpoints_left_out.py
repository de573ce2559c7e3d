"""What checkpoints leave out and a restore leaves alone: ignored, huge, excluded files, our own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from acp_agent.errors import CheckpointTooSlowError
from acp_agent.workspace.checkpoints import git_folder
from acp_agent.workspace.checkpoints.base import Rules
from tests.support.ordinary_user import shared_folder, without_root
from tests.workspace.checkpoint_folder import (
    Checkpoints,
    change_kinds,
    folder_contents,
    git,
    skip_reasons,
    write_files,
)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no such files")
def test_special_files_and_names_of_git_are_left_unchanged(
    history: Checkpoints, root: Path
) -> None:
    write_files(root, {"a": "1", ".GIT/config": "not a repository"})
    os.mkfifo(root / "pipe")
    (root / ".gitmodules").symlink_to("a")
    checkpoint = history.save()
    write_files(root, {"a": "2"})
    history.restore(checkpoint)
    assert (root / "pipe").exists()
    assert (root / ".GIT/config").read_text() == "not a repository"
    assert (root / ".gitmodules").is_symlink()
    assert (root / "a").read_text() == "1"


def test_ignored_files_are_neither_saved_nor_changed(history: Checkpoints, root: Path) -> None:
    write_files(
        root, {".gitignore": "*.log\nbuild/\n/.env\n", "a": "1", "x.log": "log", ".env": "KEY=1"}
    )
    write_files(
        root, {"build/out": "binary", "sub/.gitignore": "secret\n!keep.log\n", "sub/secret": "s"}
    )
    write_files(root, {"sub/keep.log": "kept"})
    checkpoint = history.save()
    write_files(
        root, {"a": "2", "x.log": "more", ".env": "KEY=2", "build/out": "other", "sub/secret": "t"}
    )
    (root / "sub/keep.log").unlink()
    result = history.restore(checkpoint)
    assert change_kinds(result) == {"a": "modify", "sub/keep.log": "add"}
    assert (root / "x.log").read_text() == "more"
    assert (root / ".env").read_text() == "KEY=2"
    assert history.skipped_files(checkpoint) == dict.fromkeys(
        [".env", "build/", "x.log", "sub/secret"], "ignored"
    )


def test_a_pattern_for_folders_ignores_no_file_of_that_name(
    history: Checkpoints, root: Path
) -> None:
    write_files(root, {".gitignore": "build/\n", "build": "a file", "sub/build/out": "binary"})
    checkpoint = history.save()
    write_files(root, {"build": "changed", "sub/build/out": "other"})
    assert change_kinds(history.restore(checkpoint)) == {"build": "modify"}
    assert (root / "build").read_text() == "a file"
    assert (root / "sub/build/out").read_text() == "other"


def test_a_file_that_was_ignored_then_is_not_deleted(history: Checkpoints, root: Path) -> None:
    write_files(root, {".gitignore": "local/\n", "local/notes": "mine", "a": "1"})
    checkpoint = history.save()
    write_files(root, {".gitignore": "", "b": "by the agent"})
    result = history.restore(checkpoint)
    assert (root / "local/notes").read_text() == "mine"
    assert change_kinds(result) == {".gitignore": "modify", "b": "delete"}
    assert skip_reasons(result) == {"local/notes": "it was left out then"}


def test_a_file_that_is_ignored_now_is_not_overwritten(history: Checkpoints, root: Path) -> None:
    write_files(root, {"config": "old", "a": "1"})
    checkpoint = history.save()
    write_files(root, {".gitignore": "config\n", "config": "nowhere else", "a": "2"})
    result = history.restore(checkpoint)
    assert (root / "config").read_text() == "nowhere else"
    assert skip_reasons(result) == {"config": "it is not saved as it is now"}
    assert (root / "a").read_text() == "1"


def test_huge_files_are_skipped_reported_and_unchanged(tmp_path: Path, root: Path) -> None:
    history = Checkpoints(tmp_path, root, Rules(max_file_bytes=1000))
    write_files(
        root, {"big": b"x" * 1001, "grows": b"small", "shrinks": b"y" * 5000, "limit": b"z" * 1000}
    )
    first = history.save()
    assert history.unsaved() == {"big": "size", "shrinks": "size"}
    write_files(
        root, {"big": b"changed" * 1000, "grows": b"w" * 5000, "shrinks": b"s", "limit": b""}
    )
    before = folder_contents(root)
    result = history.restore(first)
    assert change_kinds(result) == {"limit": "modify"}
    assert skip_reasons(result) == {
        "grows": "it cannot be saved as it is now",
        "shrinks": "the checkpoint does not have it as it was then",
    }
    assert folder_contents(root) == before | {b"limit": ("file", b"z" * 1000)}


def test_the_data_folder_inside_the_project_is_not_saved(tmp_path: Path) -> None:
    history = Checkpoints(tmp_path, tmp_path)  # whose data is below it
    write_files(tmp_path, {"a": "1"})
    checkpoint = history.save()
    history.save()
    write_files(tmp_path, {"a": "2"})
    assert change_kinds(history.plan(checkpoint)) == {"a": "modify"}
    history.restore(checkpoint)
    assert history.checkpoints.has(checkpoint)


def test_files_that_the_user_excludes_are_no_longer_saved(tmp_path: Path, root: Path) -> None:
    write_files(root, {".env": "KEY=1", "sub/.env": "KEY=2", "a": "1", "private/x": "x"})
    Checkpoints(tmp_path, root).save()
    history = Checkpoints(tmp_path, root, Rules(exclude=(".env", "/private/")))
    history.count = 10
    checkpoint = history.save()
    write_files(root, {".env": "other", "a": "2", "private/x": "y"})
    assert change_kinds(history.restore(checkpoint)) == {"a": "modify"}


@pytest.mark.parametrize("said_in", ["settings", "info/exclude", "above"])
def test_a_file_excluded_by_rules_outside_the_checkpoint_is_not_deleted(
    tmp_path: Path, said_in: str
) -> None:
    repository = tmp_path / "repository"
    root = repository / "part"
    write_files(root, {".env": "KEY=1", ".gitignore": "*.log\n", "a": "1"})
    git(repository, "init", "-q")
    file = repository / {"above": ".gitignore"}.get(said_in, ".git/info/exclude")
    file.write_text("" if said_in == "settings" else "*.env\n")
    rules = Rules(exclude=(".env",) if said_in == "settings" else ())
    checkpoint = Checkpoints(tmp_path, root, rules).save()
    file.write_text("")
    write_files(root, {"a": "2", "b": "by the agent"})
    later = Checkpoints(tmp_path, root)  # a new agent, which keeps it from now on
    later.count = 10
    result = later.restore(checkpoint)
    assert (root / ".env").read_text() == "KEY=1"
    assert change_kinds(result) == {"a": "modify", "b": "delete"}
    assert skip_reasons(result) == {".env": "it was left out then"}


def test_files_in_a_repository_beyond_the_limit_are_not_deleted(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_folder, "_NESTED_LIMIT", 2)
    for name in ("one", "two", "three"):
        write_files(root, {f"{name}/work": name})
        git(root / name, "init", "-q")
    write_files(root, {"a": "1"})
    history = Checkpoints(tmp_path, root)
    checkpoint = history.save()
    ((unsaved, why),) = history.unsaved().items()
    assert why == "folders"
    write_files(root, {"a": "2"})  # with the next checkpoint there is room for the third repository
    result = history.restore(checkpoint)
    assert change_kinds(result) == {"a": "modify"}
    assert list(skip_reasons(result)) == [f"{unsaved}work"]
    assert (root / unsaved / "work").exists()


@pytest.mark.parametrize("closed", ["closed", "closed\n, to"])
def test_a_file_that_was_unreadable_at_the_checkpoint_is_not_deleted(closed: str) -> None:
    with shared_folder() as base, without_root():
        root = base / "project"
        write_files(root, {"known/x": "1", "a": "1"})
        history = Checkpoints(base, root)
        history.save()
        write_files(root, {f"{closed}/work": "nowhere else", "a": "2"})
        (root / closed).chmod(0)
        (root / "known").chmod(0)
        checkpoint = history.save()
        assert {f"{closed}/"} < set(history.unsaved()) <= {f"{closed}/", "known/", "known/x"}
        assert set(history.unsaved().values()) == {"unreadable"}
        (root / closed).chmod(0o700)
        (root / "known").chmod(0o700)
        write_files(root, {"a": "3"})
        result = history.restore(checkpoint)
        assert change_kinds(result) == {"a": "modify"}
        assert set(skip_reasons(result)) == {f"{closed}/work", "known/x"}
        assert (root / f"{closed}/work").exists()
        assert (root / "known/x").exists()


def test_a_session_in_a_subfolder_saves_it_by_the_repositorys_rules(
    tmp_path: Path,
) -> None:
    repository = tmp_path / "repository"
    root = repository / "packages/[odd] name"
    write_files(repository, {".gitignore": "*.log\n", "outside": "1"})
    write_files(root, {"a": "1", "x.log": "log"})
    git(repository, "init", "-q")
    history = Checkpoints(tmp_path, root, Rules(exclude=("/top", "any")))
    write_files(root, {"top": "1", "sub/top": "1", "sub/any": "1"})
    checkpoint = history.save()
    write_files(root, {"a": "2", "x.log": "more", "top": "2", "sub/top": "2", "sub/any": "2"})
    write_files(repository, {"outside": "2"})
    assert change_kinds(history.restore(checkpoint)) == {"a": "modify", "sub/top": "modify"}
    assert (repository / "outside").read_text() == "2"
    assert set(history.skipped_files(checkpoint)) == {"x.log", "top", "sub/any"}
    git(root, "init", "-q")  # a repository of its own, from now on with its own rules
    other = Checkpoints(tmp_path, root)
    other.count = 10
    plan = other.plan(checkpoint)
    assert change_kinds(plan) == {}
    assert skip_reasons(plan) == dict.fromkeys(["top", "sub/any", "x.log"], "it was left out then")


def test_a_folder_that_the_outer_repository_ignores_is_saved(tmp_path: Path) -> None:
    home = tmp_path / "user"
    root = home / "project"
    write_files(home, {".gitignore": "*\n"})
    write_files(root, {"a": "1"})
    git(home, "init", "-q")
    history = Checkpoints(tmp_path, root)
    checkpoint = history.save()
    write_files(root, {"a": "2"})
    assert change_kinds(history.restore(checkpoint)) == {"a": "modify"}


def test_a_folder_with_too_many_files_is_not_saved(tmp_path: Path, root: Path) -> None:
    write_files(root, {f"f{number}": "" for number in range(11)})
    with pytest.raises(CheckpointTooSlowError, match="more than 10 files"):
        Checkpoints(tmp_path, root, Rules(max_files=10)).save()
    Checkpoints(tmp_path, root, Rules(max_files=11)).save()
