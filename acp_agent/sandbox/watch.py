"""Rename files that confined commands create and that other programs run automatically.

A mount can protect an existing file. To mount over a missing file it would have to be created
first, in the user's folder, where editors and git would see it. Instead, names are compared with
those before the command: often while it runs, and once more after all its processes have ended. A
new file is renamed in its folder, which is atomic and lets the user inspect it.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from acp_agent.platform.nofollow import opened_folder, owner_may_change
from acp_agent.platform.posix import is_below
from acp_agent.sandbox.new_files import NewFiles
from acp_agent.sandbox.new_repositories import NewRepositories
from acp_agent.sandbox.process_limits import ProcessLimits

_MAX_REPEATS = 5  # how often a command may create the same file
_FAST_INTERVAL = 0.02  # seconds between checks, at first
_SLOW_INTERVAL = 0.1  # seconds between checks, after `_FAST_PERIOD`
_FAST_PERIOD = 10.0  # seconds
_NAME_MARK = ".blocked-"
_NAME_LENGTH = 200  # bytes of the old name in the new one

_log = logging.getLogger(__name__)


class RenamedFile(Struct, frozen=True):
    """A renamed file: its path, and its new name."""

    path: str
    name: str

    def __str__(self) -> str:
        """Return a line about it for the output of the running command."""
        return (
            f"[the sandbox renamed {self.path} to {self.name}: other programs run or obey such "
            "files by themselves]\n"
        )


class FolderSnapshot(Struct, frozen=True):
    """The state of the folders before a command, created while no confined program runs.

    Attributes:
        files: finds files that other programs run automatically.
        repositories: find repositories that name programs.
        writable: the folders that confined programs may change, resolved.
    """

    files: NewFiles
    repositories: Sequence[NewRepositories]
    writable: tuple[str, ...]

    def rename_new_files(self, *, ended: bool) -> list[RenamedFile]:
        """Rename new files and return them. Call it in a thread, and only one at a time.

        Args:
            ended: whether no command runs any more.
        """
        moved: list[RenamedFile] = []
        for path in self.files.find(ended=ended):
            moved += self._rename_file(path)
            self.files.restore(path)
        for repositories in self.repositories:
            for path in repositories.find(ended=ended):
                moved += self._rename_file(path)
                repositories.restore(path)
        return moved

    def _rename_file(self, path: str) -> list[RenamedFile]:
        folder, name = os.path.split(path)
        folder = os.path.realpath(folder)
        if not any(is_below(folder, root) for root in self.writable):
            return []  # no confined program created it
        base = os.fsdecode(os.fsencode(name)[:_NAME_LENGTH])
        new = f"{base}{_NAME_MARK}{os.urandom(4).hex()}"
        try:
            with opened_folder(folder) as opened:  # fails if it was replaced by a link
                _rename(opened, name, new)
        except FileNotFoundError:
            return []
        except OSError as error:
            _log.warning("%s could not be moved away: %s", path, error)
            return []
        # Do not report files in a folder that was itself moved away.
        return [] if _NAME_MARK in folder else [RenamedFile(f"{folder}/{name}", new)]


def _rename(folder: int, old: str, new: str) -> None:
    """Rename a file in an open folder, even if a command removed the permission to do that.

    Raises:
        OSError: it cannot be renamed.
    """
    try:
        os.rename(old, new, src_dir_fd=folder, dst_dir_fd=folder)
    except PermissionError:
        with owner_may_change(folder):
            os.rename(old, new, src_dir_fd=folder, dst_dir_fd=folder)


class WatchedCommand:
    """A running confined command.

    Attributes:
        moved: the files renamed while it ran.
        on_moved: called with each of them, in another thread.
        on_limit: called in another thread with the limit for which a process was killed.
        leader: the first process, which started all others; None: limits are not enforced.
    """

    def __init__(self, watch: SandboxWatch, limits: ProcessLimits) -> None:
        self.moved: list[RenamedFile] = []
        self.on_moved: Callable[[RenamedFile], None] | None = None
        self.on_limit: Callable[[str], None] | None = None
        self.leader: int | None = None
        self._watch = watch
        self._limits = limits

    @property
    def recreates_file(self) -> bool:
        """Return whether it keeps creating the same file, so that it must be killed."""
        return (
            bool(self.moved)
            and sum(moved.path == self.moved[-1].path for moved in self.moved) >= _MAX_REPEATS
        )

    def enforce_limits(self) -> None:
        """Kill its processes that exceed the limits."""
        if self.leader is not None:
            exceeded = self._limits.enforce(self.leader)
            if exceeded and self.on_limit is not None:
                self.on_limit(exceeded)

    def finish(self) -> None:
        """Check the folders a last time, after all its processes have ended."""
        self._watch.finish(self)


class SandboxWatch:
    """Checks the folders of a session while confined commands run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._surroundings: FolderSnapshot | None = None
        self._commands: set[WatchedCommand] = set()
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._since = 0.0

    def start(self, surroundings: FolderSnapshot | None, limits: ProcessLimits) -> WatchedCommand:
        """Watch a command that is about to start.

        Args:
            surroundings: the state of the folders with no command running; None if others run.
        """
        command = WatchedCommand(self, limits)
        with self._lock:
            self._surroundings = surroundings or self._surroundings
            self._since = time.monotonic()
            self._commands.add(command)
            if self._thread is None:
                self._wake.clear()
                self._thread = threading.Thread(target=self._run, name="sandbox", daemon=True)
                self._thread.start()
        return command

    def finish(self, command: WatchedCommand) -> None:
        """Finish watching a command; see `WatchedCommand.finish`."""
        with self._lock:
            command.leader = None
            if command in self._commands:
                self._check_folders(ended=len(self._commands) == 1)
                self._commands.discard(command)
            if not self._commands:
                self._wake.set()

    def allow(self, path: str) -> None:
        """Do not rename a file that this program is about to write."""
        with self._lock:
            if self._surroundings is not None:
                self._surroundings.files.allow(path)

    def _run(self) -> None:
        while True:
            self._wake.wait(
                _FAST_INTERVAL if time.monotonic() < self._since + _FAST_PERIOD else _SLOW_INTERVAL
            )
            with self._lock:
                if not self._commands:
                    self._thread = None
                    return
                try:
                    for command in self._commands:
                        command.enforce_limits()
                    self._check_folders()
                except Exception:  # noqa: BLE001 - retried later
                    _log.exception("the folders could not be checked")

    def _check_folders(self, *, ended: bool = False) -> None:
        if self._surroundings is None:
            return
        for moved in self._surroundings.rename_new_files(ended=ended):
            for command in self._commands:
                command.moved.append(moved)
                if command.on_moved is not None:
                    command.on_moved(moved)
