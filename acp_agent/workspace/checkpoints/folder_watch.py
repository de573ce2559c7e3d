"""Detect which files of a folder changed, without reading the others (inotify)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from acp_agent.platform.inotify import (
    CREATE,
    DELETE,
    IGNORED,
    IS_FOLDER,
    MOVED_FROM,
    MOVED_TO,
    OVERFLOW,
    Inotify,
)

MAX_FOLDERS = 10_000  # maximum number of watched folders
_MAX_NEW_FILES = 100  # a new folder with more files is reported as a whole


class FolderChanges(Struct, kw_only=True):
    """The changes in a folder. Paths are relative to it; those of folders end in a slash.

    `files` maps each changed file to whether it is known to be new. New folders with many files
    are listed in `new_folders`, and deleted folders in `deleted_folders`, instead of their files.
    `complete` is false if the kernel dropped events because there were too many.
    """

    files: dict[bytes, bool] = field(default_factory=dict)
    new_folders: list[bytes] = field(default_factory=list)
    deleted_folders: list[bytes] = field(default_factory=list)
    complete: bool = True


def folders_below(
    top: Path, folder: bytes, *, max_folders: int
) -> Iterator[tuple[bytes, list[bytes]]]:
    """Yield a folder and those below it except `.git`, each with the names of its files.

    Args:
        top: the folder that the yielded paths are relative to.
        folder: the folder to start at.
    """
    base = os.fsencode(top)
    walk = os.walk(os.path.join(base, folder))  # noqa: PTH118 - bytes
    for _, (inner, folders, names) in zip(range(max_folders), walk, strict=False):
        folders[:] = [name for name in folders if name != b".git"]
        yield os.path.relpath(inner, base), names


class FolderWatch:
    """Watches a folder, given folders below it, and new folders in those; never `.git`.

    All methods block on the disk: call them in a thread.

    Args:
        top: the folder, absolute.

    Raises:
        OSError: the system cannot watch folders, or there are too many.
    """

    def __init__(self, top: bytes, folders: Iterable[bytes]) -> None:
        self._top = top
        self._inotify = Inotify()
        self._folders: dict[int, bytes] = {}  # by watch id: relative path with a trailing slash
        try:
            self._add(b"")
            for folder in folders:
                self._add(folder + b"/")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop watching."""
        self._inotify.close()

    def _add(self, folder: bytes) -> None:
        if len(self._folders) >= MAX_FOLDERS:
            raise OSError("too many folders")
        # The folder may be deleted or unreadable.
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            self._folders[self._inotify.add(os.path.join(self._top, folder))] = folder  # noqa: PTH118 - bytes

    def drain(self) -> FolderChanges:
        """Return the changes since the last call.

        Raises:
            OSError: a new folder cannot be watched.
        """
        changes = FolderChanges()
        for watch, mask, name in self._inotify.read():
            folder = self._folders.get(watch)
            if mask & OVERFLOW:
                changes.complete = False
            elif folder is None or name == b".git":
                continue
            elif mask & IGNORED:
                del self._folders[watch]
            elif mask & IS_FOLDER and mask & (CREATE | MOVED_TO):
                self._watch_new(folder + name + b"/", changes)
            elif mask & IS_FOLDER and mask & (DELETE | MOVED_FROM):
                changes.deleted_folders.append(folder + name + b"/")
                self._unwatch(folder + name + b"/")
            elif not mask & IS_FOLDER:
                is_new = bool(mask & (CREATE | MOVED_TO))
                changes.files[folder + name] = changes.files.get(folder + name, is_new)
        self._keep_outermost(changes)
        return changes

    def _keep_outermost(self, changes: FolderChanges) -> None:
        """Remove entries below a deleted folder, and deleted folders that exist again."""
        outermost: list[bytes] = []
        for folder in sorted(changes.deleted_folders):
            is_back = os.path.lexists(os.path.join(self._top, folder[:-1]))  # noqa: PTH118 - bytes
            if not is_back and not folder.startswith(tuple(outermost)):
                outermost.append(folder)
        changes.deleted_folders = outermost
        for path in [path for path in changes.files if path.startswith(tuple(outermost))]:
            del changes.files[path]

    def _watch_new(self, folder: bytes, changes: FolderChanges) -> None:
        """Watch a new folder, and report the files that it already contains."""
        new_files: list[bytes] = []
        open_folders = [folder]
        while open_folders and len(new_files) <= _MAX_NEW_FILES:
            inner = open_folders.pop()
            self._add(inner)
            try:
                with os.scandir(os.path.join(self._top, inner)) as entries:  # noqa: PTH118 - bytes
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            if entry.name != b".git":
                                open_folders.append(inner + entry.name + b"/")
                        elif len(new_files) <= _MAX_NEW_FILES:
                            new_files.append(inner + entry.name)
            except OSError:
                continue
        if len(new_files) > _MAX_NEW_FILES:
            changes.new_folders.append(folder)
            self._unwatch(folder)
        else:
            changes.files |= dict.fromkeys(new_files, True)

    def _unwatch(self, folder: bytes) -> None:
        for watch, watched in tuple(self._folders.items()):
            if watched.startswith(folder):
                self._inotify.remove(watch)
                del self._folders[watch]
