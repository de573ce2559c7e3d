"""What a tool or a resource of an MCP server gave, for the model and for the user."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

import mcp_types as types
import msgspec

from acp_agent.content import CallContent, ContentPart, ImageBlock, JsonObject, text_part
from acp_agent.tools.base import Outcome
from acp_agent.tools.images import IMAGE_LIMIT, image_block, image_type
from acp_agent.tools.quoting import fenced, one_line, shorten

SHOWN_LIMIT = 4_000  # characters of text that the call shows
# Characters that are taken in at all: looking for secrets in more would hold up everything else.
TEXT_LIMIT = 2_000_000
_RAW_LIMIT = 20_000  # bytes of structured content that the call carries
_IMAGES = 8  # of one result
_NAME = 200  # characters of a name or an address

Resource = types.TextResourceContents | types.BlobResourceContents


def tool_outcome(result: types.CallToolResult) -> Outcome:
    """The result of a call.

    Structured content is what the text says too, by the specification; where there is no text, it
    is the text.
    """
    texts: list[str] = []
    images: list[ImageBlock] = []
    for block in result.content:
        _take(block, texts, images)
    structured = _json(result.structured_content)
    if structured and not any(text.strip() for text in texts):
        texts.append(structured)
    raw: JsonObject | None = None
    if structured and len(structured) <= _RAW_LIMIT:
        raw = {"structuredContent": result.structured_content}
    return _outcome(texts, images, failed=result.is_error, raw=raw)


def resource_outcome(contents: Sequence[Resource]) -> Outcome:
    """The contents of a resource that was read."""
    texts: list[str] = []
    images: list[ImageBlock] = []
    for one in contents:
        _take_resource(one, texts, images)
    return _outcome(texts, images, failed=False, raw=None)


def prompt_text(result: types.GetPromptResult) -> str:
    """A prompt's messages as one text; who says what is told where not all is the user's."""
    alone = all(message.role == "user" for message in result.messages)
    parts: list[str] = []
    for message in result.messages:
        texts: list[str] = []
        _take(message.content, texts, [])
        text = "\n".join(texts)
        parts.append(text if alone else f"{message.role.capitalize()}:\n{text}")
    return "\n\n".join(parts)


def _outcome(
    texts: list[str], images: list[ImageBlock], *, failed: bool, raw: JsonObject | None
) -> Outcome:
    if len(images) > _IMAGES:
        texts.append(f"[{len(images) - _IMAGES} more pictures are left out]")
    images = images[:_IMAGES]
    text = "\n".join(texts)
    if len(text) > TEXT_LIMIT:
        left_out = len(text) - TEXT_LIMIT
        text = f"{text[:TEXT_LIMIT]}\n[{left_out:,} characters are left out: too much text]"
    shown: list[CallContent] = []
    if text.strip():
        shown.append(text_part(fenced(shorten(text, SHOWN_LIMIT), "")))
    shown += [ContentPart(image) for image in images]
    return Outcome(
        text=text if text.strip() else ("[pictures only]" if images else "[nothing]"),
        failed=failed,
        images=tuple(images),
        content=tuple(shown),
        raw_output=raw,
    )


def _take(block: types.ContentBlock, texts: list[str], images: list[ImageBlock]) -> None:
    match block:
        case types.TextContent():
            texts.append(block.text)
        case types.ImageContent():
            _take_image(block.data, block.mime_type, texts, images)
        case types.AudioContent():
            texts.append(f"[a sound of type {one_line(block.mime_type, _NAME)} is left out]")
        case types.ResourceLink():
            texts.append(f"[resource {one_line(block.name, _NAME)}: {one_line(block.uri, 1_000)}]")
        case types.EmbeddedResource():
            _take_resource(block.resource, texts, images)


def _take_resource(resource: Resource, texts: list[str], images: list[ImageBlock]) -> None:
    name = one_line(resource.uri, 1_000)
    if isinstance(resource, types.TextResourceContents):
        texts.append(f"[{name}]\n{resource.text}")
    elif (resource.mime_type or "").startswith("image/"):
        _take_image(resource.blob, resource.mime_type or "", texts, images)
    else:
        kind = one_line(resource.mime_type or "unknown", _NAME)
        texts.append(f"[{name}: binary data of type {kind} is left out]")


def _take_image(data: str, said: str, texts: list[str], images: list[ImageBlock]) -> None:
    """A picture that models can look at; what it is is found in its bytes, not in what is said."""
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        texts.append("[a picture that is no valid base64 is left out]")
        return
    kind = image_type(raw[:32])
    if kind is None:
        texts.append(f"[a picture of type {one_line(said, _NAME)} is left out]")
    elif len(raw) > IMAGE_LIMIT:
        texts.append(f"[a picture of {len(raw):,} bytes is left out: too large]")
    else:
        images.append(image_block(raw, kind))


def _json(value: object) -> str:
    if value is None:
        return ""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return ""
