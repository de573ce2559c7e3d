"""Reading PDFs."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from acp_agent.content import image_type
from acp_agent.errors import ToolError
from acp_agent.tools import pdf
from tests.support.orphans import child_processes
from tests.support.pdf_document import document
from tests.support.tool_calls import ToolUser


@pytest.fixture
def user(tmp_path: Path) -> ToolUser:
    folder = tmp_path / "folder"
    folder.mkdir()
    return ToolUser(folder)


async def test_the_text_of_the_pages_comes_with_their_numbers(user: ToolUser) -> None:
    (user.folder / "a.pdf").write_bytes(document("First words", "Second words"))
    outcome = await user.call("read", path="a.pdf")
    assert outcome.text == "[Page 1 of 2]\nFirst words\n\n[Page 2 of 2]\nSecond words"
    assert outcome.images == ()


async def test_a_long_document_is_read_page_by_page(user: ToolUser) -> None:
    (user.folder / "a.pdf").write_bytes(document(*(f"Words {n}" for n in range(1, 31))))
    outcome = await user.call("read", path="a.pdf")
    assert "Words 20" in outcome.text
    assert outcome.text.endswith("[10 more pages]\nRead on with line 21.")
    outcome = await user.call("read", path="a.pdf", line=30, limit=1)
    assert outcome.text == "[Page 30 of 30]\nWords 30"
    with pytest.raises(ToolError, match=r"has 30 pages; there is no page 31"):
        await user.call("read", path="a.pdf", line=31)


async def test_a_scanned_page_comes_as_a_picture(user: ToolUser) -> None:
    (user.folder / "a.pdf").write_bytes(document("Words", ""))
    outcome = await user.call("read", path="a.pdf")
    assert "[Page 2 of 2]\n(no text; the page is among the pictures)" in outcome.text
    (picture,) = outcome.images
    data = base64.b64decode(picture.data)
    assert image_type(data) == "image/png"
    assert data[16:24] == (1400).to_bytes(4, "big") + (700).to_bytes(4, "big")


async def test_a_scanned_page_that_cannot_be_drawn_is_reported(
    user: ToolUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf, "can_draw", lambda: False)
    (user.folder / "a.pdf").write_bytes(document(""))
    outcome = await user.call("read", path="a.pdf")
    assert "the extra `pdf` can" in outcome.text
    assert outcome.images == ()


@pytest.mark.parametrize(
    "data",
    [b"", b"no PDF at all", document("Words")[:200], b"%PDF-1.4\n" + bytes(range(256)) * 20],
    ids=["empty", "another file", "cut off", "noise"],
)
async def test_a_file_that_is_no_pdf_is_reported(user: ToolUser, data: bytes) -> None:
    (user.folder / "a.pdf").write_bytes(data)
    with pytest.raises(ToolError, match=r"^a\.pdf "):
        await user.call("read", path="a.pdf")


async def test_a_document_that_takes_too_long_to_read_is_abandoned(
    user: ToolUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf, "_MAX_SECONDS", 0.01)
    (user.folder / "a.pdf").write_bytes(document("Words"))
    before = child_processes()
    with pytest.raises(ToolError, match="could not be read within"):
        await user.call("read", path="a.pdf")
    assert child_processes() == before, "what read it is ended"
