"""List folders to find repositories, and git folders to find links that lead out of a project."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct

from acp_agent.sandbox.git_data import is_git_dir

# Folders that tools fill: only the folders in them, and in scopes and `src`, are searched.
FILLED_FOLDERS = frozenset({"node_modules", ".venv", "venv", "target", "__pycache__", ".git"})
_SETTLED = 50_000_000  # nanoseconds after which another change of a folder has another ctime
_MAX_FOLDERS = 1_000  # of a git folder that are searched for links
# Folders of a git folder that are protected, are git folders themselves, or have thousands of
# entries that git writes once. Git replaces no link in them by following it.
_NOT_SEARCHED = frozenset({"hooks", "modules", "lfs", "annex"})


class FolderListing(Struct, frozen=True):
    """The entries of a folder.

    Attributes:
        ctime: its ctime when it was listed, in nanoseconds.
        settled: whether each later change of the folder changes its ctime.
        has_repository: whether it has a `.git`, or is a git folder.
        subfolders: the names of its folders.
    """

    ctime: int
    settled: bool
    has_repository: bool
    subfolders: frozenset[str]


class FolderListings:
    """Listings of folders, made again for folders whose ctime changed."""

    def __init__(self) -> None:
        self._listings: dict[str, FolderListing] = {}

    def find(self, folder: str) -> FolderListing:
        """Return the listing of a folder; the same object if nothing changed.

        Raises:
            OSError: it cannot be listed.
        """
        cached = self._listings.get(folder)
        ctime = os.stat(folder).st_ctime_ns  # noqa: PTH116 - many of them, and pathlib is slow
        if cached is not None and cached.settled and cached.ctime == ctime:
            return cached
        settled = time.time_ns() - ctime > _SETTLED
        if is_tool_folder(folder) and not _is_scope(folder):
            has_repository, subfolders = _has_repository(folder), frozenset[str]()
        else:
            with os.scandir(folder) as iterator:
                entries = {entry.name: entry for entry in iterator}
            has_repository = (".git" in entries or "HEAD" in entries) and _has_repository(folder)
            subfolders = frozenset(
                name
                for name, entry in entries.items()
                if name != ".git" and entry.is_dir(follow_symlinks=False)
            )
        listing = FolderListing(ctime, settled, has_repository, subfolders)
        if cached is None or cached != listing:
            self._listings[folder] = cached = listing
        return cached


def is_tool_folder(folder: str) -> bool:
    """Return whether a folder is one of those that tools fill, or in one."""
    *_, scope, parent, _ = ["", "", *folder.split("/")]
    return parent in FILLED_FOLDERS or (scope in FILLED_FOLDERS and _is_scope(f"/{parent}"))


def _is_scope(folder: str) -> bool:
    """Return whether a folder contains packages: `@types`, or the clones in `.venv/src`."""
    name = folder.rpartition("/")[2]
    return name[:1] == "@" or name == "src"


def _has_repository(folder: str) -> bool:
    return os.path.lexists(f"{folder}/.git") or is_git_dir(folder)


class OutsideLinks:
    """Links in a git folder that lead out of the writable folders and that commands created.

    Git follows them when it writes: a link in the place of a branch's log, for example, makes it
    append to any file of the user.

    Args:
        git_dir: the git folder.
        writable: the folders that confined programs may change, resolved.
    """

    def __init__(self, git_dir: str, writable: tuple[str, ...]) -> None:
        self._git_dir = git_dir
        self._writable = writable
        self._times: dict[str, int] = {}  # ctimes of folders
        self._links: dict[str, str] = {}  # text by path
        self._search()
        self._initial = {path: self._links[path] for path in self._outside()}

    def find(self, *, ended: bool) -> Iterator[str]:
        """Yield the new links.

        Args:
            ended: whether no command runs any more; then all folders are listed, since a folder's
                time does not tell two changes apart that are made within a few milliseconds.
        """
        if ended or any(_ctime(folder) != ctime for folder, ctime in self._times.items()):
            self._search()
        for path in self._outside():
            if self._initial.get(path) != self._links[path]:
                yield path

    def _outside(self) -> Iterator[str]:
        for path in self._links:
            target = os.path.realpath(path)
            if not any(f"{target}/".startswith(f"{root.rstrip('/')}/") for root in self._writable):
                yield path

    def _search(self) -> None:
        self._times, self._links = {}, {}
        pending = deque([self._git_dir])
        while pending and len(self._times) < _MAX_FOLDERS:
            folder = pending.popleft()
            self._times[folder] = _ctime(folder)
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        self._links[entry.path] = os.readlink(entry.path)  # noqa: PTH115 - as above
                    elif self._is_searched(folder, entry.name) and entry.is_dir():
                        pending.append(entry.path)

    def _is_searched(self, folder: str, name: str) -> bool:
        if folder == self._git_dir:
            return name not in _NOT_SEARCHED
        return folder != f"{self._git_dir}/objects" or name in {"pack", "info"}


def _ctime(path: str) -> int:
    try:
        return os.lstat(path).st_ctime_ns
    except OSError:
        return 0
