"""Explain TOML syntax errors, and find the line of a value.

The messages of Python's parser require knowledge of the grammar: "Cannot declare ('limits',) twice
(at line 3, column 8)". This module explains common errors in plain words. Python's parser does not
report the positions of values either. tomlkit writes a document back byte for byte, so a mark
inserted at a value before writing shows its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, MutableMapping, Sequence
from typing import TypeAlias, cast

import tomlkit
from tomlkit.exceptions import ParseError, TOMLKitError
from tomlkit.items import Array, Item

_POSITION = re.compile(r" \((?:at line (\d+), column \d+|at end of document)\)$")
_NAMES = re.compile(r"'([^']*)'")
_CURLY_QUOTES = re.compile("[\u2018\u2019\u201c\u201d]")
_OPEN_QUOTE = "a quote is not closed in its line"
_BACKSLASH = "a backslash in double quotes (single quotes take it as it is)"
_MARK = "a4b1e0c7-line-of-this-value-9d52"
Key: TypeAlias = str | int


def explain_syntax_error(text: str, error: ValueError | RecursionError) -> tuple[int | None, str]:
    """Return the line of a syntax error, from 1, if it is known, and its explanation."""
    if isinstance(error, RecursionError):
        return syntax_error_line(text), "nested too deeply"
    message = str(error)
    position = _POSITION.search(message)
    line = int(position[1]) if position is not None and position[1] else syntax_error_line(text)
    reason = message if position is None else message[: position.start()]
    lines = text.splitlines()
    if line is not None and line <= len(lines) and _CURLY_QUOTES.search(lines[line - 1]):
        return line, "it has curly quotes; use straight ones"
    for prefix, explain in _REASONS:
        if reason.startswith(prefix):
            return line, explain(reason)
    return line, reason


def _duplicate_table(reason: str) -> str:
    return f"the table [{'.'.join(_NAMES.findall(reason))}] is there twice"


# The beginnings of tomllib's reasons (Python 3.11 to 3.14), with their explanations.
_REASONS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("Cannot declare", _duplicate_table),
    ("Cannot overwrite a value", lambda _: "a key is there twice"),
    ("Duplicate inline table key", lambda _: "a key is there twice"),
    ("Invalid value", lambda _: "a value cannot be read (text goes in quotes)"),
    ("Expected newline", lambda _: "more follows than one value (text goes in quotes)"),
    ("Illegal character '\\n'", lambda _: _OPEN_QUOTE),
    ("Found invalid character '\\n'", lambda _: _OPEN_QUOTE),  # in single quotes
    ("Unterminated string", lambda _: "a quote is not closed"),
    ("Expected \"'", lambda _: "a quote is not closed"),
    ("Invalid hex value", lambda _: _BACKSLASH),
    ("Unescaped '\\'", lambda _: _BACKSLASH),
    ("Unclosed", lambda _: "a bracket is not closed, or a comma is missing"),
    ("Expected ']'", lambda _: "a bracket is not closed"),
    ("Expected '='", lambda _: "a = is missing behind a key"),
    ("Invalid statement", lambda _: "a line is neither `key = value` nor `[table]`"),
)


def find_lines(text: str, paths: Sequence[Sequence[Key]]) -> list[int | None]:
    """Return the lines, from 1, of the values at `paths`.

    If a path ends early, because a key is missing, its line is that of the table in which the key
    is missing. A table without a header begins at its first value.

    Args:
        text: a whole TOML document.
        paths: paths from the top: keys of tables, and positions (from 0) in arrays.

    Returns:
        A line for each path; None if the text is not TOML, or no part of the path exists.
    """
    try:
        document = tomlkit.parse(text)
    except TOMLKitError:
        return [None] * len(paths)
    marks = [f"{_MARK}{number}." for number in range(len(paths))]
    line_breaks = [_mark(document, path, mark) for path, mark in zip(paths, marks, strict=True)]
    document_text = document.as_string()
    for mark, breaks in zip(marks, line_breaks, strict=True):
        document_text = document_text.replace(mark, mark + "\n" * breaks)
    lines = [
        document_text.count("\n", 0, offset) + 1
        if (offset := document_text.find(mark)) >= 0
        else None
        for mark in marks
    ]
    if None in lines and len(paths) > 1:  # another mark may replace a whole table
        return [
            find_lines(text, [path])[0] if line is None else line
            for path, line in zip(paths, lines, strict=True)
        ]
    return lines


def syntax_error_line(text: str) -> int | None:
    """Return the line of the first syntax error, from 1, or None if there is none."""
    try:
        tomlkit.parse(text)
    except ParseError as error:
        return error.line
    except TOMLKitError:
        return None
    return None


def _mark(document: object, path: Sequence[Key], mark: str) -> int:
    """Insert `mark` at the end of `path`, as far as it exists; return the line breaks it hides."""
    parent: object = None
    node = document
    last_key: Key = ""
    for key in path:
        try:
            parent, node, last_key = node, _as_mapping(node)[key], key
        except (LookupError, TypeError, TOMLKitError):
            break
    while parent is not None:
        if isinstance(parent, Array) or isinstance(node, bool):
            # Array elements have no whitespace of their own, and tomlkit returns plain booleans.
            breaks = node.as_string().count("\n") if isinstance(node, Item) else 0
            _as_mapping(parent)[last_key] = mark
            return breaks
        if isinstance(node, Item):
            node.trivia.indent = mark + node.trivia.indent
        # tomlkit does not show whether a table has a header, so its first value is marked too.
        if not isinstance(node, dict | list) or isinstance(node, Array) or not node:
            break
        last_key = 0 if isinstance(node, list) else next(iter(node))
        parent, node = node, _as_mapping(node)[last_key]
    return 0


def _as_mapping(node: object) -> MutableMapping[Key, object]:
    """Return `node` as a table or an array; using anything else as one raises TypeError."""
    return cast("MutableMapping[Key, object]", node)
