from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.errors import OutsideWorkspaceError, WorkspaceError
from acp_agent.workspace.files import WorkspaceFiles


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder.resolve()


def test_a_relative_path_starts_at_the_working_folder(root: Path) -> None:
    assert WorkspaceFiles(root).resolve("src/../a.py") == root / "a.py"


def test_an_additional_folder_may_be_used_by_its_absolute_path(root: Path, tmp_path: Path) -> None:
    additional = tmp_path / "other"
    additional.mkdir()
    files = WorkspaceFiles(root, [additional])
    assert files.resolve(str(additional / "b.py")) == additional.resolve() / "b.py"
    assert files.roots == (root, additional.resolve())


@pytest.mark.parametrize(
    "path", ["..", "../project2/a", "/etc/passwd", "a/../../x", "~/x", "/dev/zero"]
)
def test_a_path_that_leads_out_is_refused(root: Path, path: str) -> None:
    with pytest.raises(OutsideWorkspaceError, match="outside the session's folders"):
        WorkspaceFiles(root).resolve(path)


def test_a_folder_whose_name_only_begins_like_the_root_is_outside(root: Path) -> None:
    twin = root.parent / "project-secret"
    twin.mkdir()
    with pytest.raises(OutsideWorkspaceError):
        WorkspaceFiles(root).resolve(str(twin / "a"))


def test_the_home_folder_is_usable_by_its_short_name_when_it_is_the_root(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(root))
    assert WorkspaceFiles(root).resolve("~/a.py") == root / "a.py"


def test_a_symlink_to_a_file_outside_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    (root / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(OutsideWorkspaceError):
        WorkspaceFiles(root).resolve("link")


def test_a_new_file_below_a_symlinked_folder_outside_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (root / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutsideWorkspaceError):
        WorkspaceFiles(root).resolve("link/deep/new.txt")


def test_a_dangling_symlink_to_the_outside_is_refused(root: Path, tmp_path: Path) -> None:
    (root / "link").symlink_to(tmp_path / "not-there-yet")
    with pytest.raises(OutsideWorkspaceError):
        WorkspaceFiles(root).resolve("link")


def test_a_symlink_inside_is_followed_to_its_target(root: Path) -> None:
    (root / "real").mkdir()
    (root / "link").symlink_to("real")
    assert WorkspaceFiles(root).resolve("link/a.py") == root / "real" / "a.py"


async def test_a_symlink_that_points_at_itself_is_an_error_not_a_hang(root: Path) -> None:
    (root / "loop").symlink_to("loop")
    files = WorkspaceFiles(root)
    with pytest.raises(WorkspaceError):
        await files.read_text(files.resolve("loop"))


@pytest.mark.parametrize(
    ("path", "message"),
    [("", "empty"), ("  ", "empty"), ("a\0b", "NUL"), ("a\ud800b", "broken character")],
)
def test_invalid_paths_are_refused_with_a_reason(root: Path, path: str, message: str) -> None:
    with pytest.raises(WorkspaceError, match=message):
        WorkspaceFiles(root).resolve(path)


async def test_a_name_too_long_for_the_system_is_refused_with_a_reason(root: Path) -> None:
    files = WorkspaceFiles(root)
    with pytest.raises(WorkspaceError, match="too long"):
        await files.read_text(files.resolve("x" * 5000))


def test_a_working_folder_that_vanished_is_named(root: Path) -> None:
    files = WorkspaceFiles(root)
    root.rmdir()
    with pytest.raises(WorkspaceError, match=r"working folder .*project is gone; restore it"):
        files.resolve("a.py")


def test_a_working_folder_behind_a_symlink_contains_its_files(root: Path, tmp_path: Path) -> None:
    link = tmp_path / "by-link"
    link.symlink_to(root)
    files = WorkspaceFiles(link)
    assert files.resolve(str(link / "a.py")) == root / "a.py"
    assert files.editor_path(root / "a.py") == link / "a.py"


def test_the_folder_of_outputs_is_readable_and_not_writable(root: Path, tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    files = WorkspaceFiles(root, readable=[outputs])
    path = str(outputs / "call.txt")
    assert files.resolve(path, to_read=True) == outputs.resolve() / "call.txt"
    with pytest.raises(OutsideWorkspaceError):
        files.resolve(path)


async def test_writing_outside_is_refused_even_with_an_unresolved_path(
    root: Path, tmp_path: Path
) -> None:
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    files = WorkspaceFiles(root, readable=[outputs])
    for path in (tmp_path / "x", outputs / "x"):
        with pytest.raises(OutsideWorkspaceError):
            await files.write_text(path, "no")
        assert not path.exists()
    with pytest.raises(OutsideWorkspaceError):
        await files.read_text(tmp_path / "x")
