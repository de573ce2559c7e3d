"""A change of a file as lines that a person reads, with or without colours."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from acp_agent.cli.output import lines_of
from acp_agent.cli.words import words
from protocol.v1 import types as acp

DiffStyle = Literal["bold", "added", "removed", "dim"]

LINES = 60  # of a diff that are shown
_CONTEXT = 2  # unchanged lines around a change
_COMPARED = 3_000  # lines between the first and the last change that are compared one by one


def shown_path(path: str, cwd: Path) -> str:
    """`path` relative to the folder that the session works in; as it is where it lies outside."""
    file = Path(path)
    if ".." not in file.parts and file.is_relative_to(cwd):
        return str(file.relative_to(cwd))
    return path


def diff_lines(part: acp.Diff, cwd: Path, *, limit: int = LINES) -> Iterator[tuple[str, DiffStyle]]:
    """The file's name, then its changed lines, each headed by `+`, `-` or a space.

    Args:
        part: the change.
        cwd: the folder that the session works in.
        limit: how many lines are shown; then a line says how many more there are.
    """
    yield f"{shown_path(part.path, cwd)}{words(' (new)') if part.old_text is None else ''}", "bold"
    lines = _changes(lines_of(part.old_text or ""), lines_of(part.new_text))
    for line in lines[:limit]:
        yield line, "added" if line[:1] == "+" else "removed" if line[:1] == "-" else "dim"
    if len(lines) > limit:
        yield words("... {count} more lines", count=len(lines) - limit), "dim"


def _changes(old: list[str], new: list[str]) -> list[str]:
    """A unified diff without its header.

    What both begin and end with is left out of the comparison, whose time grows with the square of
    the lines; where what is left is still long, all of it counts as changed.
    """
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    if len(old) + len(new) - 2 * (start + end) > _COMPARED:
        return [
            f"@@ -{start + 1},{len(old) - end - start} +{start + 1},{len(new) - end - start} @@",
            *(f"-{line}" for line in old[start : len(old) - end]),
            *(f"+{line}" for line in new[start : len(new) - end]),
        ]
    before = max(start - _CONTEXT, 0)
    after = max(end - _CONTEXT, 0)
    found = list(
        difflib.unified_diff(
            old[before : len(old) - after], new[before : len(new) - after], lineterm="", n=_CONTEXT
        )
    )[2:]
    return [_moved(line, before) if line.startswith("@@") else line for line in found]


def _moved(header: str, by: int) -> str:
    """A header of a hunk whose line numbers are `by` higher: `@@ -1,2 +1,3 @@`."""
    parts = header.split()
    for index in (1, 2):
        first, comma, count = parts[index][1:].partition(",")
        parts[index] = f"{parts[index][0]}{int(first) + by}{comma}{count}"
    return " ".join(parts)
