from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from acp_agent.errors import MissingFileError, WorkspaceError
from acp_agent.workspace.files import WorkspaceFiles
from tests.support.editor_buffers import FakeEditor


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path.resolve()


@pytest.fixture
def path(root: Path) -> Path:
    path = root / "f.txt"
    path.write_text("saved\n")
    return path


async def test_a_read_returns_unsaved_changes(root: Path, path: Path) -> None:
    editor = FakeEditor()
    editor.type(path, "unsaved\n")
    assert (await WorkspaceFiles(root, [], editor).read_text(path)).text == "unsaved\n"


async def test_an_editor_that_does_not_offer_to_read_is_not_asked(root: Path, path: Path) -> None:
    editor = FakeEditor(can_read=False)
    editor.type(path, "unsaved\n")
    assert (await WorkspaceFiles(root, [], editor).read_text(path)).text == "saved\n"
    assert editor.reads == []


async def test_a_write_goes_through_the_editor_and_not_to_disk_as_well(
    root: Path, path: Path
) -> None:
    inode = path.stat().st_ino
    editor = FakeEditor()
    files = WorkspaceFiles(root, [], editor)
    await files.read_text(path)
    await files.write_text(path, "new\n")
    assert editor.writes == [(path, "new\n")]
    assert path.stat().st_ino == inode, "our own write would have exchanged the file"
    assert (await files.read_text(path)).text == "new\n"


async def test_an_editor_that_does_not_offer_to_write_leaves_it_to_the_disk(
    root: Path, path: Path
) -> None:
    editor = FakeEditor(can_write=False)
    await WorkspaceFiles(root, [], editor).write_text(path, "new\n")
    assert editor.writes == []
    assert path.read_text() == "new\n"


@pytest.mark.parametrize("missing_is_empty", [True, False])
async def test_a_missing_file_is_missing_however_the_editor_says_it(
    root: Path, missing_is_empty: bool
) -> None:
    files = WorkspaceFiles(root, [], FakeEditor(missing_is_empty=missing_is_empty))
    with pytest.raises(MissingFileError):
        await files.read_text(root / "absent")
    (root / "empty").write_text("")
    assert (await files.read_text(root / "empty")).text == ""


async def test_a_file_that_only_the_editor_has_can_be_read(root: Path) -> None:
    editor = FakeEditor()
    editor.type(root / "new.py", "not saved yet\n")
    files = WorkspaceFiles(root, [], editor)
    assert (await files.read_text(root / "new.py")).text == "not saved yet\n"


async def test_a_last_newline_that_the_editor_drops_is_not_lost(root: Path, path: Path) -> None:
    editor = FakeEditor(drops_last_newline=True)
    files = WorkspaceFiles(root, [], editor)
    first = await files.read_text(path)
    assert first.text == "saved\n"
    files.mark_seen(first)
    assert (await files.check_unchanged(path)).text == "saved\n"


async def test_the_disk_answers_for_a_file_that_is_not_the_editors(root: Path, path: Path) -> None:
    editor = FakeEditor(knows=lambda path: False)
    files = WorkspaceFiles(root, [], editor)
    assert (await files.read_text(path)).text == "saved\n"
    await files.write_text(path, "new\n")
    assert editor.writes == [], "what the editor does not know it is not asked to write"
    assert path.read_text() == "new\n"


async def test_a_failed_write_of_the_editor_is_reported_and_changes_no_file(
    root: Path, path: Path
) -> None:
    editor = FakeEditor(can_read=False, knows=lambda path: False)
    files = WorkspaceFiles(root, [], editor)
    with pytest.raises(WorkspaceError, match=r"f.txt was not written: .*project"):
        await files.write_text(path, "new\n")
    assert path.read_text() == "saved\n"


async def test_crlf_and_byte_order_mark_survive_an_editor_that_hides_them(root: Path) -> None:
    path = root / "dos.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    editor = FakeEditor()
    files = WorkspaceFiles(root, [], editor)
    file = await files.read_text(path)
    assert (file.newline, file.encoding) == ("\r\n", "utf-8-sig")
    await files.write_text(path, "one\r\nthree\r\n", newline=file.newline, encoding=file.encoding)
    assert editor.writes == [(path, "one\nthree\n")], "given back as the editor had shown it"
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\nthree\r\n"


async def test_an_editor_that_only_reads_does_not_change_the_style_of_what_we_write(
    root: Path,
) -> None:
    path = root / "dos.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    editor = FakeEditor(can_write=False)
    editor.type(path, "one\ntwo\nunsaved\n")
    files = WorkspaceFiles(root, [], editor)
    file = await files.read_text(path)
    await files.write_text(path, file.text, newline=file.newline, encoding=file.encoding)
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\ntwo\r\nunsaved\r\n"


async def test_the_disk_wins_after_a_command_over_a_buffer_that_is_behind(
    root: Path, path: Path
) -> None:
    files = WorkspaceFiles(root, [], FakeEditor())
    await files.read_text(path)
    path.write_text("from the command\n")
    files.note_commands_ran()
    assert (await files.read_text(path)).text == "from the command\n"
    assert (await files.read_text(path)).text == "from the command\n", "as long as it is behind"


async def test_the_disk_wins_after_a_command_over_our_own_writes(root: Path, path: Path) -> None:
    files = WorkspaceFiles(root, [], FakeEditor())
    await files.write_text(path, "ours\n")
    path.write_text("from the command\n")
    files.note_commands_ran()
    assert (await files.read_text(path)).text == "from the command\n"


async def test_unsaved_changes_win_after_a_command_that_changed_the_same_file(
    root: Path, path: Path
) -> None:
    editor = FakeEditor()
    files = WorkspaceFiles(root, [], editor)
    await files.read_text(path)
    editor.type(path, "the user's\n")
    await files.read_text(path)
    path.write_text("from the command\n")
    files.note_commands_ran()
    assert (await files.read_text(path)).text == "the user's\n"


async def test_changes_typed_since_the_command_win(root: Path, path: Path) -> None:
    editor = FakeEditor()
    files = WorkspaceFiles(root, [], editor)
    await files.read_text(path)
    path.write_text("from the command\n")
    files.note_commands_ran()
    editor.type(path, "typed after it\n")
    assert (await files.read_text(path)).text == "typed after it\n"


async def test_an_unread_buffer_gets_time_to_catch_up(root: Path, path: Path) -> None:
    editor = FakeEditor(loads_again=2)
    await editor.read_text(path)  # open in the editor before the session
    path.write_text("from the command\n")
    files = WorkspaceFiles(root, [], editor)
    files.note_commands_ran()
    assert (await files.read_text(path)).text == "from the command\n"


async def test_waiting_for_the_editor_ends_and_unsaved_text_wins(root: Path, path: Path) -> None:
    editor = FakeEditor()
    editor.type(path, "the user's\n")
    files = WorkspaceFiles(root, [], editor)
    files.note_commands_ran()
    async with asyncio.timeout(60):
        assert (await files.read_text(path)).text == "the user's\n"
    requests = len(editor.reads)
    await files.read_text(path)
    assert len(editor.reads) == requests + 1, "the next read does not wait again"


async def test_an_editor_is_asked_by_the_path_under_which_it_opened_the_folder(
    tmp_path: Path,
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "f").write_text("x")
    link = tmp_path / "link"
    link.symlink_to("real")
    editor = FakeEditor()
    files = WorkspaceFiles(link, [], editor)
    await files.read_text(files.resolve("f"))
    await files.write_text(files.resolve("f"), "y")
    assert editor.reads == [link / "f"]
    assert editor.writes == [(link / "f", "y")]


async def test_the_editor_is_not_asked_for_binary_files(root: Path) -> None:
    (root / "bin").write_bytes(b"\0\1")
    editor = FakeEditor()
    with pytest.raises(WorkspaceError, match="binary"):
        await WorkspaceFiles(root, [], editor).read_text(root / "bin")
    assert editor.reads == []


async def test_text_of_an_editor_that_no_file_can_hold_is_refused(root: Path, path: Path) -> None:
    for text in ("a\0b", "a\ud800b"):
        editor = FakeEditor()
        editor.type(path, text)
        with pytest.raises(WorkspaceError, match="not text in the editor"):
            await WorkspaceFiles(root, [], editor).read_text(path)


async def test_a_missing_file_that_the_editor_refuses_can_still_be_created(
    root: Path,
) -> None:
    editor = FakeEditor()
    editor.refused[root / "new"] = "cannot open it"
    files = WorkspaceFiles(root, [], editor)
    with pytest.raises(MissingFileError, match="cannot open it"):
        await files.read_text(root / "new")
    await files.write_text(root / "new", "text\n")
    assert editor.writes == [(root / "new", "text\n")]
