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

OF_RIPGREP = frozenset({".gitignore", ".ignore", ".rgignore", ".git/info/exclude"})
OF_GIT = frozenset({".gitignore", ".gitattributes"})
_LARGEST = 10_000_000  # bytes
_PATIENCE = 0.2  # seconds that a program may take before the check starts


def endless_error(path: str) -> WorkspaceError:
    """Return the error for an ignore file at which a program would hang."""
    return WorkspaceError(
        f"{path} is a pipe, a device or very large, and would be read as a list of files to "
        "ignore; remove it, or put an ordinary file there"
    )


def endless_file(folder: Path, names: Iterable[str]) -> str:
    """Return the path of an ignore file in a folder that never ends, or an empty string."""
    return next(filter(_is_endless, _named(str(folder), names)), "")


class EndlessFileWatch:
    """Searches a folder for ignore files at which a running program hangs, and kills it.

    Args:
        folder: the folder that the program reads.
        names: names of the ignore files that it opens.
        end: kills the program.

    Attributes:
        found: the path of the file that caused the kill; empty if there was none.
    """

    def __init__(self, folder: Path, names: Iterable[str], end: Callable[[], None]) -> None:
        self.found = ""
        self._folder = folder
        self._names = frozenset(names)
        self._end = end
        self._over = threading.Event()
        self._ending = threading.Lock()

    def __enter__(self) -> Self:
        threading.Thread(target=self._look, name="ignore files", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._ending:
            self._over.set()

    def require_none(self) -> None:
        """Raise WorkspaceError if the program was killed because of a file."""
        if self.found:
            raise endless_error(self.found)

    def _look(self) -> None:
        if self._over.wait(_PATIENCE):
            return
        path = next(filter(_is_endless, self._below()), "")
        with self._ending:
            if path and not self._over.is_set():
                self.found = path
                self._end()

    def _below(self) -> Iterator[str]:
        folders = [str(self._folder)]
        while folders and not self._over.is_set():
            folder = folders.pop()
            yield from _named(folder, self._names)
            try:
                with os.scandir(folder) as entries:
                    folders += [
                        entry.path
                        for entry in entries
                        if entry.name != ".git" and entry.is_dir(follow_symlinks=False)
                    ]
            except OSError:
                continue


def _named(folder: str, names: Iterable[str]) -> Iterator[str]:
    yield from (f"{folder.rstrip('/')}/{name}" for name in names)


def _is_endless(path: str) -> bool:
    try:
        found = os.stat(path)  # noqa: PTH116 - faster
    except (OSError, ValueError):
        return False
    if stat.S_ISREG(found.st_mode):
        return found.st_size > _LARGEST
    harmless = stat.S_ISDIR(found.st_mode) or stat.S_ISSOCK(found.st_mode)
    return not harmless and found.st_rdev != Path(os.devnull).stat().st_rdev
