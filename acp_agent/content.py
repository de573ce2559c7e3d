"""Content blocks: what a user sends, an agent shows, and a tool returns.

The types have the shape of the Model Context Protocol's content blocks, which the Agent Client
Protocol shares, so content from an editor survives a round trip unchanged. There are many of them
and none contains a cycle, so the garbage collector skips them (`gc=False`).
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct, field

JsonObject = dict[str, Any]  # JSON that is passed on without being interpreted

# Characters that control a terminal, are invisible, or change how their neighbours are displayed:
# controls except tab and newline, soft hyphens, zero-width characters, fillers, bidirectional
# controls (Unicode Standard Annex 9), annotation marks, tags, line separators. Joiners between
# characters outside ASCII are allowed: some scripts and emoji need them.
HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
    "|\r(?!\n)|(?<![^\x00-\x7f\u200b-\u200f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f\u200b-\u200f])"
)


_CONTROLS = bytes(code for code in (*range(0x20), 0x7F) if code not in b"\t\n")
# Returned unchanged to the peer, and never shown.
_OPAQUE = frozenset({"_meta", "elicitationId", "nextCursor", "requestState"})
IMAGE_LIMIT = 5_000_000  # bytes; the smallest limit of the providers
IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})


def escaped(text: str) -> str:
    """Return `text` with hidden characters escaped, such as U+202E as six ASCII characters."""
    if text.isascii():  # the common case, and fast for megabytes of text
        plain = text.encode().translate(None, _CONTROLS)
        return text if len(plain) == len(text) else HIDDEN.sub(_written_out, text)
    return HIDDEN.sub(_written_out, text)


def escaped_values(value: Any) -> Any:  # JSON, of any kind
    """Return a JSON value with hidden characters in its strings and names escaped."""
    match value:
        case str():
            return escaped(value)
        case list():
            return [escaped_values(item) for item in value]
        case dict():
            return {
                escaped(name): item if name in _OPAQUE else escaped_values(item)
                for name, item in value.items()
            }
        case _:
            return value


def _written_out(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0xA0:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def is_deeper(value: object, levels: int) -> bool:
    """Return whether a JSON value is nested deeper than `levels`."""
    if not isinstance(value, dict | list):
        return False
    items = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(is_deeper(item, levels - 1) for item in items)


def as_object(value: object) -> JsonObject:
    """Return a JSON object unchanged, and an empty object for any other value."""
    return value if isinstance(value, dict) else {}


def printable_line(text: str, limit: int | None = None) -> str:
    """Return `text` as one line of printable characters, cut to `limit` characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if limit is None or len(line) <= limit else line[: limit - 1] + "…"


class _Block(
    Struct,
    frozen=True,
    kw_only=True,
    tag_field="type",
    omit_defaults=True,
    rename="camel",
    gc=False,
):
    annotations: JsonObject | None = None
    meta: JsonObject | None = field(name="_meta", default=None)


class TextBlock(_Block, frozen=True, kw_only=True, tag="text"):
    """Plain text or Markdown."""

    text: str


class ImageBlock(_Block, frozen=True, kw_only=True, tag="image"):
    """A picture: base64 `data` of the given media type."""

    data: str
    mime_type: str
    uri: str | None = None


class AudioBlock(_Block, frozen=True, kw_only=True, tag="audio"):
    """A sound: base64 `data` of the given media type."""

    data: str
    mime_type: str


class ResourceLinkBlock(_Block, frozen=True, kw_only=True, tag="resource_link"):
    """A resource that the agent can fetch itself."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None


class ResourceContents(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False
):
    """The body of an embedded resource: `text`, or base64 `blob`."""

    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None
    meta: JsonObject | None = field(name="_meta", default=None)


class ResourceBlock(_Block, frozen=True, kw_only=True, tag="resource"):
    """A resource with its contents."""

    resource: ResourceContents


ContentBlock = TextBlock | ImageBlock | AudioBlock | ResourceLinkBlock | ResourceBlock


class ContentPart(Struct, frozen=True, tag_field="type", tag="content", gc=False):
    """A content block shown by a tool call."""

    content: ContentBlock


class DiffPart(
    Struct, frozen=True, tag_field="type", tag="diff", omit_defaults=True, rename="camel", gc=False
):
    """A changed file: absolute path, complete old text (None: a new file) and new text."""

    path: str
    new_text: str
    old_text: str | None = None


class TerminalPart(Struct, frozen=True, tag_field="type", tag="terminal", rename="camel", gc=False):
    """A live terminal of the editor."""

    terminal_id: str


CallContent = ContentPart | DiffPart | TerminalPart


def text_part(text: str) -> ContentPart:
    """Return `text` as content of a tool call."""
    return ContentPart(TextBlock(text=text))


class Location(Struct, frozen=True, omit_defaults=True, gc=False):
    """A position in a file: absolute path and, if known, a line counted from 1."""

    path: str
    line: int | None = None


# -- Images


def image_type(data: bytes) -> str | None:
    """Return the media type of an image by its first bytes; None if models do not accept it."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return None


def image_block(data: bytes, media_type: str) -> ImageBlock:
    """Return an image as a content block."""
    import base64  # noqa: PLC0415 - rarely needed

    return ImageBlock(data=base64.b64encode(data).decode("ascii"), mime_type=media_type)
