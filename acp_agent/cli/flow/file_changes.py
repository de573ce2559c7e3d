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

_POLL_SECONDS = 1.0  # seconds between two scans without inotify
_QUIET_SECONDS = 0.3  # seconds without a change after which a burst is complete
_MAX_BURST_SECONDS = 5.0  # seconds; longer bursts are reported before they end
_MAX_FILES = 200_000
_SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn"})

_Fingerprint: TypeAlias = tuple[int, int, int]  # time, size and inode
Files: TypeAlias = Mapping[str, _Fingerprint]


class FileChanges:
    """The files of a folder that match some patterns, and their changes.

    Args:
        top: the folder, absolute.
    """

    def __init__(self, top: Path, patterns: FilePatterns) -> None:
        self._top = top
        self._patterns = patterns
        self._last_scan: Files = {}
        self._wake_event = asyncio.Event()
        self._inotify: Inotify | None = None
        self._incomplete = False  # whether some folders are not watched

    async def start(self) -> None:
        """Scan the files for the first time. Raises InvalidInputError if there are too many."""
        try:
            self._inotify = Inotify()
            asyncio.get_running_loop().add_reader(self._inotify.fileno(), self._wake)
        except OSError:
            self._stop_inotify()
        self._last_scan = await self._scan()

    def close(self) -> None:
        """Stop watching."""
        self._stop_inotify()

    async def wait_changes(self) -> list[str]:
        """Wait for changes since the last call; return the files, sorted."""
        while True:
            self._wake_event.clear()
            changed = await self.changes()
            if changed:
                return changed
            if self._inotify is None or self._incomplete:
                await asyncio.sleep(_POLL_SECONDS)
            else:
                await self._wake_event.wait()

    async def changes(self) -> list[str]:
        """Return the changes since the last call, after the current burst; do not wait for any."""
        before, current = self._last_scan, await self._scan()
        if current == before:
            return []
        loop = asyncio.get_running_loop()
        end = loop.time() + _MAX_BURST_SECONDS
        while loop.time() < end:
            await asyncio.sleep(_QUIET_SECONDS)
            later = await self._scan()
            if later == current:
                break
            current = later
        self._last_scan = current
        return sorted(
            name for name in before.keys() | current.keys() if before.get(name) != current.get(name)
        )

    async def _scan(self) -> Files:
        return await asyncio.to_thread(lambda: dict(self._walk()))

    def _walk(self) -> Iterator[tuple[str, _Fingerprint]]:
        count = 0
        pending = list(self._patterns.folders)
        for folder in pending:
            self._watch(folder)
            try:
                with os.scandir(self._top / folder) as entries:
                    for entry in entries:
                        name = f"{folder}/{entry.name}" if folder else entry.name
                        if entry.is_dir(follow_symlinks=False):
                            if entry.name not in _SKIPPED_FOLDERS:
                                pending.append(name)
                        elif self._patterns.matches(name):
                            status = entry.stat(follow_symlinks=False)
                            count += 1
                            yield name, (status.st_mtime_ns, status.st_size, status.st_ino)
            except OSError:  # it is gone, or not readable
                continue
            if count > _MAX_FILES:
                raise InvalidInputError(
                    f"files: the patterns mean more than {_MAX_FILES} files; name a folder"
                )

    def _watch(self, folder: str) -> None:
        """Watch a folder with inotify, or its nearest existing parent.

        Adding a watched folder again has no effect; a recreated folder needs it.
        """
        if self._inotify is None or self._incomplete:
            return
        try:
            self._inotify.add(os.fsencode(self._top / folder))
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            if folder:
                self._watch(folder.rpartition("/")[0])
        except OSError:  # too many watches
            self._incomplete = True

    def _wake(self) -> None:
        if self._inotify is None:
            return
        for _ in self._inotify.read():
            pass
        self._wake_event.set()

    def _stop_inotify(self) -> None:
        if self._inotify is not None:
            asyncio.get_running_loop().remove_reader(self._inotify.fileno())
            self._inotify.close()
            self._inotify = None
