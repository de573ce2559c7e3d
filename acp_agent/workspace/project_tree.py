"""A project's files as a short tree: its top level, and the next one as far as there is room."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from acp_agent.errors import WorkspaceError
from acp_agent.workspace.file_io import display_name
from acp_agent.workspace.search import list_files

LINES = 40
CHARACTERS = 1_500
_FILES = 20_000  # names that are looked at
_SECONDS = 0.15
_NAME = 60  # characters of a name
_IN_FOLDER = 8  # entries that are shown of a folder on the next level
# Named by nobody who lists a project for others; hidden files are left out as well.
_SECRETS = ("*.key", "*.kdbx", "*.p12", "*.pem", "*.pfx", "*credential*", "*secret*", "id_*")
_MARKUP = re.compile(r"[`<>\"]")  # what could end the place that a name is quoted in


async def project_tree(folder: Path) -> str:
    """Return the files below a folder that are not ignored, hidden or secret; "" if there are none.

    Takes a fraction of a second, and leaves out what is not found in that time.
    """
    try:
        names = await list_files(folder, limit=_FILES, timeout=_SECONDS, partial=True)
    except WorkspaceError:  # a listing is a convenience
        return ""
    return draw_tree(map(os.fsdecode, names), complete=len(names) < _FILES)


def safe_name(name: str, limit: int = _NAME) -> str:
    """Return the name of a file or a branch as one short line without markup."""
    name = _MARKUP.sub("?", display_name(name))
    return name if len(name) <= limit else f"{name[: limit - 1]}…"


class _Folder:
    """A folder of the tree, with the number of files below it."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.folders: dict[str, _Folder] = {}
        self.count = 0


def draw_tree(names: Iterable[str], *, complete: bool = True) -> str:
    """Return the tree of these files, relative to one folder, within `LINES` and `CHARACTERS`.

    Args:
        names: the files.
        complete: whether those are all; else folders are shown without the number of files.
    """
    top = _Folder()
    for name in names:
        parts = name.split("/")
        if not any(map(_is_left_out, parts)):
            _add(top, parts)
    blocks = [[line] for line in _lines(top, LINES, "", complete)]
    order = sorted(top.folders)[: len(blocks)]
    left = LINES - len(blocks)
    room = CHARACTERS - sum(len(line) + 1 for (line,) in blocks)
    for name in sorted(order, key=lambda one: -top.folders[one].count):
        lines = _lines(top.folders[name], _IN_FOLDER, "  ", complete)
        size = sum(len(line) + 1 for line in lines)
        if len(lines) <= left and size <= room:
            blocks[order.index(name)] += lines
            left, room = left - len(lines), room - size
    return "\n".join(line for block in blocks for line in block)[:CHARACTERS]


def _is_left_out(name: str) -> bool:
    return name.startswith(".") or any(fnmatchcase(name.lower(), one) for one in _SECRETS)


def _add(folder: _Folder, parts: Sequence[str]) -> None:
    folder.count += 1
    for part in parts[:-1]:
        folder = folder.folders.setdefault(part, _Folder())
        folder.count += 1
    folder.files.append(parts[-1])


def _lines(folder: _Folder, limit: int, indent: str, complete: bool) -> list[str]:
    """What is in one folder: folders, then files, then how much more there is."""
    lines = [
        f"{indent}{safe_name(name)}/{_count(folder.folders[name]) if complete else ''}"
        for name in sorted(folder.folders)
    ]
    lines += [f"{indent}{safe_name(name)}" for name in sorted(folder.files)]
    if len(lines) > limit:
        lines[limit - 1 :] = [f"{indent}… {len(lines) - limit + 1:,} more"]
    return lines


def _count(folder: _Folder) -> str:
    return f" ({folder.count:,} {'file' if folder.count == 1 else 'files'})"
