"""Results of MCP servers, for the model and for the user."""

from __future__ import annotations

import base64
import binascii
import hashlib
import mimetypes
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import mcp_types as types
import msgspec

from acp_agent.content import (
    IMAGE_LIMIT,
    CallContent,
    ContentPart,
    ImageBlock,
    JsonObject,
    image_block,
    image_type,
    text_part,
)
from acp_agent.errors import WorkspaceError
from acp_agent.tools.base import Outcome
from acp_agent.tools.quoting import code_block, first_line, shorten
from acp_agent.workspace.file_io import replace_file

MAX_SHOWN_LENGTH = 4_000  # characters of text that the call shows
# Characters that are taken in at all: looking for secrets in more would hold up everything else.
TEXT_LIMIT = 2_000_000
_MAX_RAW_BYTES = 20_000  # bytes of structured content that the call carries
_MAX_COMPARED = 10_000  # characters of binary data that are searched for in structured content
_MAX_IMAGES = 8  # of one result
_MAX_NAME = 200  # characters of a name or an address
_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/yaml")
_SUFFIXES = {"audio/wav": ".wav", "audio/ogg": ".ogg", "audio/flac": ".flac", "audio/webm": ".webm"}
Resource = types.TextResourceContents | types.BlobResourceContents
Save = Callable[[bytes, str], str]


def save_below(outputs: Path) -> Save:
    """Return a function that saves binary data of a type below `outputs` and describes where."""

    def save(data: bytes, mime_type: str) -> str:
        suffix = _SUFFIXES.get(mime_type) or mimetypes.guess_extension(mime_type) or ".bin"
        path = outputs.resolve() / f"{hashlib.sha256(data).hexdigest()[:16]}{suffix}"
        try:
            replace_file(path, data, label=str(path))
        except WorkspaceError as error:
            return f"could not be saved: {error}"
        return f"is saved in {path}"

    return save


def _leave_out(_data: bytes, _mime_type: str) -> str:
    return "is left out"


def tool_outcome(result: types.CallToolResult, save: Save = _leave_out) -> Outcome:
    """Return the result of a call. Blocks where `save` does.

    Structured content is what the text says too, by the specification; where there is no text, it
    is the text.
    """
    texts: list[str] = []
    images: list[ImageBlock] = []
    for block in result.content:
        _add_block(block, texts, images, save)
    structured = _json(result.structured_content)
    if any(data and data[:_MAX_COMPARED] in structured for data in _binary_data(result.content)):
        structured = ""  # it repeats a picture or a sound, which no model reads as text
    if structured and not any(text.strip() for text in texts):
        texts.append(structured)
    raw: JsonObject | None = None
    if structured and len(structured) <= _MAX_RAW_BYTES:
        raw = {"structuredContent": result.structured_content}
    return _outcome(texts, images, failed=result.is_error, raw=raw)


def _binary_data(content: Sequence[types.ContentBlock]) -> Iterator[str]:
    """Yield the base64 data of the blocks of a result."""
    for block in content:
        match block:
            case types.ImageContent() | types.AudioContent():
                yield block.data
            case types.EmbeddedResource(resource=types.BlobResourceContents(blob=blob)):
                yield blob
            case _:
                continue


def resource_outcome(contents: Sequence[Resource], save: Save = _leave_out) -> Outcome:
    """Return the contents of a resource that was read. Blocks where `save` does."""
    texts: list[str] = []
    images: list[ImageBlock] = []
    for resource in contents:
        _add_resource(resource, texts, images, save)
    return _outcome(texts, images, failed=False, raw=None)


def prompt_text(result: types.GetPromptResult) -> str:
    """Return a prompt's messages as one text, with their roles where not all are the user's."""
    is_user_only = all(message.role == "user" for message in result.messages)
    sections: list[str] = []
    for message in result.messages:
        texts: list[str] = []
        _add_block(message.content, texts, [], _leave_out)
        text = "\n".join(texts)
        sections.append(text if is_user_only else f"{message.role.capitalize()}:\n{text}")
    return "\n\n".join(sections)


def _outcome(
    texts: list[str], images: list[ImageBlock], *, failed: bool, raw: JsonObject | None
) -> Outcome:
    if len(images) > _MAX_IMAGES:
        texts.append(f"[{len(images) - _MAX_IMAGES} more pictures are left out]")
    images = images[:_MAX_IMAGES]
    text = "\n".join(texts)
    if len(text) > TEXT_LIMIT:
        omitted = len(text) - TEXT_LIMIT
        text = f"{text[:TEXT_LIMIT]}\n[{omitted:,} characters are left out: too much text]"
    content: list[CallContent] = []
    if text.strip():
        content.append(text_part(code_block(shorten(text, MAX_SHOWN_LENGTH), "")))
    content += [ContentPart(image) for image in images]
    return Outcome(
        text=text if text.strip() else ("[pictures only]" if images else "[nothing]"),
        failed=failed,
        images=tuple(images),
        content=tuple(content),
        raw_output=raw,
    )


def _add_block(
    block: types.ContentBlock, texts: list[str], images: list[ImageBlock], save: Save
) -> None:
    match block:
        case types.TextContent():
            texts.append(block.text)
        case types.ImageContent():
            _add_image(block.data, block.mime_type, texts, images)
        case types.AudioContent():
            kind = first_line(block.mime_type, _MAX_NAME)
            sound = _decode(block.data)
            fate = "is left out" if sound is None else save(sound, block.mime_type)
            texts.append(f"[a sound of type {kind} {fate}]")
        case types.ResourceLink():
            texts.append(
                f"[resource {first_line(block.name, _MAX_NAME)}: {first_line(block.uri, 1_000)}]"
            )
        case types.EmbeddedResource():
            _add_resource(block.resource, texts, images, save)


def _add_resource(
    resource: Resource, texts: list[str], images: list[ImageBlock], save: Save
) -> None:
    name = first_line(resource.uri, 1_000)
    if isinstance(resource, types.TextResourceContents):
        texts.append(f"[{name}]\n{resource.text}")
        return
    mime_type = resource.mime_type or "unknown"
    if mime_type.startswith("image/"):
        _add_image(resource.blob, mime_type, texts, images)
        return
    data = _decode(resource.blob)
    if data is not None and mime_type.startswith(_TEXT_TYPES):
        texts.append(f"[{name}]\n{data.decode('utf-8', 'replace')}")
        return
    fate = "is left out" if data is None else save(data, mime_type)
    texts.append(f"[{name}: binary data of type {first_line(mime_type, _MAX_NAME)} {fate}]")


def _add_image(data: str, declared_type: str, texts: list[str], images: list[ImageBlock]) -> None:
    """Add a picture that models can see; its type is read from its bytes, not as declared."""
    raw = _decode(data)
    if raw is None:
        texts.append("[a picture that is no valid base64 is left out]")
        return
    kind = image_type(raw[:32])
    if kind is None:
        texts.append(f"[a picture of type {first_line(declared_type, _MAX_NAME)} is left out]")
    elif len(raw) > IMAGE_LIMIT:
        texts.append(f"[a picture of {len(raw):,} bytes is left out: too large]")
    else:
        images.append(image_block(raw, kind))


def _decode(data: str) -> bytes | None:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None


def _json(value: object) -> str:
    if value is None:
        return ""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return ""
