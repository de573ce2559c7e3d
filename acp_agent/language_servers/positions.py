"""Convert places in a text: ours count lines and characters from 1, the protocol's units from 0."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from acp_agent.language_servers.wire import Position

UTF_8, UTF_16, UTF_32 = "utf-8", "utf-16", "utf-32"  # names of the protocol


_LINE_END = re.compile(r"\r\n|\n|\r")


def split_lines(text: str) -> list[str]:
    """Return the lines of a text as the protocol counts them, without their ends."""
    return _LINE_END.split(text)


def path_from_uri(uri: str) -> Path | None:
    """Return the path of a `file:` address, without `..`; None for any other."""
    try:
        url_parts = urlsplit(uri)
        path = unquote(url_parts.path, errors="strict")
    except (ValueError, UnicodeDecodeError):
        return None
    if url_parts.scheme != "file" or not path.startswith("/") or "\0" in path:
        return None
    return Path(os.path.normpath(path))


def to_position(lines: list[str], line: int, column: int, encoding: str) -> Position:
    """Return a place as a server with this encoding counts it.

    Args:
        line: from 1; what is beyond the text is its end.
        column: in characters, from 1.
    """
    index = min(max(line, 1), max(1, len(lines))) - 1
    before = (lines[index] if lines else "")[: max(column, 1) - 1]
    return Position(line=index, character=_count_units(before, encoding))


def to_column(lines: list[str], position: Position, encoding: str) -> int:
    """Return the column of a server's place, in characters from 1."""
    if not 0 <= position.line < len(lines):
        return 1
    text, units = lines[position.line], max(0, position.character)
    if encoding == UTF_32 or text.isascii():
        return min(units, len(text)) + 1
    column = 0
    for character in text:
        units -= _count_units(character, encoding)
        if units < 0:
            break
        column += 1
    return column + 1


def _count_units(text: str, encoding: str) -> int:
    if encoding == UTF_32 or text.isascii():
        return len(text)
    if encoding == UTF_8:
        return len(text.encode("utf-8", "replace"))
    return len(text.encode("utf-16-le", "replace")) // 2
