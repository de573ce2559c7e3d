from __future__ import annotations

import asyncio
import os
import tracemalloc
from pathlib import Path

import pytest

from acp_agent.errors import MissingFileError, WorkspaceError
from acp_agent.workspace.files import TEXT_LIMIT, WorkspaceFiles
from tests.support.ordinary_user import shared_folder, without_root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path.resolve()


async def read(root: Path, name: str) -> str:
    files = WorkspaceFiles(root)
    return (await files.read_text(files.resolve(name))).text


async def test_a_text_keeps_its_line_endings_and_says_which(root: Path) -> None:
    (root / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    (root / "b").write_bytes(b"one\r\ntwo\n")
    files = WorkspaceFiles(root)
    a, b = await files.read_text(root / "a"), await files.read_text(root / "b")
    assert (a.text, a.newline, a.encoding) == ("one\r\ntwo\r\n", "\r\n", "utf-8-sig")
    assert (b.text, b.newline, b.encoding) == ("one\r\ntwo\n", "\n", "utf-8")
    assert a.digest == b.digest, "line endings and byte order mark are no change of the text"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x7fELF\0\0", r"binary file, 6 bytes; .*shell"),
        (b"ok\nbad \xff byte", r"not valid UTF-8 \(byte 0xff in line 2\)"),
        ("text".encode("utf-16"), "UTF-16"),
    ],
)
async def test_files_that_are_not_text_are_refused_with_advice(
    root: Path, data: bytes, message: str
) -> None:
    (root / "f").write_bytes(data)
    with pytest.raises(WorkspaceError, match=message) as caught:
        await read(root, "f")
    assert "\n" not in str(caught.value)


async def test_a_folder_is_refused_with_the_tool_to_use(root: Path) -> None:
    (root / "d").mkdir()
    with pytest.raises(WorkspaceError, match="d is a folder, not a file; use `list`"):
        await read(root, "d")


async def test_a_missing_file_is_reported_with_similar_names(root: Path) -> None:
    (root / "server.py").write_text("")
    with pytest.raises(MissingFileError, match=r"no such file: sever.py") as missing:
        await read(root, "sever.py")
    error = await WorkspaceFiles(root).with_suggestions(missing.value, root / "sever.py")
    assert str(error) == "no such file: sever.py; did you mean server.py?"
    with pytest.raises(MissingFileError, match="no such file: a/b"):
        await read(root, "a/b")
    with pytest.raises(MissingFileError):
        await read(root, "server.py/x")


async def test_a_file_of_a_gigabyte_is_refused_without_being_read(root: Path) -> None:
    with (root / "huge").open("wb") as file:
        file.truncate(1_000_000_000)
    files = WorkspaceFiles(root)
    tracemalloc.start()
    try:
        with pytest.raises(WorkspaceError, match=r"too large: 1,000,000,000 bytes.*grep"):
            await files.read_text(root / "huge")
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


async def test_the_limit_of_a_text_is_exact(root: Path) -> None:
    (root / "full").write_bytes(b"x" * TEXT_LIMIT)
    (root / "over").write_bytes(b"x" * (TEXT_LIMIT + 1))
    assert len(await read(root, "full")) == TEXT_LIMIT
    with pytest.raises(WorkspaceError, match="too large"):
        await read(root, "over")


async def test_a_fifo_without_a_writer_is_refused_at_once(root: Path) -> None:
    os.mkfifo(root / "pipe")
    async with asyncio.timeout(60):
        with pytest.raises(WorkspaceError, match="not a regular file but a pipe"):
            await read(root, "pipe")


async def test_a_device_is_refused(root: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a device")
    os.mknod(root / "zero", 0o600 | 0o020000, os.makedev(1, 5))
    async with asyncio.timeout(60):
        with pytest.raises(WorkspaceError, match="device"):
            await read(root, "zero")


async def test_a_symlink_that_replaces_a_checked_file_is_detected(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    secret = tmp_path_factory.mktemp("outside") / "secret"
    secret.write_text("secret")
    (root / "d").mkdir()
    (root / "d" / "secret").write_text("mine")
    (root / "f").write_text("mine")
    files = WorkspaceFiles(root)
    direct, below = files.resolve("f"), files.resolve("d/secret")
    (root / "f").unlink()
    (root / "f").symlink_to(secret)
    (root / "d").rename(root / "old")
    (root / "d").symlink_to(secret.parent)
    for path in (direct, below):
        with pytest.raises(WorkspaceError, match="another place"):
            await files.read_text(path)
        with pytest.raises(WorkspaceError, match="another place"):
            await files.write_text(path, "overwritten")
    assert secret.read_text() == "secret"


async def test_an_unreadable_file_is_reported_as_unreadable() -> None:
    with shared_folder() as folder:
        (folder / "f").write_text("x")
        (folder / "f").chmod(0)
        with without_root(), pytest.raises(WorkspaceError, match="f cannot be read: permission"):
            await read(folder, "f")


async def test_a_file_whose_name_is_not_utf8_is_refused(
    root: Path,
) -> None:
    path = Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9.txt"))
    path.write_text("noir")
    (root / "link").symlink_to(path)
    with pytest.raises(WorkspaceError, match=r"name of caf\ufffd\.txt is not valid UTF-8; rename"):
        await read(root, "link")
    with pytest.raises(WorkspaceError, match="broken character"):
        await read(root, str(path))


async def test_a_name_with_a_line_break_is_read_and_shown_on_one_line(root: Path) -> None:
    (root / "a\nb").write_text("x")
    assert await read(root, "a\nb") == "x"
    with pytest.raises(MissingFileError) as caught:
        await read(root, "c\nd")
    assert str(caught.value).startswith(r"no such file: c\nd")


async def test_bytes_are_read_up_to_the_requested_limit(root: Path) -> None:
    (root / "f").write_bytes(b"\0" * 10)
    files = WorkspaceFiles(root)
    assert await files.read_bytes(root / "f", limit=10) == b"\0" * 10
    with pytest.raises(WorkspaceError, match="too large: 10 bytes, the limit is 9"):
        await files.read_bytes(root / "f", limit=9)


async def test_a_file_that_changed_since_it_was_read_must_be_read_again(root: Path) -> None:
    path = root / "f"
    path.write_text("one\n")
    files = WorkspaceFiles(root)
    with pytest.raises(WorkspaceError, match="f has not been read yet; read it first"):
        await files.check_unchanged(path)
    files.mark_seen(await files.read_text(path))
    assert (await files.check_unchanged(path)).text == "one\n"
    path.write_text("two\n")
    with pytest.raises(WorkspaceError, match="f changed since it was read; read it again"):
        await files.check_unchanged(path)
