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

MOST_FOLDERS = 10_000  # maximum number of watched folders
_NEW_FILES = 100  # a new folder with more files is reported as a whole


class Touched(Struct, kw_only=True):
    """The changes in a folder. Paths are relative to it; those of folders end in a slash.

    `files` maps each changed file to whether it is known to be new. New folders with many files
    are listed in `new_folders`, and deleted folders in `gone_folders`, instead of their files.
    `complete` is false if the kernel dropped events because there were too many.
    """

    files: dict[bytes, bool] = field(default_factory=dict)
    new_folders: list[bytes] = field(default_factory=list)
    gone_folders: list[bytes] = field(default_factory=list)
    complete: bool = True


def folders_below(top: Path, folder: bytes, *, most: int) -> Iterator[tuple[bytes, list[bytes]]]:
    """Yield a folder and those below it except `.git`, each with the names of its files.

    Args:
        top: the folder that the yielded paths are relative to.
        folder: the folder to start at.
        most: maximum number of folders to yield.
    """
    base = os.fsencode(top)
    walk = os.walk(os.path.join(base, folder))  # noqa: PTH118 - bytes
    for _, (inner, folders, names) in zip(range(most), walk, strict=False):
        folders[:] = [name for name in folders if name != b".git"]
        yield os.path.relpath(inner, base), names


class FolderWatch:
    """Watches a folder, given folders below it, and new folders in those; never `.git`.

    All methods block on the disk: call them in a thread.

    Args:
        top: the folder, absolute.
        folders: the folders to watch, relative to it.

    Raises:
        OSError: the system cannot watch folders, or there are too many.
    """

    def __init__(self, top: bytes, folders: Iterable[bytes]) -> None:
        self._top = top
        self._notes = Inotify()
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
        self._notes.close()

    def _add(self, folder: bytes) -> None:
        if len(self._folders) >= MOST_FOLDERS:
            raise OSError("too many folders")
        # The folder may be deleted or unreadable.
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            self._folders[self._notes.add(os.path.join(self._top, folder))] = folder  # noqa: PTH118 - bytes

    def drain(self) -> Touched:
        """Return the changes since the last call.

        Raises:
            OSError: a new folder cannot be watched.
        """
        touched = Touched()
        for watch, mask, name in self._notes.read():
            folder = self._folders.get(watch)
            if mask & OVERFLOW:
                touched.complete = False
            elif folder is None or name == b".git":
                continue
            elif mask & IGNORED:
                del self._folders[watch]
            elif mask & IS_FOLDER and mask & (CREATE | MOVED_TO):
                self._enter(folder + name + b"/", touched)
            elif mask & IS_FOLDER and mask & (DELETE | MOVED_FROM):
                touched.gone_folders.append(folder + name + b"/")
                self._leave(folder + name + b"/")
            elif not mask & IS_FOLDER:
                made = bool(mask & (CREATE | MOVED_TO))
                touched.files[folder + name] = touched.files.get(folder + name, made)
        self._keep_outermost(touched)
        return touched

    def _keep_outermost(self, touched: Touched) -> None:
        """Remove entries below a deleted folder, and deleted folders that exist again."""
        gone: list[bytes] = []
        for folder in sorted(touched.gone_folders):
            is_back = os.path.lexists(os.path.join(self._top, folder[:-1]))  # noqa: PTH118 - bytes
            if not is_back and not folder.startswith(tuple(gone)):
                gone.append(folder)
        touched.gone_folders = gone
        for path in [path for path in touched.files if path.startswith(tuple(gone))]:
            del touched.files[path]

    def _enter(self, folder: bytes, touched: Touched) -> None:
        """Watch a new folder, and report the files that it already contains."""
        found: list[bytes] = []
        open_folders = [folder]
        while open_folders and len(found) <= _NEW_FILES:
            inner = open_folders.pop()
            self._add(inner)
            try:
                with os.scandir(os.path.join(self._top, inner)) as entries:  # noqa: PTH118 - bytes
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            if entry.name != b".git":
                                open_folders.append(inner + entry.name + b"/")
                        elif len(found) <= _NEW_FILES:
                            found.append(inner + entry.name)
            except OSError:
                continue
        if len(found) > _NEW_FILES:
            touched.new_folders.append(folder)
            self._leave(folder)
        else:
            touched.files |= dict.fromkeys(found, True)

    def _leave(self, folder: bytes) -> None:
        for watch, place in tuple(self._folders.items()):
            if place.startswith(folder):
                self._notes.remove(watch)
                del self._folders[watch]
