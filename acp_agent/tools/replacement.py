"""Replacing a text in a file without touching a byte around it."""

from __future__ import annotations

import bisect

from msgspec import Struct

from acp_agent.errors import ToolError
from acp_agent.tools.changes import hidden_value
from acp_agent.tools.nearest import explain_absence
from acp_agent.workspace.scrub import REPLACEMENT
from acp_agent.workspace.text import TextFile, with_lf

_LINES_NAMED = 10


class Replacement(Struct, frozen=True):
    """The whole text after a replacement, where the first one begins (a line from 1), how many."""

    text: str
    line: int
    count: int


def replace_text(file: TextFile, old: str, new: str, *, every: bool, shown: str) -> Replacement:
    """`old` replaced by `new`, once or everywhere; CRLF and LF match each other.

    What is put in gets the line endings of what it replaces, so a file that mixes them keeps all
    others.

    Raises:
        ToolError: `old` is empty, the same as `new`, not in the file, or there more than once.
    """
    old, new = with_lf(old), with_lf(new)
    if not old:
        raise ToolError(
            "the text to replace is empty",
            advice="give it in `old`, or use `write` for a whole file",
        )
    if old == new:
        raise ToolError("the text to replace and the new one are the same; nothing would change")
    text = with_lf(file.text)
    places = _occurrences(text, old)
    if not places and REPLACEMENT in old:
        raise hidden_value()
    if not places:
        raise ToolError(f"the text to replace is not in {shown}", advice=explain_absence(text, old))
    lines = [text.count("\n", 0, place) + 1 for place in places[: _LINES_NAMED + 1]]
    if len(places) > 1 and not every:
        named = ", ".join(str(line) for line in lines[:_LINES_NAMED])
        more = " and more" if len(places) > _LINES_NAMED else ""
        raise ToolError(
            f"the text to replace is in {shown} {len(places)} times (lines {named}{more})",
            advice="add lines around it in `old` until it is unique, or set `all`",
        )
    return Replacement(_splice(file, text, old, new, places), lines[0], len(places))


def _occurrences(text: str, part: str) -> list[int]:
    places = []
    at = text.find(part)
    while at >= 0:
        places.append(at)
        at = text.find(part, at + len(part))
    return places


def _splice(file: TextFile, text: str, old: str, new: str, places: list[int]) -> str:
    if "\r\n" not in file.text:
        return text.replace(old, new)
    # Where in `text` a line feed stood for CRLF, to find each place again in the file's own text.
    crlf: list[int] = []
    at = file.text.find("\r\n")
    while at >= 0:
        crlf.append(at - len(crlf))
        at = file.text.find("\r\n", at + 2)
    pieces = []
    done = 0
    for place in places:
        start = place + bisect.bisect_left(crlf, place)
        end = place + len(old) + bisect.bisect_left(crlf, place + len(old))
        line_end = text.find("\n", place)
        is_crlf = _has(crlf, line_end) if line_end >= 0 else file.newline == "\r\n"
        pieces.append(file.text[done:start])
        pieces.append(new.replace("\n", "\r\n") if is_crlf else new)
        done = end
    pieces.append(file.text[done:])
    return "".join(pieces)


def _has(items: list[int], item: int) -> bool:
    """Whether a sorted list has an item."""
    at = bisect.bisect_left(items, item)
    return at < len(items) and items[at] == item
