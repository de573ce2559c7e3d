"""Where in a TOML text a value stands: what an error message about that value points at.

No TOML parser of Python's tells positions. tomlkit, however, writes a document back byte for byte,
so a mark that is put at a value before the document is written shows the line that it stands on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import tomlkit
from tomlkit.exceptions import ParseError, TOMLKitError
from tomlkit.items import Array, Item

_MARK = "a4b1e0c7-line-of-this-value-9d52"

Key: TypeAlias = str | int


def line_of(text: str, path: Sequence[Key]) -> int | None:
    """The line, counted from 1, of the value that `path` (keys and list positions) leads to.

    Where the path ends early, as for a key that is missing, it is the line of the table that the
    key is missing from. A table without a header of its own is where its first value is.

    Args:
        text: a whole TOML document.
        path: keys of tables, and positions (from 0) of arrays.

    Returns:
        None where the text is no TOML, or nothing of the path exists.
    """
    try:
        document = tomlkit.parse(text)
    except TOMLKitError:
        return None
    trail = [document]
    for key in path:
        try:
            trail.append(trail[-1][key])  # type: ignore[index]  # a scalar raises TypeError
        except (LookupError, TypeError, TOMLKitError):
            break
    for depth in range(len(trail) - 1, 0, -1):
        line = _line(text, path[:depth])
        if line is not None:
            return line
    return None


def syntax_error_line(text: str) -> int | None:
    """The line, counted from 1, at which `text` stops being TOML, or None where it is TOML."""
    try:
        tomlkit.parse(text)
    except ParseError as error:
        return error.line
    except TOMLKitError:
        return None
    return None


def _line(text: str, path: Sequence[Key]) -> int | None:
    document = tomlkit.parse(text)  # anew: a mark cannot be taken out again
    parent: object = None
    node: object = document
    for key in path:
        parent, node = node, node[key]  # type: ignore[index]  # the path is known to exist
    if isinstance(parent, Array) or isinstance(node, bool):
        # Elements have no space of their own before them, and tomlkit gives booleans bare.
        parent[path[-1]] = _MARK  # type: ignore[index]  # the parent is what the key led into
    elif isinstance(node, Item):
        node.trivia.indent = _MARK + node.trivia.indent
    before, found, _ = document.as_string().partition(_MARK)
    if found:
        return before.count("\n") + 1
    below = [_line(text, [*path, key]) for key in _keys(node)]
    return min((line for line in below if line is not None), default=None)


def _keys(node: object) -> Iterable[Key]:
    if isinstance(node, list):
        return range(len(node))
    return list(node) if isinstance(node, dict) else []
