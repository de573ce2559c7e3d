"""Where in a TOML text a value stands: what an error message about that value points at.

No TOML parser of Python's tells positions. tomlkit, however, writes a document back byte for byte,
so a mark that is put at a value before the document is written shows the line that it stands on.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import TypeAlias, cast

import tomlkit
from tomlkit.exceptions import ParseError, TOMLKitError
from tomlkit.items import Array, Item

_MARK = "a4b1e0c7-line-of-this-value-9d52"

Key: TypeAlias = str | int


def lines_of(text: str, paths: Sequence[Sequence[Key]]) -> list[int | None]:
    """The lines, counted from 1, of the values that `paths` lead to.

    Where a path ends early, as for a key that is missing, it is the line of the table that the key
    is missing from. A table without a header of its own is where its first value is.

    Args:
        text: a whole TOML document.
        paths: ways from the top: keys of tables, and positions (from 0) of arrays.

    Returns:
        A line for each path; None where the text is no TOML, or nothing of the path exists.
    """
    try:
        document = tomlkit.parse(text)
    except TOMLKitError:
        return [None] * len(paths)
    marks = [f"{_MARK}{number}." for number in range(len(paths))]
    hidden = [_mark(document, path, mark) for path, mark in zip(paths, marks, strict=True)]
    written = document.as_string()
    for mark, breaks in zip(marks, hidden, strict=True):
        written = written.replace(mark, mark + "\n" * breaks)
    return [written.count("\n", 0, at) + 1 if (at := written.find(m)) >= 0 else None for m in marks]


def syntax_error_line(text: str) -> int | None:
    """The line, counted from 1, at which `text` stops being TOML, or None where it is TOML."""
    try:
        tomlkit.parse(text)
    except ParseError as error:
        return error.line
    except TOMLKitError:
        return None
    return None


def _mark(document: object, path: Sequence[Key], mark: str) -> int:
    """Put `mark` where `path` leads, or as far as it exists; the line breaks that this took out."""
    parent: object = None
    node = document
    reached: Key = ""
    for key in path:
        try:
            parent, node, reached = node, _keyed(node)[key], key
        except (LookupError, TypeError, TOMLKitError):
            break
    while parent is not None:
        if isinstance(parent, Array) or isinstance(node, bool):
            # Elements have no space of their own before them, and tomlkit gives booleans bare.
            breaks = node.as_string().count("\n") if isinstance(node, Item) else 0
            _keyed(parent)[reached] = mark
            return breaks
        if isinstance(node, Item):
            node.trivia.indent = mark + node.trivia.indent
        # Whether a table has a header is not told: its first value is marked as well.
        if not isinstance(node, dict | list) or isinstance(node, Array) or not node:
            break
        reached = 0 if isinstance(node, list) else next(iter(node))
        parent, node = node, _keyed(node)[reached]
    return 0


def _keyed(node: object) -> MutableMapping[Key, object]:
    """`node` as a table or an array; anything else raises TypeError when it is used as one."""
    return cast("MutableMapping[Key, object]", node)
