"""Detect ignore files at which a program would hang: pipes, devices, and very large files.

Ripgrep and git open every ignore file that they find, and block at a FIFO until somebody writes
to it. Checking for such files first would take as long as the search itself. So only the starting
folder is checked before, and the rest in parallel if the program takes long.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from acp_agent.errors import WorkspaceError

RIPGREP_IGNORE_FILES = frozenset({".gitignore", ".ignore", ".rgignore", ".git/info/exclude"})
GIT_IGNORE_FILES = frozenset({".gitignore", ".gitattributes"})
_MAX_SIZE = 10_000_000  # bytes
_CHECK_DELAY = 0.2  # seconds that a program may take before the check starts


def endless_error(path: str) -> WorkspaceError:
    """Return the error for an ignore file at which a program would hang."""
    return WorkspaceError(
        f"{path} is a pipe, a device or very large, and would be read as a list of files to "
        "ignore; remove it, or put an ordinary file there"
    )


def endless_file(folder: Path, names: Iterable[str]) -> str:
    """Return the path of an ignore file in a folder that never ends, or an empty string."""
    return next(filter(_is_endless, _candidate_paths(str(folder), names)), "")


class EndlessFileWatch:
    """Searches a folder for ignore files at which a running program hangs, and kills it.

    Attributes:
        path: the path of the file that caused the kill; empty if there was none.
    """

    def __init__(self, folder: Path, names: Iterable[str], end: Callable[[], None]) -> None:
        self.path = ""
        self._folder = folder
        self._names = frozenset(names)
        self._end = end
        self._ended = threading.Event()
        self._end_lock = threading.Lock()

    def __enter__(self) -> Self:
        threading.Thread(target=self._check, name="ignore files", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._end_lock:
            self._ended.set()

    def require_none(self) -> None:
        """Raise WorkspaceError if the program was killed because of a file."""
        if self.path:
            raise endless_error(self.path)

    def _check(self) -> None:
        if self._ended.wait(_CHECK_DELAY):
            return
        path = next(filter(_is_endless, self._paths()), "")
        with self._end_lock:
            if path and not self._ended.is_set():
                self.path = path
                self._end()

    def _paths(self) -> Iterator[str]:
        folders = [str(self._folder)]
        while folders and not self._ended.is_set():
            folder = folders.pop()
            yield from _candidate_paths(folder, self._names)
            try:
                with os.scandir(folder) as entries:
                    folders += [
                        entry.path
                        for entry in entries
                        if entry.name != ".git" and entry.is_dir(follow_symlinks=False)
                    ]
            except OSError:
                continue


def _candidate_paths(folder: str, names: Iterable[str]) -> Iterator[str]:
    yield from (f"{folder.rstrip('/')}/{name}" for name in names)


def _is_endless(path: str) -> bool:
    try:
        status = os.stat(path)  # noqa: PTH116 - faster
    except (OSError, ValueError):
        return False
    if stat.S_ISREG(status.st_mode):
        return status.st_size > _MAX_SIZE
    harmless = stat.S_ISDIR(status.st_mode) or stat.S_ISSOCK(status.st_mode)
    return not harmless and status.st_rdev != Path(os.devnull).stat().st_rdev
