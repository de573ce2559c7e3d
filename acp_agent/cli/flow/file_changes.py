"""Wait for changes of a folder's files: with inotify if available, otherwise by polling.

A change is a file that is new, gone, or has a different time, size or inode than in the last scan.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from acp_agent.errors import InvalidInputError
from acp_agent.extensions.workflows.patterns import FilePatterns
from acp_agent.platform.inotify import Inotify

_POLL = 1.0  # seconds between two scans without inotify
_QUIET = 0.3  # seconds without a change after which a burst is complete
_LONGEST_BURST = 5.0  # seconds; longer bursts are reported before they end
_MOST_FILES = 200_000
_LEFT_OUT = frozenset({".git", ".hg", ".svn"})

_Mark: TypeAlias = tuple[int, int, int]  # time, size and inode
Files: TypeAlias = Mapping[str, _Mark]


class FileChanges:
    """The files of a folder that match some patterns, and their changes.

    Args:
        top: the folder, absolute.
        patterns: select the files.
    """

    def __init__(self, top: Path, patterns: FilePatterns) -> None:
        self._top = top
        self._patterns = patterns
        self._known: Files = {}
        self._woken = asyncio.Event()
        self._notes: Inotify | None = None
        self._incomplete = False  # whether some folders are not watched

    async def start(self) -> None:
        """Scan the files for the first time.

        Raises:
            InvalidInputError: there are too many.
        """
        try:
            self._notes = Inotify()
            asyncio.get_running_loop().add_reader(self._notes.fileno(), self._wake)
        except OSError:
            self._stop_notes()
        self._known = await self._look()

    def close(self) -> None:
        """Stop watching."""
        self._stop_notes()

    async def changed(self) -> list[str]:
        """Wait for changes since the last call; return the files, sorted."""
        while True:
            self._woken.clear()
            found = await self.changes()
            if found:
                return found
            await self._next_look()

    async def changes(self) -> list[str]:
        """Return the changes since the last call, after the current burst; do not wait for any."""
        before, now = self._known, await self._look()
        if now == before:
            return []
        loop = asyncio.get_running_loop()
        end = loop.time() + _LONGEST_BURST
        while loop.time() < end:
            await asyncio.sleep(_QUIET)
            later = await self._look()
            if later == now:
                break
            now = later
        self._known = now
        return sorted(
            name for name in before.keys() | now.keys() if before.get(name) != now.get(name)
        )

    async def _next_look(self) -> None:
        if self._notes is None or self._incomplete:
            await asyncio.sleep(_POLL)
        else:
            await self._woken.wait()

    async def _look(self) -> Files:
        return await asyncio.to_thread(lambda: dict(self._walk()))

    def _walk(self) -> Iterator[tuple[str, _Mark]]:
        count = 0
        pending = list(self._patterns.folders)
        for folder in pending:
            self._watch(folder)
            try:
                with os.scandir(self._top / folder) as entries:
                    for entry in entries:
                        name = f"{folder}/{entry.name}" if folder else entry.name
                        if entry.is_dir(follow_symlinks=False):
                            if entry.name not in _LEFT_OUT:
                                pending.append(name)
                        elif self._patterns.matches(name):
                            found = entry.stat(follow_symlinks=False)
                            count += 1
                            yield name, (found.st_mtime_ns, found.st_size, found.st_ino)
            except OSError:  # it is gone, or not readable
                continue
            if count > _MOST_FILES:
                raise InvalidInputError(
                    f"files: the patterns mean more than {_MOST_FILES} files; name a folder"
                )

    def _watch(self, folder: str) -> None:
        """Watch a folder with inotify, or its nearest existing parent.

        Adding a watched folder again has no effect; a recreated folder needs it.
        """
        if self._notes is None or self._incomplete:
            return
        try:
            self._notes.add(os.fsencode(self._top / folder))
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            if folder:
                self._watch(folder.rpartition("/")[0])
        except OSError:  # too many watches
            self._incomplete = True

    def _wake(self) -> None:
        if self._notes is None:
            return
        for _ in self._notes.read():
            pass
        self._woken.set()

    def _stop_notes(self) -> None:
        if self._notes is not None:
            asyncio.get_running_loop().remove_reader(self._notes.fileno())
            self._notes.close()
            self._notes = None
