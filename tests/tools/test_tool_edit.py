from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from acp_agent.content import DiffPart, Location
from acp_agent.errors import MissingFileError, ToolError, WorkspaceError
from acp_agent.tools.editing.replace import Edit, apply_edits
from acp_agent.workspace.file_io import text_file
from tests.support.editor_buffers import FakeEditor
from tests.support.tool_calls import RecordedProgress, ToolUser

CODE = """\
def area(width, height):
    if width < 0:
        raise ValueError("width")
    return width * height


def volume(width, height, depth):
    return area(width, height) * depth
"""


@pytest.fixture
async def user(tmp_path: Path) -> ToolUser:
    (tmp_path / "project").mkdir()
    user = ToolUser((tmp_path / "project").resolve())
    (user.folder / "shapes.py").write_text(CODE)
    await user.call("read", path="shapes.py")
    return user


async def refusal(user: ToolUser, **arguments: object) -> str:
    with pytest.raises(ToolError) as caught:
        await user.prepare("edit", **arguments)
    return str(caught.value)


async def test_an_edit_shows_its_diff_first_and_is_made_when_it_runs(user: ToolUser) -> None:
    path = user.folder / "shapes.py"
    prepared = await user.prepare(
        "edit", path="shapes.py", old="return width * height", new="return abs(width * height)"
    )
    after = CODE.replace("return width * height", "return abs(width * height)")
    assert prepared.title == "Edit shapes.py"
    assert prepared.content == (DiffPart(path=str(path), old_text=CODE, new_text=after),)
    assert prepared.locations == (Location(path=str(path), line=4),)
    assert path.read_text() == CODE
    outcome = await prepared.run(RecordedProgress())
    assert path.read_text() == after
    assert outcome.text == (
        "shapes.py edited: 1 replacement in line 4.\nIt is now:\n"
        '2\t    if width < 0:\n3\t        raise ValueError("width")\n'
        "4\t    return abs(width * height)\n5\t\n6\t"
    )


async def test_several_edits_of_one_file_need_no_read_between_them(user: ToolUser) -> None:
    await user.call("edit", path="shapes.py", old="def area", new="def surface")
    await user.call("edit", path="shapes.py", old="return area", new="return surface")
    text = (user.folder / "shapes.py").read_text()
    assert "def surface" in text
    assert "return surface" in text


async def test_an_ambiguous_text_is_refused_with_its_lines(user: ToolUser) -> None:
    message = await refusal(user, path="shapes.py", old="width, height", new="w, h")
    assert "3 times (lines 1, 7, 8)" in message
    assert "set `all`" in message


async def test_all_replaces_every_occurrence(user: ToolUser) -> None:
    outcome = await user.call("edit", path="shapes.py", old="height", new="h", all=True)
    assert (user.folder / "shapes.py").read_text() == CODE.replace("height", "h")
    assert outcome.text.startswith("shapes.py edited: 4 replacements, the first in line 1.")


async def test_an_edit_needs_no_reading_but_replacing_the_whole_file_does(user: ToolUser) -> None:
    path = user.folder / "other"
    path.write_text("x = 1\ny = 2\n")
    await user.call("edit", path="other", old="x = 1", new="x = 3")
    assert path.read_text() == "x = 3\ny = 2\n"
    with pytest.raises(WorkspaceError, match="other has not been read yet"):
        await user.prepare("write", path="other", content="")
    with pytest.raises(MissingFileError, match=r"did you mean shapes.py"):
        await user.prepare("edit", path="shape.py", old="x", new="y")


async def test_a_change_elsewhere_does_not_stop_an_edit_but_the_replacing_of_the_file(
    user: ToolUser,
) -> None:
    path = user.folder / "shapes.py"
    path.write_text(CODE + "# mine\n")
    await user.call("edit", path="shapes.py", old="def area", new="def x")
    assert path.read_text() == CODE.replace("def area", "def x") + "# mine\n"
    with pytest.raises(WorkspaceError, match=r"shapes.py changed since it was read; read it again"):
        await user.prepare("write", path="shapes.py", content="")


async def test_an_edit_applies_to_a_file_that_the_user_changed_elsewhere_meanwhile(
    user: ToolUser,
) -> None:
    path = user.folder / "shapes.py"
    prepared = await user.prepare("edit", path="shapes.py", old="def area", new="def x")
    path.write_text("# mine\n" + CODE)
    outcome = await prepared.run(RecordedProgress())
    after = "# mine\n" + CODE.replace("def area", "def x")
    assert path.read_text() == after
    assert "1 replacement in line 2. The file had changed elsewhere meanwhile" in outcome.text
    diff = DiffPart(path=str(path), old_text="# mine\n" + CODE, new_text=after)
    assert outcome.content == (diff,)


@pytest.mark.parametrize("now", [CODE + "def area\n", CODE.replace("def area", "def are")])
async def test_an_edit_is_refused_if_its_text_changed_during_the_question(
    user: ToolUser, now: str
) -> None:
    path = user.folder / "shapes.py"
    prepared = await user.prepare("edit", path="shapes.py", old="def area", new="def x")
    path.write_text(now)
    with pytest.raises(ToolError, match="changed while this was prepared; nothing was written"):
        await prepared.run(RecordedProgress())
    assert path.read_text() == now


async def test_all_edits_of_one_call_apply_or_none(user: ToolUser) -> None:
    path = user.folder / "shapes.py"
    first = {"old": "def area", "new": "def surface"}
    outcome = await user.call(
        "edit", path="shapes.py", edits=[first, {"old": "def surface(width", "new": "def s(w"}]
    )
    assert path.read_text() == CODE.replace("def area(width", "def s(w")
    assert "2 replacements, the first in line 1." in outcome.text
    message = await refusal(
        user, path="shapes.py", edits=[{"old": "volume", "new": "v"}, {"old": "nope", "new": ""}]
    )
    assert "edit 2 of 2: the text to replace is not in shapes.py; none was made" in message


async def test_edits_of_one_call_may_overlap_in_unchanged_lines(user: ToolUser) -> None:
    path = user.folder / "list.txt"
    path.write_bytes(b"one\r\ntwo\r\nthree\r\nfour\r\n")
    first = {"old": "one\ntwo\n", "new": "1\ntwo\n"}
    await user.call(
        "edit", path="list.txt", edits=[first, {"old": "one\ntwo\nthree", "new": "one\ntwo\n3"}]
    )
    assert path.read_bytes() == b"1\r\ntwo\r\n3\r\nfour\r\n"
    path.write_text("one\ntwo\n")
    message = await refusal(
        user, path="list.txt", edits=[first, {"old": "one\ntwo", "new": "2\ntwo"}]
    )
    assert "edit 2 of 2" in message
    assert path.read_text() == "one\ntwo\n"


async def test_an_empty_old_text_creates_a_file_or_fills_an_empty_one(user: ToolUser) -> None:
    prepared = await user.prepare("edit", path="src/new.py", old="", new="x = 1\n")
    assert prepared.title == "Create src/new.py"
    outcome = await prepared.run(RecordedProgress())
    assert outcome.text == "src/new.py created, 1 line."
    (user.folder / "empty").touch()
    await user.call("edit", path="empty", old="", new="text")
    assert (user.folder / "empty").read_text() == "text"
    assert "is empty, but shapes.py is not" in await refusal(user, path="shapes.py", old="", new="")


async def test_an_edit_applies_to_unsaved_text_and_goes_to_the_editor(tmp_path: Path) -> None:
    editor = FakeEditor()
    user = ToolUser(tmp_path.resolve(), buffers=editor)
    path = user.folder / "a"
    path.write_text("saved\n")
    editor.type(path, "typed\nunsaved\n")
    await user.call("read", path="a")
    await user.call("edit", path="a", old="unsaved", new="better")
    assert editor.writes == [(path, "typed\nbetter\n")]


async def test_the_nearest_text_is_named_with_its_lines(user: ToolUser) -> None:
    message = await refusal(
        user, path="shapes.py", old="def volume(width, height, length):", new="x"
    )
    assert "nearest text begins in line 7" in message
    assert "7\tdef volume(width, height, depth):" in message
    message = await refusal(
        user,
        path="shapes.py",
        old="def volume(w, h, d):\n    return area(width, height) * depth",
        new="x",
    )
    assert "nearest text begins in line 7" in message


async def test_one_wrong_character_in_a_long_line_is_located(user: ToolUser) -> None:
    line = " + ".join(f"a{n} * b{n}" for n in range(25))
    (user.folder / "long.py").write_text(f"first\n{line}\nlast\n")
    await user.call("read", path="long.py")
    message = await refusal(user, path="long.py", old=line.replace("a7", "a_7"), new="x")
    assert "nearest text begins in line 2" in message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("def area", "def area", "are the same"),
        ("zzz qqq @@@", "x", "nor is anything like it: read the file again"),
        ("\n\n\n\n\n", "x", "only white space"),
    ],
)
async def test_an_edit_that_makes_no_sense_is_refused_with_a_reason(
    user: ToolUser, old: str, new: str, message: str
) -> None:
    assert message in await refusal(user, path="shapes.py", old=old, new=new)


async def test_a_missing_text_in_an_enormous_file_is_reported_in_bounded_time_and_space(
    user: ToolUser,
) -> None:
    lines = [f"value_{n} = compute({n}, {n * 7 % 1000})" for n in range(200_000)]
    (user.folder / "big.py").write_text("\n".join(lines))
    await user.call("read", path="big.py")
    began = time.process_time()
    message = await refusal(
        user, path="big.py", old="\n".join(f"valve_{n} = compile()" for n in range(500)), new=""
    )
    assert time.process_time() - began < 10
    assert len(message) < 5_000


async def test_crlf_and_byte_order_mark_stay_byte_for_byte(user: ToolUser) -> None:
    path = user.folder / "dos.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n")
    await user.call("read", path="dos.txt")
    await user.call("edit", path="dos.txt", old="one\ntwo\n", new="1\n2\nand\n")
    assert path.read_bytes() == b"\xef\xbb\xbf1\r\n2\r\nand\r\nthree\r\n"


async def test_a_file_that_mixes_line_endings_keeps_all_that_are_not_edited(user: ToolUser) -> None:
    path = user.folder / "mixed.txt"
    path.write_bytes(b"a\r\nb\nc\r\nd\ne")
    await user.call("read", path="mixed.txt")
    await user.call("edit", path="mixed.txt", old="c\nd", new="x\ny")
    await user.call("edit", path="mixed.txt", old="b", new="b1\nb2")
    assert path.read_bytes() == b"a\r\nb1\nb2\nx\r\ny\ne"


pieces = st.lists(st.sampled_from(["a", "b", "\n", "\r\n", "é"]), max_size=30)


@given(pieces, st.lists(st.sampled_from(["a", "b", "\n"]), min_size=1, max_size=3))
def test_an_edit_changes_nothing_else_with_any_line_endings(
    content: list[str], expected: list[str]
) -> None:
    file = text_file(Path("/f"), "".join(content))
    old = "".join(expected)
    plain = file.text.replace("\r\n", "\n")
    if old not in plain:
        return
    result = apply_edits(file, [Edit(old, "NEW ", replace_all=True)], "f")
    assert result.text.replace("\r\n", "\n") == plain.replace(old, "NEW ")
    assert len(result.changes) == plain.count(old)
    # What stands between two replacements keeps its own line endings.
    remainder = file.text
    for part in result.text.split("NEW "):
        at = remainder.find(part)
        assert at >= 0
        remainder = remainder[at + len(part) :]


@pytest.mark.parametrize(
    ("before", "old", "new"),
    [
        ("x = 1\n", "".join(f"value_{n} = {n} \u2014 \n" for n in range(50_000)), "y"),
        ("a\n" * 50_000, "a \n" * 25_000 + "b", "y"),
        ("x = 1\n", "\n" * 500_000 + "x", "y"),
        ("e" + "\u0301" * 20_000, "e" + "\u0301" * 19_999 + "f", "y"),
        ("a\u200b" * 50_000, "a" + "\u200b" * 100_000 + "f", "y"),
        ("x = 1\n" * 20_000, "x =  1\n" * 20_000, "# ...\n" * 20_000),
    ],
    ids=["many lines", "one line repeated", "blank lines", "accents", "invisible", "placeholders"],
)
def test_the_time_of_an_edit_is_linear_in_its_length(before: str, old: str, new: str) -> None:
    started = time.process_time()
    with pytest.raises(ToolError):
        apply_edits(text_file(Path("/f"), before), [Edit(old, new)], "f")
    assert time.process_time() - started < 4


def test_many_edits_of_a_file_read_it_once() -> None:
    before = "".join(f"value_{n} = {n};\n" for n in range(3_000))
    edits = [Edit(f"value_{n}  = {n}", f"value_{n}  = {n + 1}") for n in range(200)]
    started = time.process_time()
    result = apply_edits(text_file(Path("/f"), before), edits, "f")
    assert result.text.startswith("value_0 = 1;\nvalue_1 = 2;\n")
    assert time.process_time() - started < 4


async def test_an_edit_that_was_made_before_is_refused_with_the_line_of_its_text(
    user: ToolUser,
) -> None:
    (user.folder / "made.py").write_text("x = 1\nprint('items', len(items))\n")
    with pytest.raises(ToolError, match="the new text is in line 2 already") as caught:
        await user.call(
            "edit", path="made.py", old="print(items)", new="print('items', len(items))"
        )
    assert "nearest text begins in line 2" in str(caught.value)
