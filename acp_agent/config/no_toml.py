"""Where a text stops being TOML and why, in the words of those who write it.

Python's parser says where and why for those who know the grammar: "Cannot declare ('limits',)
twice (at line 3, column 8)". Here is what the usual mistakes are called by a person.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from acp_agent.config.lines import syntax_error_line

_PLACE = re.compile(r" \((?:at line (\d+), column \d+|at end of document)\)$")
_NAMES = re.compile(r"'([^']*)'")
_CURLY = re.compile("[\u2018\u2019\u201c\u201d]")


def syntax_error(text: str, error: ValueError | RecursionError) -> tuple[int | None, str]:
    """The line, counted from 1 where it is known, and the reason, of what keeps a text from TOML.

    Args:
        text: the document.
        error: what `tomllib` raised for it.
    """
    if isinstance(error, RecursionError):
        return syntax_error_line(text), "nested too deeply"
    said = str(error)
    place = _PLACE.search(said)
    line = int(place[1]) if place is not None and place[1] else syntax_error_line(text)
    reason = said if place is None else said[: place.start()]
    lines = text.splitlines()
    if line is not None and line <= len(lines) and _CURLY.search(lines[line - 1]):
        return line, "curly quotes stand where straight ones belong"
    for begins, told in _REASONS:
        if reason.startswith(begins):
            return line, told(reason)
    return line, reason


_OPEN_QUOTE = "a quote is not closed in its line"
_BACKSLASH = "a backslash in double quotes (single quotes take it as it is)"


def _table_twice(reason: str) -> str:
    return f"the table [{'.'.join(_NAMES.findall(reason))}] is there twice"


# How the reasons of tomllib begin, of Python 3.11 to 3.14, and what is said in their place.
_REASONS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("Cannot declare", _table_twice),
    ("Cannot overwrite a value", lambda _: "a key is there twice"),
    ("Duplicate inline table key", lambda _: "a key is there twice"),
    ("Invalid value", lambda _: "a value cannot be read (text goes in quotes)"),
    ("Expected newline", lambda _: "more follows than one value (text goes in quotes)"),
    ("Illegal character '\\n'", lambda _: _OPEN_QUOTE),
    ("Found invalid character '\\n'", lambda _: _OPEN_QUOTE),  # of single quotes
    ("Unterminated string", lambda _: "a quote is not closed"),
    ("Expected \"'", lambda _: "a quote is not closed"),
    ("Invalid hex value", lambda _: _BACKSLASH),
    ("Unescaped '\\'", lambda _: _BACKSLASH),
    ("Unclosed", lambda _: "a bracket is not closed, or a comma is missing"),
    ("Expected ']'", lambda _: "a bracket is not closed"),
    ("Expected '='", lambda _: "a = is missing behind a key"),
    ("Invalid statement", lambda _: "a line is neither `key = value` nor `[table]`"),
)
