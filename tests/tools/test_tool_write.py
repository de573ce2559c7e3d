from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.content import DiffPart, Location
from acp_agent.errors import OutsideWorkspaceError, ToolError, WorkspaceError
from acp_agent.permissions.access import WriteAccess
from tests.support.editor_buffers import FakeEditor
from tests.support.tool_calls import RecordedProgress, ToolUser


@pytest.fixture
def user(tmp_path: Path) -> ToolUser:
    (tmp_path / "project").mkdir()
    return ToolUser((tmp_path / "project").resolve())


async def test_a_new_file_is_shown_as_new_and_made_only_when_the_call_runs(user: ToolUser) -> None:
    path = user.folder / "src" / "a.py"
    prepared = await user.prepare("write", path="src/a.py", content="x = 1\n")
    assert prepared.title == "Create src/a.py"
    assert prepared.access == WriteAccess(paths=(str(path),), requested_names=("src/a.py",))
    assert prepared.content == (DiffPart(path=str(path), new_text="x = 1\n", old_text=None),)
    assert prepared.locations == (Location(path=str(path), line=1),)
    assert not path.parent.exists()
    outcome = await prepared.run(RecordedProgress())
    assert path.read_text() == "x = 1\n"
    assert outcome.text == "src/a.py created, 1 line."


async def test_a_file_that_was_not_read_is_not_replaced(user: ToolUser) -> None:
    (user.folder / "a").write_text("old")
    with pytest.raises(WorkspaceError, match="a has not been read yet; read it first"):
        await user.prepare("write", path="a", content="new")
    assert (user.folder / "a").read_text() == "old"


async def test_a_replaced_file_is_shown_with_its_real_old_text_and_keeps_its_style(
    user: ToolUser,
) -> None:
    path = user.folder / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    await user.call("read", path="a.txt")
    prepared = await user.prepare("write", path="a.txt", content="one\n2\n")
    assert prepared.content == (
        DiffPart(path=str(path), old_text="one\r\ntwo\r\n", new_text="one\r\n2\r\n"),
    )
    assert prepared.locations == (Location(path=str(path), line=2),)
    await prepared.run(RecordedProgress())
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\n2\r\n"


async def test_a_file_written_by_the_model_counts_as_read(user: ToolUser) -> None:
    await user.call("write", path="a", content="one\n")
    await user.call("write", path="a", content="two\n")
    await user.call("edit", path="a", old="two", new="three")
    assert (user.folder / "a").read_text() == "three\n"


async def test_nothing_is_written_if_the_file_changed_during_the_question(
    user: ToolUser,
) -> None:
    path = user.folder / "a"
    path.write_text("old\n")
    await user.call("read", path="a")
    prepared = await user.prepare("write", path="a", content="new\n")
    path.write_text("the user's\n")
    with pytest.raises(ToolError, match="a changed while this was prepared; nothing was written"):
        await prepared.run(RecordedProgress())
    assert path.read_text() == "the user's\n"


async def test_nothing_is_written_when_a_new_file_appeared_meanwhile(user: ToolUser) -> None:
    prepared = await user.prepare("write", path="a", content="new\n")
    (user.folder / "a").write_text("the user's\n")
    with pytest.raises(ToolError, match="changed while this was prepared"):
        await prepared.run(RecordedProgress())
    assert (user.folder / "a").read_text() == "the user's\n"


async def test_nothing_is_written_when_a_read_file_was_deleted_meanwhile(user: ToolUser) -> None:
    (user.folder / "a").write_text("old\n")
    await user.call("read", path="a")
    prepared = await user.prepare("write", path="a", content="new\n")
    (user.folder / "a").unlink()
    with pytest.raises(ToolError, match="changed while this was prepared"):
        await prepared.run(RecordedProgress())
    assert not (user.folder / "a").exists()


async def test_a_symlink_created_during_the_question_is_not_followed(
    user: ToolUser, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    inside = user.folder / "inside"
    inside.mkdir()
    for target, error in ((outside, OutsideWorkspaceError), (inside, ToolError)):
        prepared = await user.prepare("write", path="sub/a", content="new\n")
        (user.folder / "sub").symlink_to(target)
        with pytest.raises(error):
            await prepared.run(RecordedProgress())
        assert list(target.iterdir()) == []
        (user.folder / "sub").unlink()


async def test_the_model_reads_that_saving_changed_the_text(tmp_path: Path) -> None:
    editor = FakeEditor(formats=str.upper)
    user = ToolUser(tmp_path.resolve(), buffers=editor)
    outcome = await user.call("write", path="a", content="text\n")
    assert "Its text changed on saving" in outcome.text
    with pytest.raises(WorkspaceError, match="read it first"):
        await user.call("write", path="a", content="x")


async def test_a_last_newline_that_the_editor_adds_on_saving_is_no_change(tmp_path: Path) -> None:
    editor = FakeEditor(formats=lambda text: text.rstrip("\n") + "\n")
    user = ToolUser(tmp_path.resolve(), buffers=editor)
    outcome = await user.call("write", path="a", content="text")
    assert outcome.text == "a created, 1 line."
    await user.call("edit", path="a", old="text", new="more")


async def test_a_file_goes_through_the_editor_and_the_user_is_shown_its_path(
    tmp_path: Path,
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    editor = FakeEditor()
    user = ToolUser(tmp_path / "link", buffers=editor)
    prepared = await user.prepare("write", path="a", content="x")
    assert prepared.locations == (Location(path=str(tmp_path / "link" / "a"), line=1),)
    await prepared.run(RecordedProgress())
    assert editor.writes == [(tmp_path / "link" / "a", "x")]


async def test_a_path_outside_or_a_folder_is_refused(user: ToolUser) -> None:
    with pytest.raises(OutsideWorkspaceError):
        await user.prepare("write", path="../a", content="x")
    with pytest.raises(OutsideWorkspaceError):
        await user.prepare("write", path=str(user.workspace.outputs / "a"), content="x")
    with pytest.raises(WorkspaceError, match="is a folder"):
        await user.prepare("write", path=".", content="x")


def test_titles_are_built_from_the_available_arguments(user: ToolUser) -> None:
    assert user.title("write") == "Write a file"
    assert user.title("write", path="a/b.py") == "Write a/b.py"
    assert user.title("edit", path=None) == "Edit a file"


@pytest.mark.parametrize(
    ("name", "content", "written", "note"),
    [
        (
            "a.c",
            "int f() {\n  return a &gt; b;\n}\n",
            "int f() {\n  return a > b;\n}\n",
            "entities",
        ),
        ("b.py", 'X = "&gt;"\n', 'X = "&gt;"\n', ""),
        ("c.py", '"""\nA &gt; B\n"""\n', '"""\nA &gt; B\n"""\n', ""),
        ("d.py", "x = 1\n```\n", "x = 1\n", "code fence"),
        ("e.md", "x = 1\n```\n", "x = 1\n```\n", ""),
        ("f.py", "x = 1\n<|im_end|>", "x = 1\n", "tags of the call"),
        ("Makefile", "all: a\n    ./a\n  b = 1\n", "all: a\n\t./a\n  b = 1\n", "recipes"),
        ("g.mk", "all: a \\\n    b\n", "all: a \\\n    b\n", ""),
    ],
)
async def test_slips_around_the_whole_text_are_corrected_where_they_are_certain(
    user: ToolUser, name: str, content: str, written: str, note: str
) -> None:
    outcome = await user.call("write", path=name, content=content)
    assert (user.folder / name).read_text() == written
    assert note in outcome.text
    assert outcome.text.endswith(("line.", "lines.")) != bool(note)
