"""No path leads out of the project, however fast its folders and files become symlinks."""

from __future__ import annotations

import errno
import hashlib
from pathlib import Path

import pytest

from acp_agent.errors import WorkspaceError
from acp_agent.platform import nofollow
from acp_agent.workspace.checkpoints.base import Blob, Change, Deadline
from acp_agent.workspace.checkpoints.restore import Restorer
from acp_agent.workspace.files import WorkspaceFiles
from acp_agent.workspace.folder_listing import list_folder
from tests.workspace.swapping import swapping

ROUNDS = 300


@pytest.fixture(params=["openat2", "walk"], autouse=True)
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How paths are opened: by the one system call, or part by part where there is none."""
    if request.param == "walk":

        def absent(path: bytes, flags: int) -> int:
            raise OSError(errno.ENOSYS, "no such call")

        monkeypatch.setattr(nofollow, "_openat2", absent)
    return str(request.param)


@pytest.fixture
def outside(tmp_path: Path, root: Path) -> Path:
    """A folder that looks like the project's, and is none of its own."""
    folder = tmp_path / "outside"
    for parent in (folder, root / "folder"):
        parent.mkdir()
        (parent / "file").write_text("inside")
    (root / "file").write_text("inside")
    (folder / "file").write_text("secret")
    return folder


async def test_a_read_never_returns_files_outside(root: Path, outside: Path) -> None:
    files = WorkspaceFiles(root)
    content = []
    with swapping(root, outside):
        for _ in range(ROUNDS):
            for name in ("folder/file", "file"):
                try:
                    content.append((await files.read_text(files.resolve(name))).text)
                except WorkspaceError:
                    continue
    assert set(content) <= {"inside", ""}
    assert "inside" in content, "some reads found the file in its place"


async def test_a_write_never_changes_files_outside(root: Path, outside: Path) -> None:
    files = WorkspaceFiles(root)
    write_count = 0
    with swapping(root, outside):
        for number in range(ROUNDS // 3):
            for name in ("folder/file", "file", f"folder/new-{number}/file"):
                try:
                    await files.write_text(files.resolve(name), "inside")
                    write_count += 1
                except WorkspaceError:
                    continue
    assert write_count
    assert (outside / "file").read_text() == "secret"
    assert [entry.name for entry in outside.iterdir()] == ["file"]


async def test_a_listing_never_shows_files_outside(root: Path, outside: Path) -> None:
    (outside / "secret").write_text("x")
    names = set()
    with swapping(root, outside):
        for _ in range(60):
            try:
                listing = await list_folder(root, depth=2, limit=100)
            except WorkspaceError:
                continue
            names |= {entry.name for entry in listing.entries}
    assert "file" in names
    assert "secret" not in names


def test_a_restore_never_changes_files_outside(root: Path, outside: Path) -> None:
    outside_file = [
        Change(b"file", _blob(b"inside"), _blob(b"restored")),
        Change(b"folder/added", None, _blob(b"restored")),
        Change(b"folder/file", _blob(b"inside"), _blob(b"restored")),
        Change(b"folder/gone", _blob(b"inside"), None),
    ]
    restore = [Change(change.path, change.new, change.old) for change in outside_file]
    (outside / "file").write_text("inside")  # where it leads to is no other file to the restore
    (outside / "gone").write_text("inside")
    applied = 0
    with swapping(root, outside):
        for number in range(ROUNDS):
            changes, data = (restore, b"inside") if number % 2 else (outside_file, b"restored")
            for change in changes:
                restorer = Restorer(root, frozenset(), lambda _: None, Deadline(60))
                restorer.apply([change], lambda ids, _, data=data: iter([data] * len(ids)))
                applied += len(restorer.applied)
    assert applied
    contents = {entry.name: entry.read_text() for entry in outside.iterdir()}
    assert contents == {"file": "inside", "gone": "inside"}


def _blob(data: bytes) -> Blob:
    return Blob(0o100644, hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest())
