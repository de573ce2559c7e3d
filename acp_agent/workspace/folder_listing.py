"""List a folder with sizes, and draw a project's files as a short tree."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import os
import re
import stat
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from acp_agent.errors import WorkspaceError
from acp_agent.platform.descriptor_limit import explain_descriptor_limit
from acp_agent.platform.nofollow import listed_folder, open_in_folder
from acp_agent.sandbox.launch import Confine, unconfined
from acp_agent.workspace.file_io import display_name, display_path
from acp_agent.workspace.search import list_files

_HIDDEN_NAMES = frozenset({".git", ".hg", ".svn", ".jj"})
_MAX_COMPARED_NAMES = 2_000  # names compared with a missing one, to suggest a similar name
_MAX_CHECKED = 200  # entries checked to tell an empty folder from one whose files are all ignored
MAX_LINES = 40  # of the tree
MAX_LENGTH = 1_500  # characters of the tree
_MAX_FILES = 60_000  # maximum number of names
_MAX_SECONDS = 0.12  # to collect the names
_INCOMPLETE = "… (incomplete: the project is large)"
_MAX_NAME = 60  # characters of a name
_MAX_FOLDER_ENTRIES = 8  # entries shown of each folder on the second level
# Hidden files, and files named like a key or a list of secrets.
_EXCLUDED_NAMES = re.compile(
    r"\..*|.*\.(key|kdbx|p12|pem|pfx)|.*(credential|secret).*|id_(rsa|dsa|ecdsa|ed25519).*",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"[`<>\"]")  # could end the quotation of a name in a prompt


class Entry(Struct, frozen=True, kw_only=True):
    """An entry of a listing. `depth` starts at 0.

    `size` is set for a regular file (in bytes), `files` for a folder (the number of files below
    it), and `target` for a symlink.
    """

    name: str
    depth: int
    size: int | None = None
    files: int | None = None
    target: str | None = None


class FolderListing(Struct, frozen=True, kw_only=True):
    """Entries as a tree in reading order.

    `ignored` is the number of entries left out because of ignore files. `more` is true if the
    limit cut the list short.
    """

    entries: tuple[Entry, ...]
    ignored: int = 0
    more: bool = False


async def list_folder(
    folder: Path, *, depth: int, limit: int, confine: Confine = unconfined
) -> FolderListing:
    """Return at most `limit` entries of a folder, `depth` levels deep. Raises WorkspaceError."""
    names = await list_files(folder, confine=confine)
    return await asyncio.to_thread(_list, folder, names, depth, limit)


def suggest_existing(path: Path, cwd: Path) -> str:
    """Return advice for a path that does not exist: a similar name, or a folder to list. Blocks.

    Args:
        path: a resolved path below a folder of the session.
        cwd: the folder that displayed paths are relative to.
    """
    existing_parent = next(parent for parent in path.parents if os.path.isdir(parent))
    with listed_folder(existing_parent) as descriptor, os.scandir(descriptor) as entries:
        names = [entry.name for _, entry in zip(range(_MAX_COMPARED_NAMES), entries, strict=False)]
    matches = difflib.get_close_matches(path.name, names, n=1, cutoff=0.6)
    if matches and existing_parent == path.parent:
        return f"did you mean {display_path(existing_parent / matches[0], cwd)}?"
    return f"list {display_path(existing_parent, cwd)} to see what there is"


def _list(folder: Path, names: list[bytes], depth: int, limit: int) -> FolderListing:
    counts = Counter[str]()
    for name in names:
        parent = os.fsdecode(name)
        while parent := os.path.dirname(parent):  # noqa: PTH120 - pathlib takes ten times as long
            counts[parent] += 1
    walk = _Walk(set(map(os.fsdecode, names)), counts, depth, limit)
    try:
        with listed_folder(folder) as descriptor:
            walk.visit(descriptor, "", 0)
    except OSError as error:
        reason = explain_descriptor_limit(error) or (error.strerror or "unknown error").lower()
        raise WorkspaceError(f"{folder} cannot be listed: {reason}") from error
    entries = tuple(walk.entries[:limit])
    return FolderListing(entries=entries, ignored=walk.ignored, more=len(walk.entries) > limit)


class _Walk:
    """Visits folders in order and collects the entries to show."""

    def __init__(self, files: set[str], counts: Counter[str], depth: int, limit: int) -> None:
        self.entries: list[Entry] = []
        self.ignored = 0
        self._files = files
        self._counts = counts
        self._depth = depth
        self._limit = limit

    def visit(self, folder: int, name: str, level: int) -> None:
        """Add the entries of an open folder; `name` is its path below the listed one."""
        with os.scandir(folder) as scanned:
            entries = [entry for entry in scanned if entry.name not in _HIDDEN_NAMES]
        entries.sort(key=lambda entry: (not entry.is_dir(follow_symlinks=False), entry.name))
        for entry in entries:
            if len(self.entries) > self._limit:
                return
            with contextlib.suppress(FileNotFoundError):  # it was removed in between
                self._add(folder, entry, f"{name}/{entry.name}".removeprefix("/"), level)

    def _add(self, folder: int, entry: os.DirEntry[str], name: str, level: int) -> None:
        if entry.is_symlink():
            target = _target(folder, entry.name)
            self.entries.append(Entry(name=entry.name, depth=level, target=target))
        elif entry.is_dir(follow_symlinks=False):
            count = self._counts[name]
            if not count and _has_files(folder, entry.name):
                self.ignored += 1
                return
            self.entries.append(Entry(name=entry.name, depth=level, files=count))
            if level + 1 < self._depth:
                with contextlib.suppress(OSError):  # unreadable: only its name is shown
                    descriptor = open_in_folder(entry.name, os.O_RDONLY | os.O_DIRECTORY, folder)
                    try:
                        self.visit(descriptor, name, level + 1)
                    finally:
                        os.close(descriptor)
        elif name in self._files or not entry.is_file(follow_symlinks=False):
            status = entry.stat(follow_symlinks=False)
            size = status.st_size if stat.S_ISREG(status.st_mode) else None
            self.entries.append(Entry(name=entry.name, depth=level, size=size))
        else:
            self.ignored += 1


def _target(folder: int, name: str) -> str:
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError:  # no longer a symlink
        return ""


def _has_files(folder: int, name: str) -> bool:
    checked = 0
    with contextlib.suppress(OSError):  # no longer a folder, or not readable
        for _, folders, files, _ in os.fwalk(name, dir_fd=folder):
            checked += 1 + len(folders)
            if files or checked > _MAX_CHECKED:
                return True
    return False


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
