"""What a result of an MCP server becomes for the model and for the user."""

from __future__ import annotations

import base64
from pathlib import Path

import mcp_types as types
import pytest

from acp_agent.content import IMAGE_LIMIT
from acp_agent.tools.mcp.results import (
    TEXT_LIMIT,
    prompt_text,
    resource_outcome,
    save_below,
    tool_outcome,
)

PNG = b"\x89PNG\r\n\x1a\n"


def text(words: str) -> types.TextContent:
    return types.TextContent(type="text", text=words)


def image(raw: bytes, mime_type: str = "image/png") -> types.ImageContent:
    data = base64.b64encode(raw).decode()
    return types.ImageContent(type="image", data=data, mime_type=mime_type)


def test_a_result_with_nothing_in_it_says_so() -> None:
    assert tool_outcome(types.CallToolResult(content=[])).text == "[nothing]"


def test_structured_content_is_not_repeated_where_the_text_has_it() -> None:
    result = types.CallToolResult(content=[text("42")], structured_content={"answer": 42})
    outcome = tool_outcome(result)
    assert outcome.text == "42"
    assert outcome.raw_output == {"structuredContent": {"answer": 42}}


@pytest.mark.parametrize(
    ("block", "note"),
    [
        (image(b"<svg/>", "image/svg+xml"), "[a picture of type image/svg+xml is left out]"),
        (image(b"GIF89a" + b"x" * IMAGE_LIMIT, "image/gif"), "too large"),
        (
            types.ImageContent(type="image", data="%%%", mime_type="image/png"),
            "[a picture that is no valid base64 is left out]",
        ),
        (
            types.AudioContent(type="audio", data="AAAA", mime_type="audio/wav\n\x1b[31m"),
            "[a sound of type audio/wav … is left out]",
        ),
    ],
)
def test_content_that_a_model_cannot_read_is_replaced_by_a_note(
    block: types.ContentBlock, note: str
) -> None:
    outcome = tool_outcome(types.CallToolResult(content=[block]))
    assert note in outcome.text
    assert outcome.images == ()


def test_the_type_of_a_picture_is_read_from_its_bytes() -> None:
    (block,) = tool_outcome(types.CallToolResult(content=[image(PNG, "text/html")])).images
    assert block.mime_type == "image/png"


def test_pictures_beyond_the_limit_of_a_request_are_omitted() -> None:
    outcome = tool_outcome(types.CallToolResult(content=[image(PNG)] * 11))
    assert len(outcome.images) == 8
    assert "3 more pictures are left out" in outcome.text


def test_text_beyond_the_search_limit_is_skipped() -> None:
    outcome = tool_outcome(types.CallToolResult(content=[text("x" * (TEXT_LIMIT + 1_000))]))
    assert outcome.text.endswith("[1,000 characters are left out: too much text]")


def test_the_texts_of_user_messages_in_a_prompt_are_joined() -> None:
    messages = [types.PromptMessage(role="user", content=text(word)) for word in ("one", "two")]
    assert prompt_text(types.GetPromptResult(messages=messages)) == "one\n\ntwo"


def blob(data: bytes, mime_type: str | None) -> types.BlobResourceContents:
    encoded = base64.b64encode(data).decode()
    return types.BlobResourceContents(uri="memo://one", blob=encoded, mime_type=mime_type)


@pytest.mark.parametrize("mime_type", ["text/plain", "application/json; charset=utf-8"])
def test_text_that_a_server_sends_as_binary_data_is_read(mime_type: str) -> None:
    outcome = resource_outcome([blob('["grüß"]'.encode(), mime_type)])
    assert outcome.text == '[memo://one]\n["grüß"]'


@pytest.mark.parametrize(("mime_type", "suffix"), [("application/pdf", ".pdf"), (None, ".bin")])
def test_binary_data_is_saved_where_the_model_can_read_it(
    tmp_path: Path, mime_type: str | None, suffix: str
) -> None:
    data = b"%PDF\x00\xff"
    outcome = resource_outcome([blob(data, mime_type)], save_below(tmp_path / "outputs"))
    (file,) = (tmp_path / "outputs").iterdir()
    assert (file.suffix, file.read_bytes()) == (suffix, data)
    assert str(file) in outcome.text


def test_binary_data_that_cannot_be_saved_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "outputs").write_text("a file, no folder")
    outcome = resource_outcome([blob(b"\x00", None)], save_below(tmp_path / "outputs"))
    assert "could not be saved" in outcome.text


def test_structured_content_that_repeats_binary_data_is_not_sent_as_text(tmp_path: Path) -> None:
    sound = types.AudioContent(
        type="audio", data=base64.b64encode(b"RIFF" * 99).decode(), mime_type="audio/wav"
    )
    for block, text_part in ((image(PNG + b"x" * 99), "[pictures only]"), (sound, ".wav")):
        structured = {"content": [block.model_dump()]}
        result = types.CallToolResult(content=[block], structured_content=structured)
        outcome = tool_outcome(result, save_below(tmp_path))
        assert block.data not in outcome.text
        assert text_part in outcome.text
        assert outcome.raw_output is None
    empty = types.AudioContent(type="audio", data="", mime_type="audio/wav")
    outcome = tool_outcome(types.CallToolResult(content=[empty], structured_content={"a": 1}))
    assert outcome.raw_output == {"structuredContent": {"a": 1}}
