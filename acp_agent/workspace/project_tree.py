"""Draw a project's files as a short tree: the top level, and the second where it fits."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from acp_agent.errors import WorkspaceError
from acp_agent.sandbox.launch import Confine, unconfined
from acp_agent.workspace.file_io import display_name
from acp_agent.workspace.search import list_files

MAX_LINES = 40
MAX_LENGTH = 1_500
_MAX_FILES = 60_000  # maximum number of names
_MAX_SECONDS = 0.12
_INCOMPLETE = "… (incomplete: the project is large)"
_MAX_NAME = 60  # characters of a name
_MAX_FOLDER_ENTRIES = 8  # entries shown of each folder on the second level
# Hidden files, and files named like a key or a list of secrets.
_EXCLUDED_NAMES = re.compile(
    r"\..*|.*\.(key|kdbx|p12|pem|pfx)|.*(credential|secret).*|id_(rsa|dsa|ecdsa|ed25519).*",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"[`<>\"]")  # could end the quotation of a name in a prompt


async def project_tree(folder: Path, confine: Confine = unconfined) -> str | None:
    """Return a tree of the files below a folder that are not ignored, hidden or secret.

    Takes a fraction of a second and omits files not found in that time. Returns None if the files
    cannot be listed.
    """
    try:
        start = time.monotonic()
        names = await list_files(
            folder, limit=_MAX_FILES, timeout=_MAX_SECONDS, partial=True, confine=confine
        )
        is_late = time.monotonic() - start >= _MAX_SECONDS
    except WorkspaceError:  # the tree is optional
        return None
    is_complete = not is_late and len(names) <= _MAX_FILES
    if not names and not is_complete:
        return None
    return await asyncio.to_thread(draw_tree, map(os.fsdecode, names), complete=is_complete)


def safe_name(name: str, limit: int = _MAX_NAME) -> str:
    """Return the name of a file or branch as one short line without markup."""
    name = _MARKUP.sub("?", display_name(name))
    return name if len(name) <= limit else f"{name[: limit - 1]}…"


class _Folder:
    """A folder of the tree, with the number of files below it."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.folders: dict[str, _Folder] = {}
        self.count = 0


def draw_tree(names: Iterable[str], *, complete: bool = True) -> str:
    """Return the tree of these files, relative to one folder, within `MAX_LINES` and `MAX_LENGTH`.

    Args:
        complete: whether these are all files. If not, the number of files in folders is omitted,
            and the tree says that it is incomplete.
    """
    top = _Folder()
    for name in names:
        path_parts = name.split("/")
        if not any(map(_EXCLUDED_NAMES.fullmatch, path_parts)):
            _add(top, path_parts)
    blocks = [[line] for line in _lines(top, MAX_LINES - 1, "", complete)]
    cut = len(top.folders) + len(top.files) > len(blocks)
    order = sorted(top.folders)[: len(blocks) - cut]
    remaining_lines = MAX_LINES - 1 - len(blocks)
    remaining_chars = MAX_LENGTH - len(_INCOMPLETE) - sum(len(line) + 1 for (line,) in blocks)
    for name in sorted(order, key=lambda folder_name: -top.folders[folder_name].count):
        lines = _lines(top.folders[name], _MAX_FOLDER_ENTRIES, "  ", complete)
        size = sum(len(line) + 1 for line in lines)
        if len(lines) <= remaining_lines and size <= remaining_chars:
            blocks[order.index(name)] += lines
            remaining_lines, remaining_chars = remaining_lines - len(lines), remaining_chars - size
    lines = [line for block in blocks for line in block]
    if lines and not complete:
        lines.append(_INCOMPLETE)
    return "\n".join(lines)[:MAX_LENGTH]


def _add(folder: _Folder, path_parts: Sequence[str]) -> None:
    folder.count += 1
    for part in path_parts[:-1]:
        folder = folder.folders.setdefault(part, _Folder())
        folder.count += 1
    folder.files.append(path_parts[-1])


def _lines(folder: _Folder, limit: int, indent: str, complete: bool) -> list[str]:
    """Return the entries of a folder: folders, files, then the number of omitted entries."""
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
