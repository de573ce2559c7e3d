"""Renames files that confined commands create and that other programs run automatically.

A mount can protect a file that exists. One that does not exist yet could only be mounted over if it
were made first, in the user's folder, where editors and git would see it. So names are compared
with those before the command: often while it runs, and once more when all its processes have ended.
A new file is renamed in its folder: that is atomic, and the user can inspect it.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from acp_agent.platform.nofollow import opened_folder, owner_may_change
from acp_agent.sandbox.new_files import NewFiles
from acp_agent.sandbox.new_repositories import NewRepositories
from acp_agent.sandbox.process_limits import ProcessLimits

_MOST_TIMES = 5  # that a command may make the same file
_OFTEN = 0.02  # seconds between two looks, at first …
_SELDOM = 0.1  # … and when commands have run for a while
_A_WHILE = 10.0  # seconds
_MARK = ".blocked-"
_NAME_LENGTH = 200  # bytes of a name that are kept

_log = logging.getLogger(__name__)


class Moved(Struct, frozen=True):
    """A renamed file: its path, and its new name."""

    path: str
    name: str

    def __str__(self) -> str:
        """Return what happened, as a line for the output of a command that goes on."""
        return (
            f"[the sandbox renamed {self.path} to {self.name}: other programs run or obey such "
            "files by themselves]\n"
        )


class Surroundings(Struct, frozen=True):
    """The state of the folders before a command, created while no confined program runs.

    Attributes:
        files: finds files that execute by themselves.
        repositories: find repositories that name programs.
        writable: the folders that confined programs may change, resolved.
    """

    files: NewFiles
    repositories: Sequence[NewRepositories]
    writable: tuple[str, ...]

    def move_new(self, *, ended: bool) -> list[Moved]:
        """Rename new files and return them. Call it in a thread, and in one at a time.

        Args:
            ended: whether no command runs any more.
        """
        moved: list[Moved] = []
        for path in self.files.find():
            moved += self._move(path)
            self.files.restore(path)
        for repositories in self.repositories:
            for path in repositories.find(ended=ended):
                moved += self._move(path)
                repositories.restore(path)
        return moved

    def _move(self, path: str) -> list[Moved]:
        folder, name = os.path.split(path)
        folder = os.path.realpath(folder)
        if not any(f"{folder}/".startswith(f"{root.rstrip('/')}/") for root in self.writable):
            return []  # no confined program made it
        kept = os.fsdecode(os.fsencode(name)[:_NAME_LENGTH])
        new = f"{kept}{_MARK}{os.urandom(4).hex()}"
        try:
            with opened_folder(folder) as opened:  # a link put in its place leads nowhere else
                _rename(opened, name, new)
        except FileNotFoundError:
            return []
        except OSError as error:
            _log.warning("%s could not be moved away: %s", path, error)
            return []
        # Within what was moved away already it is not worth another word.
        return [] if _MARK in folder else [Moved(f"{folder}/{name}", new)]


def _rename(folder: int, old: str, new: str) -> None:
    """Rename a file in an open folder, also where a command took the right to do that away.

    Raises:
        OSError: it cannot be renamed.
    """
    try:
        os.rename(old, new, src_dir_fd=folder, dst_dir_fd=folder)
    except PermissionError:
        with owner_may_change(folder):
            os.rename(old, new, src_dir_fd=folder, dst_dir_fd=folder)


class WatchedCommand:
    """A confined command that runs.

    Attributes:
        moved: the files renamed while it ran.
        on_moved: is called for each of them, in another thread.
        on_limit: is called in another thread with a limit for which a process was ended.
        leader: the process that started all of its processes; None: its limits are not enforced.
    """

    def __init__(self, watch: SandboxWatch, limits: ProcessLimits) -> None:
        self.moved: list[Moved] = []
        self.on_moved: Callable[[Moved], None] | None = None
        self.on_limit: Callable[[str], None] | None = None
        self.leader: int | None = None
        self._watch = watch
        self._limits = limits

    @property
    def insists(self) -> bool:
        """Whether it creates the same file again and again, and must be ended."""
        return (
            bool(self.moved)
            and sum(moved.path == self.moved[-1].path for moved in self.moved) >= _MOST_TIMES
        )

    def enforce_limits(self) -> None:
        """End its processes that exceed the limits."""
        if self.leader is not None:
            exceeded = self._limits.enforce(self.leader)
            if exceeded and self.on_limit is not None:
                self.on_limit(exceeded)

    def finish(self) -> None:
        """Check the folders a last time, when no process of it is left."""
        self._watch.finish(self)


class SandboxWatch:
    """Checks the folders of a session while confined commands run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._surroundings: Surroundings | None = None
        self._commands: set[WatchedCommand] = set()
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._since = 0.0

    def start(self, surroundings: Surroundings | None, limits: ProcessLimits) -> WatchedCommand:
        """Watch a command that is about to start.

        Args:
            surroundings: the folders' state with no command running; None if others run.
            limits: its limits.
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
        """See `WatchedCommand.finish`."""
        with self._lock:
            command.leader = None
            if command in self._commands:
                self._look(ended=len(self._commands) == 1)
                self._commands.discard(command)
            if not self._commands:
                self._wake.set()

    def allow(self, path: str) -> None:
        """Leave a file in place that this program is about to write."""
        with self._lock:
            if self._surroundings is not None:
                self._surroundings.files.allow(path)

    def _run(self) -> None:
        while True:
            self._wake.wait(_OFTEN if time.monotonic() < self._since + _A_WHILE else _SELDOM)
            with self._lock:
                if not self._commands:
                    self._thread = None
                    return
                try:
                    for command in self._commands:
                        command.enforce_limits()
                    self._look()
                except Exception:  # noqa: BLE001 - the command goes on; its end looks again
                    _log.exception("the folders could not be checked")

    def _look(self, *, ended: bool = False) -> None:
        if self._surroundings is None:
            return
        for moved in self._surroundings.move_new(ended=ended):
            for command in self._commands:
                command.moved.append(moved)
                if command.on_moved is not None:
                    command.on_moved(moved)
