"""List a folder: files with their sizes, folders with the number of files below them."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import os
import stat
from collections import Counter
from pathlib import Path

from msgspec import Struct

from acp_agent.errors import WorkspaceError
from acp_agent.platform.descriptor_limit import explain_descriptor_limit
from acp_agent.platform.nofollow import listed_folder, open_in_folder
from acp_agent.sandbox.launch import Confine, unconfined
from acp_agent.workspace.file_io import display_path
from acp_agent.workspace.search import list_files

_HIDDEN_NAMES = frozenset({".git", ".hg", ".svn", ".jj"})
_MAX_COMPARED_NAMES = 2_000  # names compared with a missing one, to suggest a similar name
_MAX_CHECKED = 200  # entries checked to tell an empty folder from one whose files are all ignored


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
    existing_parent = next(parent for parent in path.parents if parent.is_dir())
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
