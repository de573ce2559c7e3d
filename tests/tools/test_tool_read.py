from __future__ import annotations

import base64
import zlib
from pathlib import Path

import pytest

from acp_agent.content import ContentPart, ImageBlock, Location
from acp_agent.errors import OutsideWorkspaceError, ToolError, WorkspaceError
from acp_agent.permissions.access import ReadAccess
from acp_agent.tools.base import RESULT_LIMIT
from tests.support.editor_buffers import FakeEditor
from tests.support.tool_calls import ToolUser


@pytest.fixture
def user(tmp_path: Path) -> ToolUser:
    (tmp_path / "project").mkdir()
    return ToolUser((tmp_path / "project").resolve())


def png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data).to_bytes(4, "big")
        return len(data).to_bytes(4, "big") + kind + data + check

    header = b"\0\0\0\1\0\0\0\1\x08\2\0\0\0"
    pixel = zlib.compress(b"\0\xff\0\0")
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")
    )


async def test_lines_come_with_their_numbers(user: ToolUser) -> None:
    (user.folder / "a.py").write_bytes(b"one\r\ntwo\r\n\r\nfour")
    outcome = await user.call("read", path="a.py")
    assert outcome.text == "1\tone\n2\ttwo\n3\t\n4\tfour\n"


async def test_a_page_says_how_many_lines_follow_and_where_to_continue(user: ToolUser) -> None:
    (user.folder / "a.py").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    prepared = await user.prepare("read", path="a.py", line=3, limit=2)
    assert prepared.title == "Read a.py (lines 3-4)"
    assert prepared.locations == (Location(path=str(user.folder / "a.py"), line=3),)
    assert prepared.access == ReadAccess(
        paths=(str(user.folder / "a.py"),), requested_names=("a.py",)
    )
    outcome = await user.call("read", path="a.py", line=3, limit=2)
    assert outcome.text == "3\tline 3\n4\tline 4\n[6 more lines; read on with line 5]\n"


async def test_reading_on_as_advised_gives_every_line_of_a_long_file_once(user: ToolUser) -> None:
    lines = [f"{n} {'x' * (n % 90)}" for n in range(1, 5_001)]
    (user.folder / "long").write_text("\n".join(lines) + "\n")
    got: list[str] = []
    line = 1
    for _ in range(20):
        outcome = await user.call("read", path="long", line=line)
        assert len(outcome.text) <= RESULT_LIMIT
        rows = outcome.text.splitlines()
        note = rows.pop() if rows[-1].startswith("[") else ""
        got += [row.partition("\t")[2] for row in rows]
        if not note:
            break
        line = int(note.rpartition(" ")[2].rstrip("]"))
    assert got == lines


async def test_a_very_long_line_is_cut_and_says_so(user: ToolUser) -> None:
    (user.folder / "min.js").write_text("y" * 2_500 + "\nshort\n")
    outcome = await user.call("read", path="min.js")
    assert outcome.text == f"1\t{'y' * 2_000} [… 500 more characters of this line]\n2\tshort\n"


async def test_a_line_that_just_fits_is_not_called_cut(user: ToolUser) -> None:
    (user.folder / "min.js").write_text("y" * 2_000 + "\n")
    assert (await user.call("read", path="min.js")).text == f"1\t{'y' * 2_000}\n"


async def test_a_line_beyond_the_end_is_reported_with_the_last_one(user: ToolUser) -> None:
    (user.folder / "a").write_text("one\n")
    with pytest.raises(ToolError, match="a ends with line 1; there is no line 5"):
        await user.call("read", path="a", line=5)


async def test_an_empty_file_is_called_empty(user: ToolUser) -> None:
    (user.folder / "a").write_text("")
    assert (await user.call("read", path="a")).text == "(the file is empty)"


async def test_line_feeds_alone_end_lines(user: ToolUser) -> None:
    (user.folder / "a").write_text("form\ffeed\u2028separator\nnext\n", encoding="utf-8")
    outcome = await user.call("read", path="a")
    assert outcome.text == "1\tform\ffeed\u2028separator\n2\tnext\n"


async def test_a_picture_is_given_to_the_model_as_a_picture(user: ToolUser) -> None:
    (user.folder / "dot.png").write_bytes(png())
    outcome = await user.call("read", path="dot.png")
    image = ImageBlock(data=base64.b64encode(png()).decode(), mime_type="image/png")
    assert outcome.images == (image,)
    assert outcome.content == (ContentPart(image),)


async def test_a_file_with_only_the_name_of_a_picture_is_refused(user: ToolUser) -> None:
    (user.folder / "x.png").write_text("<svg/>")
    with pytest.raises(ToolError, match=r"x.png is named like a picture but is no PNG"):
        await user.call("read", path="x.png")
    with (user.folder / "big.jpg").open("wb") as file:
        file.truncate(6_000_000)
    with pytest.raises(WorkspaceError, match="too large: 6,000,000 bytes"):
        await user.call("read", path="big.jpg")


async def test_a_path_outside_is_refused_before_anything_is_read(user: ToolUser) -> None:
    (user.folder / "link").symlink_to("/etc/passwd")
    for path in ("/etc/passwd", "../x", "link"):
        with pytest.raises(OutsideWorkspaceError):
            await user.prepare("read", path=path)


async def test_the_model_sees_unsaved_text_of_the_editor(tmp_path: Path) -> None:
    editor = FakeEditor()
    user = ToolUser(tmp_path.resolve(), buffers=editor)
    (user.folder / "a").write_text("saved\n")
    editor.type(user.folder / "a", "unsaved\n")
    assert (await user.call("read", path="a")).text == "1\tunsaved\n"


async def test_the_user_sees_the_whole_text_with_any_backticks(user: ToolUser) -> None:
    (user.folder / "a.md").write_text("```\ncode\n```\n")
    outcome = await user.call("read", path="a.md")
    assert outcome.content is not None
    part = outcome.content[0]
    assert isinstance(part, ContentPart)
    assert getattr(part.content, "text", "") == "````\n```\ncode\n```\n````"


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        ({}, "Read a file"),
        ({"path": 5}, "Read a file"),
        ({"path": "a.py", "line": "x", "limit": None}, "Read a.py"),
        ({"path": "a.py", "line": 7}, "Read a.py (from line 7)"),
        ({"path": "a.py", "limit": 5}, "Read a.py (lines 1-5)"),
        ({"path": "a\nb"}, r"Read a\nb"),
        ({"path": "\ud800"}, "Read ?"),
    ],
)
def test_a_title_is_built_from_the_available_arguments(
    user: ToolUser, arguments: dict[str, object], title: str
) -> None:
    assert user.title("read", **arguments) == title


def test_a_title_shows_a_path_relative_to_the_working_folder(user: ToolUser) -> None:
    assert user.title("read", path=str(user.folder / "src" / "a.py")) == "Read src/a.py"
