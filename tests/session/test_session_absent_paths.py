"""Whether any of many paths exists, also when one appears where nothing was before."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from acp_agent.session.extension_files import AbsentPaths

LATER = 10_000_000_000  # nanoseconds; the folders' times can be relied on


class Folder:
    """A folder with paths that are asked for twice: at first, and after something appeared."""

    def __init__(self, top: Path, later: int = LATER) -> None:
        self.top = top
        self.absent = AbsentPaths(lambda: time.time_ns() + later)
        names = ("a/b/c", "a/b/d", "a/settings.json", "top.json", "link/x", "file/x")
        self.paths = tuple(str(top / name) for name in names)

    def any_exists(self) -> bool:
        return self.absent.any_exists(self.paths)


@pytest.fixture(params=["after a while", "at once"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    folder = Folder(tmp_path, LATER if request.param == "after a while" else 0)
    (tmp_path / "a").mkdir()
    (tmp_path / "file").touch()
    assert not folder.any_exists()
    assert not folder.any_exists()
    return folder


@pytest.mark.parametrize("name", ["a/b/c", "a/settings.json", "top.json", "link/x"])
def test_a_path_that_appears_is_found(folder: Folder, name: str) -> None:
    path = folder.top / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    assert folder.any_exists()
    path.unlink()
    assert not folder.any_exists()


def test_a_replaced_folder_is_searched(folder: Folder) -> None:
    other = folder.top / "other"
    other.mkdir()
    (other / "settings.json").touch()
    (folder.top / "a").rmdir()
    other.rename(folder.top / "a")
    assert folder.any_exists()


def test_a_file_that_becomes_a_folder_is_searched(folder: Folder) -> None:
    (folder.top / "file").unlink()
    (folder.top / "file").mkdir()
    (folder.top / "file" / "x").touch()
    assert folder.any_exists()


def test_a_broken_link_exists(folder: Folder) -> None:
    (folder.top / "top.json").symlink_to("nowhere")
    assert folder.any_exists()


def test_a_path_that_appears_behind_a_link_is_found(folder: Folder, tmp_path: Path) -> None:
    target = tmp_path / "target"
    (folder.top / "link").symlink_to(target)
    assert not folder.any_exists()
    assert not folder.any_exists()
    target.mkdir()  # nothing changes in the folder with the link
    (target / "x").touch()
    assert folder.any_exists()


def test_a_change_that_leaves_a_coarse_time_as_it_was_is_noticed(tmp_path: Path) -> None:
    now = time.time_ns()
    folder = Folder(tmp_path, later=0)
    stamps = os.stat(tmp_path)
    assert abs(now - stamps.st_ctime_ns) < LATER
    assert not folder.any_exists()
    (tmp_path / "top.json").touch()  # maybe within the same tick
    assert folder.any_exists()


def test_few_folders_are_checked_while_nothing_changes(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.absent = AbsentPaths(lambda: time.time_ns() + LATER)
    assert not folder.any_exists()
    asked: list[str] = []
    real = os.stat

    def stat(path: str) -> os.stat_result:
        asked.append(path)
        return real(path)

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr(os.path, "lexists", lambda path: pytest.fail(f"asked for {path}"))
    assert not folder.any_exists()
    assert sorted(asked) == sorted(str(folder.top / name) for name in ("", "a", "file"))
