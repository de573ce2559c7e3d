from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from acp_agent.errors import WorkspaceError
from acp_agent.workspace.files import TEXT_LIMIT, WorkspaceFiles
from tests.support.ordinary_user import shared_folder, without_root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path.resolve()


async def test_a_new_file_is_made_with_the_folders_above_it(root: Path) -> None:
    files = WorkspaceFiles(root)
    await files.write_text(files.resolve("a/b/c.txt"), "text\n")
    assert (root / "a/b/c.txt").read_bytes() == b"text\n"
    umask = os.umask(0)
    os.umask(umask)
    assert (root / "a/b/c.txt").stat().st_mode & 0o777 == 0o666 & ~umask


async def test_a_replaced_file_keeps_its_mode(root: Path) -> None:
    (root / "run.sh").write_text("old")
    (root / "run.sh").chmod(0o750)
    await WorkspaceFiles(root).write_text(root / "run.sh", "new")
    assert (root / "run.sh").read_text() == "new"
    assert (root / "run.sh").stat().st_mode & 0o777 == 0o750


async def test_a_symlinked_file_stays_a_symlink_and_its_target_changes(root: Path) -> None:
    (root / "real").write_text("old")
    (root / "link").symlink_to("real")
    files = WorkspaceFiles(root)
    await files.write_text(files.resolve("link"), "new")
    assert (root / "link").is_symlink()
    assert (root / "real").read_text() == "new"


async def test_line_endings_and_byte_order_mark_are_written_as_asked(root: Path) -> None:
    await WorkspaceFiles(root).write_text(
        root / "f", "one\r\ntwo\n", newline="\r\n", encoding="utf-8-sig"
    )
    assert (root / "f").read_bytes() == b"\xef\xbb\xbfone\r\ntwo\r\n"
    await WorkspaceFiles(root).write_text(root / "mixed", "one\r\ntwo\n")
    assert (root / "mixed").read_bytes() == b"one\r\ntwo\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [("folder", "is a folder"), ("file/below", "in its way"), ("pipe", "not a regular file")],
)
async def test_an_impossible_path_is_refused(root: Path, name: str, message: str) -> None:
    (root / "folder").mkdir()
    (root / "file").write_text("x")
    os.mkfifo(root / "pipe")
    files = WorkspaceFiles(root)
    async with asyncio.timeout(60):
        with pytest.raises(WorkspaceError, match=message):
            await files.write_text(files.resolve(name), "text")
    assert sorted(os.listdir(root)) == ["file", "folder", "pipe"], "nothing is left behind"


async def test_a_text_with_half_a_surrogate_pair_is_refused(root: Path) -> None:
    with pytest.raises(WorkspaceError, match=r"broken character \(U\+D83D\) at position 2"):
        await WorkspaceFiles(root).write_text(root / "f", "ab\ud83d")
    assert not (root / "f").exists()


async def test_a_text_over_the_limit_is_refused(root: Path) -> None:
    with pytest.raises(WorkspaceError, match="too long: 10,000,001 bytes"):
        await WorkspaceFiles(root).write_text(root / "f", "x" * (TEXT_LIMIT + 1))


async def test_a_reader_never_sees_half_of_a_replacement(root: Path) -> None:
    path = root / "f"
    old, new = "o" * 3_000_000, "n" * 3_000_000
    path.write_text(old)
    files = WorkspaceFiles(root)
    writing = asyncio.create_task(files.write_text(path, new))
    contents = set()
    while not writing.done():
        contents.add(await asyncio.to_thread(path.read_text))
    await writing
    contents.add(path.read_text())
    assert contents <= {old, new}
    assert new in contents


FULL_DISK = """
import asyncio, resource, signal, sys
from pathlib import Path
from acp_agent.errors import WorkspaceError
from acp_agent.workspace.files import WorkspaceFiles

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
root = Path(sys.argv[1])
try:
    asyncio.run(WorkspaceFiles(root).write_text(root / "f", "n" * 10_000))
except WorkspaceError as error:
    print(error)
"""


def test_a_full_disk_leaves_the_old_file_and_no_temporary_file(root: Path) -> None:
    (root / "f").write_text("old")
    run = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(root)],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert "f cannot be written: the disk or the quota is full; free some space" in run.stdout
    assert (root / "f").read_text() == "old"
    assert os.listdir(root) == ["f"]


async def test_a_file_marked_read_only_is_not_replaced_behind_the_users_back() -> None:
    with shared_folder() as root:  # which would allow to exchange the file
        (root / "f").write_text("old")
        (root / "f").chmod(0o444)
        with without_root(), pytest.raises(WorkspaceError, match="f cannot be written: it is read"):
            await WorkspaceFiles(root).write_text(root / "f", "new")
        assert (root / "f").read_text() == "old"
        assert os.listdir(root) == ["f"]
