"""Content blocks, texts and diffs, prepared for a page."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from acp_agent.content import (
    HIDDEN,
    AudioBlock,
    ContentBlock,
    DiffPart,
    ImageBlock,
    ResourceBlock,
    ResourceLinkBlock,
    TextBlock,
    image_type,
)
from acp_agent.diffs import NO_END, Hunk, Mark, changed_blocks, hunks, split_lines
from acp_agent.view.page import Block, Diff, DiffKind, DiffLines, Picture
from acp_agent.workspace.scrub import scrub

PICTURE_LIMIT = 2_000_000  # bytes of one picture
_KINDS: dict[Mark, DiffKind] = {" ": "same", "-": "removed", "+": "added"}
TEXT_LIMIT = 60_000  # characters of one text
PAGE_LIMIT = 12_000_000  # characters of all texts; later ones are limited to `SMALL_LIMIT`
SMALL_LIMIT = 1_500  # characters of a text
LINE_LIMIT = 400  # characters of a title
_HEAD = 0.7  # the share of a cut text that its beginning gets


def blocks(
    content: Iterable[ContentBlock], clean: TextCleaner, *, markdown: bool = False
) -> list[Block]:
    """Return content for the page; `markdown` says whether its texts are Markdown."""
    return [_block(block, clean, markdown=markdown) for block in content]


def _block(block: ContentBlock, clean: TextCleaner, *, markdown: bool) -> Block:
    match block:
        case TextBlock():
            return Block(text=clean.text(block.text), markdown=markdown)
        case ImageBlock():
            return Block(picture=picture(block, clean), label=clean.line(block.uri or ""))
        case AudioBlock():
            return Block(label=clean.line(block.mime_type))
        case ResourceLinkBlock():
            name = block.title or block.name
            return Block(label=clean.line(f"{name} ({block.uri})" if name else block.uri))
        case ResourceBlock():
            resource = block.resource
            return Block(text=clean.text(resource.text or ""), label=clean.line(resource.uri))


def picture(block: ImageBlock, clean: TextCleaner) -> Picture:
    """Return a picture, omitted if it is too large or has an unknown format.

    The first bytes determine its media type, not the declared type: markup (SVG) is not accepted.
    """
    media_type = clean.line(block.mime_type)
    size = len(block.data) * 3 // 4 - block.data[-2:].count("=")
    if size > PICTURE_LIMIT:
        clean.omitted += size
        return Picture(source="", media_type=media_type, size=size)
    try:
        data = base64.b64decode(block.data, validate=True)
    except (binascii.Error, ValueError):
        return Picture(source="", media_type=media_type, size=size)
    detected = image_type(data)
    if detected is None or not clean.has_room_for(len(block.data)):
        return Picture(source="", media_type=detected or media_type, size=size)
    encoded = base64.b64encode(data).decode("ascii")
    return Picture(source=f"data:{detected};base64,{encoded}", media_type=detected, size=len(data))


def diff(part: DiffPart, clean: TextCleaner) -> Diff:
    """Return the changes of a file; long texts are cut in the middle."""
    old = split_lines(clean.scrub_text(part.old_text or ""))
    new = split_lines(clean.scrub_text(part.new_text))
    blocks = changed_blocks(old, new)
    return Diff(
        path=clean.line(part.path),
        lines=[
            DiffLines(kind=kind, text=clean.fit(visible("".join(lines))))
            for hunk in hunks(old, new, blocks)
            for kind, lines in _pieces(hunk)
        ],
        added=sum(block.new_end - block.new_start for block in blocks),
        removed=sum(block.old_end - block.old_start for block in blocks),
        new=part.old_text is None,
    )


def _pieces(hunk: Hunk) -> Iterator[tuple[DiffKind, list[str]]]:
    yield "place", [hunk.header]
    for mark, lines in hunk.runs:
        yield from _mark_lines(_KINDS[mark], mark, lines)


def _mark_lines(
    kind: DiffKind, mark: str, lines: Sequence[str]
) -> Iterator[tuple[DiffKind, list[str]]]:
    if lines[-1].endswith("\n"):
        yield kind, [f"{mark}{line}" for line in lines]
        return
    yield kind, [f"{mark}{line}" for line in (*lines[:-1], f"{lines[-1]}\n")]
    yield "unended", [NO_END]


def visible(text: str) -> str:
    """Return `text` with hidden characters made visible: `␛` for escape, `⟨U+202E⟩` for a mark."""
    return HIDDEN.sub(_name, text.replace("\r\n", "\n"))


def _name(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)  # Unicode symbols for control characters
    if code == 0x7F:
        return "\u2421"
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else f"⟨U+{code:04X}⟩"


class TextCleaner:
    """Prepares texts for a page, and limits their total size.

    Attributes:
        omitted: the number of characters and bytes that were left out.
    """

    def __init__(self, secrets: Sequence[str], *, room: int = PAGE_LIMIT) -> None:
        """Create the object with all of its room.

        Args:
            secrets: values that the page must not contain.
            room: characters after which texts are cut to `SMALL_LIMIT`.
        """
        self.omitted = 0
        self._secrets = secrets
        self._room = room

    def line(self, text: str) -> str:
        """Return a title or a name in one line."""
        line = " ".join(visible(scrub(text, self._secrets)).split())
        return line if len(line) <= LINE_LIMIT else f"{line[: LINE_LIMIT - 1]}…"

    def scrub_text(self, text: str) -> str:
        """Return the complete text without secrets, for a diff of whole texts."""
        return scrub(text, self._secrets)

    def text(self, text: str) -> str:
        """Return a text; a long one has `[… 1,234 …]` in place of its middle."""
        return self.fit(visible(scrub(text, self._secrets)))

    def fit(self, text: str) -> str:
        """Return a clean text, cut in the middle if it is too long."""
        limit = TEXT_LIMIT if self._room > 0 else SMALL_LIMIT
        if len(text) > limit:
            head = int(limit * _HEAD)
            tail = limit - head
            omitted = len(text) - limit
            self.omitted += omitted
            text = f"{text[:head]}\n[… {omitted:,} …]\n{text[-tail:]}"
        self._room -= len(text)
        return text

    def has_room_for(self, size: int) -> bool:
        """Return whether this many characters fit, and reserve their room if so."""
        if self._room < size:
            self.omitted += size
            return False
        self._room -= size
        return True

    def json(self, text: str) -> str:
        """Return indented JSON; the text itself if it is not valid JSON."""
        try:
            value = json.loads(text)
            # Scrub the values: JSON may contain a secret with escapes.
            indented = json.dumps(self._scrub_values(value), ensure_ascii=False, indent=2)
        except (ValueError, RecursionError):
            return self.text(text)
        return self.text(indented)

    def _scrub_values(self, value: Any) -> Any:  # JSON of any type
        match value:
            case str():
                return scrub(value, self._secrets)
            case dict():
                return {
                    scrub(key, self._secrets): self._scrub_values(item)
                    for key, item in value.items()
                }
            case list():
                return [self._scrub_values(item) for item in value]
            case _:
                return value
