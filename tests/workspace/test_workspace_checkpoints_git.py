"""The user's repositories are never touched, whatever their state, and have no say in ours."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from acp_agent.workspace.checkpoints.base import Deadline
from acp_agent.workspace.checkpoints.isolated_git import IsolatedGit
from tests.workspace.checkpoint_folder import (
    Checkpoints,
    change_kinds,
    folder_contents,
    git,
    skip_reasons,
    write_files,
)


def everything(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """All that is in a folder, to the last byte and time."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() and not path.is_symlink() else b"",
        )
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    return folder


def test_a_dirty_index_and_its_repository_stay_as_they_are(tmp_path: Path, root: Path) -> None:
    write_files(root, {"a": "1", "b": "1", "c": "1"})
    git(root, "add", "a", "b")
    git(root, "commit", "-qm", "One")
    write_files(root, {"a": "staged", "b": "not staged"})
    git(root, "add", "a")
    write_files(root, {"a": "staged and changed"})
    (root / ".git/index.lock").touch()  # the user's own git is at work
    status, before = git(root, "status", "--porcelain"), everything(root / ".git")
    history = Checkpoints(tmp_path, root)
    checkpoint = history.save()
    write_files(root, {"a": "agent", "new": "agent"})
    history.restore(checkpoint)
    assert everything(root / ".git") == before
    (root / ".git/index.lock").unlink()
    assert git(root, "status", "--porcelain") == status
    assert (root / "a").read_text() == "staged and changed"


def test_a_git_that_takes_its_time_gets_all_it_is_to_read(tmp_path: Path) -> None:
    slow = tmp_path / "slow-git"
    slow.write_text("#!/bin/sh\nsleep 0.3\nexec wc -c\n")
    slow.chmod(0o755)
    isolated = IsolatedGit(str(slow), tmp_path, os.fsencode(tmp_path), tmp_path / "index")
    names = b"src/some/file.py\0" * 50_000  # more than a pipe holds
    assert int(isolated.run("update-index", stdin_data=names, deadline=Deadline(10))) == len(names)


def test_a_repository_without_commits_is_saved(tmp_path: Path, root: Path) -> None:
    write_files(root, {"a": "1"})
    before = everything(root / ".git")
    history = Checkpoints(tmp_path, root)
    checkpoint = history.save()
    write_files(root, {"a": "2"})
    assert change_kinds(history.restore(checkpoint)) == {"a": "modify"}
    assert everything(root / ".git") == before


def test_repositories_in_the_folder_and_submodules_count_as_folders(
    tmp_path: Path, root: Path
) -> None:
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q")
    write_files(library, {"lib.c": "1", ".gitignore": "*.o\n"})
    git(library, "add", "-A")
    git(library, "commit", "-qm", "One")
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "vendor")
    nested = root / "tools/nested"
    write_files(nested, {"n": "1", "deeper/d": "1"})
    git(nested, "init", "-q")
    git(nested / "deeper", "init", "-q")
    write_files(root, {"vendor/x.o": "object"})
    history = Checkpoints(tmp_path, root)
    checkpoint, before = history.save(), folder_contents(root)
    own = everything(nested / ".git"), (root / "vendor/.git").read_text()
    write_files(root, {"vendor/lib.c": "2", "tools/nested/n": "2", "tools/nested/deeper/d": "2"})
    write_files(root, {"vendor/new.c": "2", "tools/nested/new": "2"})
    result = history.restore(checkpoint)
    assert change_kinds(result) == {
        "tools/nested/deeper/d": "modify",
        "tools/nested/n": "modify",
        "tools/nested/new": "delete",
        "vendor/lib.c": "modify",
        "vendor/new.c": "delete",
    }
    assert folder_contents(root) == before
    assert (everything(nested / ".git"), (root / "vendor/.git").read_text()) == own


def test_no_hook_filter_attribute_or_setting_of_the_users_has_a_say(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch '{ran}'\ncat\n")
    program.chmod(0o755)
    home = tmp_path / "user-home"
    settings = (
        f'[filter "evil"]\n\tclean = {program}\n\tsmudge = {program}\n\trequired = true\n'
        f"[core]\n\tautocrlf = true\n\thooksPath = {tmp_path}\n\tfsmonitor = {program}\n"
        "\texcludesFile = " + str(home / "ignored") + "\n"
    )
    write_files(home, {".gitconfig": settings, "ignored": "*\n", ".config/git/ignore": "*\n"})
    write_files(home, {".config/git/attributes": "* filter=evil\n"})
    for hook in ("pre-commit", "post-index-change", "post-checkout", "reference-transaction"):
        write_files(root, {f".git/hooks/{hook}": program.read_text()})
        (root / f".git/hooks/{hook}").chmod(0o755)
    (root / ".git/config").write_text((root / ".git/config").read_text() + settings)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(root / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(root / ".git/index"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.autocrlf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(program))
    before = everything(root / ".git")
    write_files(
        root,
        {
            ".gitattributes": "* filter=evil text eol=crlf ident working-tree-encoding=UTF-16\n",
            "unix": "a\nb\n",
            "dos": "a\r\nb\r\n$Id$\n",
            "mixed": b"a\r\nb\n\xff",
        },
    )
    history = Checkpoints(tmp_path, root)
    whole, checkpoint = folder_contents(root), history.save()
    for name in ("unix", "dos", "mixed", ".gitattributes"):
        (root / name).unlink()
    history.restore(checkpoint)
    assert folder_contents(root) == whole
    assert not ran.exists()
    assert everything(root / ".git") == before


def test_files_excluded_by_the_users_repository_are_not_saved(tmp_path: Path, root: Path) -> None:
    write_files(root, {".git/info/exclude": "# mine\n/local\n", "local": "1", "a": "1"})
    history = Checkpoints(tmp_path, root)
    checkpoint = history.save()
    write_files(root, {"local": "2", "a": "2"})
    assert change_kinds(history.restore(checkpoint)) == {"a": "modify"}


def test_an_index_as_new_as_its_files_is_rewritten_once(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Git reads a file each time whose times are not older, to the second, than those of its list.
    history = Checkpoints(tmp_path, root)
    write_files(root, {"large": b"1" * 2_000_000})
    ahead = time.time() + 3_600
    os.utime(root / "large", (ahead, ahead))
    history.save()
    (index,) = history.folder.glob("*.git/index")
    tree, first = history.last.tree, index.stat().st_ino
    written = index.stat().st_mtime_ns
    monkeypatch.setattr(time, "time_ns", lambda: written)
    history.save()
    assert index.stat().st_ino == first  # it would be as young as it is now
    monkeypatch.setattr(time, "time_ns", lambda: int(ahead) * 1_000_000_000)
    history.save()
    second = index.stat().st_ino
    assert second != first
    history.save()
    assert (index.stat().st_ino, history.last.tree) == (second, tree)


def test_a_repository_in_place_of_a_file_stays_unchanged(tmp_path: Path, root: Path) -> None:
    history = Checkpoints(tmp_path, root)
    write_files(root, {"a": "1"})
    name = history.save()
    (root / "a").unlink()
    (root / "a").mkdir()
    git(root / "a", "init", "-q")
    before = everything(root)
    assert skip_reasons(history.restore(name)) == {"a": "it is not saved as it is now"}
    assert everything(root) == before
