"""Find the git folders of a folder's repositories, and the parts that name programs to run."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from acp_agent.platform.posix import is_below
from acp_agent.sandbox.git_data import (
    find_common_dir,
    find_git_dir,
    is_git_dir,
    read_small_file,
    subfolders,
    submodule_folders,
    submodule_git_dirs,
)
from acp_agent.sandbox.git_listings import FolderListing, FolderListings, is_tool_folder
from acp_agent.sandbox.git_settings import referenced_paths

_WATCHED_LEVELS = 2  # levels below a root that are checked while a command runs
_MAX_FOLDERS = 2_000  # maximum number of searched folders
_MAX_FILLED = 300  # maximum number of folders searched in those that tools fill
_MAX_REPOSITORIES = 100
_WORKTREE_CONFIG = re.compile(rb"^\s*worktreeconfig\b", re.IGNORECASE | re.MULTILINE)
_WORKTREE = re.compile(rb"^\s*worktree\s*=\s*\"?([^\"\n]+?)\"?\s*$", re.IGNORECASE | re.MULTILINE)


class GitFolders:
    """The repositories of a folder, read while no confined program runs.

    Attributes:
        outside_git_dirs: git folders outside the folder that git must be able to write.
        protected: settings and hooks, which name programs that git runs later, outside the sandbox.
            A missing hooks folder is created empty, so that commands cannot create one.
        git_dirs: the git folders whose settings are in `protected`.
        work_trees: the folders whose `.git` leads to one of them, or to an unwritable git folder.
        linked_git_dirs: the git folders of existing linked work trees.
        with_commondir: those of `git_dirs` that have a `commondir` file.

    Args:
        root: the folder, resolved.
        writable: all folders that confined programs may change, resolved.
        listings: the listings of an earlier command.
    """

    def __init__(self, root: str, writable: tuple[str, ...], listings: FolderListings) -> None:
        self.root = root
        self.writable = writable
        self.outside_git_dirs: list[str] = []
        self.protected: list[str] = []
        self.git_dirs: set[str] = set()
        self.work_trees: set[str] = set()
        self.linked_git_dirs: set[str] = set()
        self.with_commondir: set[str] = set()
        self._listings = listings
        self._known: dict[str, tuple[int, FolderListing | None]] = {}  # with levels
        pending = deque(self._list([(root, 0)]))
        visited = set(pending)
        while pending and len(visited) < _MAX_FOLDERS:
            folder = pending.popleft()
            self._add_work_tree(folder)
            new_folders = [path for path in submodule_folders(folder) if path not in visited]
            visited.update(new_folders)
            pending += [path for path in new_folders if os.path.lexists(f"{path}/.git")]

    def new_folders_with_git(self, *, ended: bool) -> Iterator[str]:
        """Yield new folders that have a `.git` or are a git folder.

        Args:
            ended: whether all folders are checked, and not only those near the root and new ones.
        """
        new_folders: list[tuple[str, int]] = []
        for folder, (level, old) in list(self._known.items()):
            if level > _WATCHED_LEVELS and not ended:
                continue
            with suppress(OSError):
                listing = self._listings.find(folder)
                if listing is old:
                    continue
                self._known[folder] = level, listing
                if listing.has_repository:
                    yield folder
                names = sorted(listing.subfolders - (old.subfolders if old else set()))
                new_folders += [(f"{folder}/{name}", 0) for name in names]
        yield from self._list(new_folders)

    def _list(self, folders: list[tuple[str, int]]) -> Iterator[str]:
        """Yield those of the folders, and of the folders below them, that have a repository.

        Folders that tools fill, such as `node_modules`, come last and have a limit of their own.
        """
        pending, filled = deque(folders), deque[tuple[str, int]]()
        budget, filled_budget = _MAX_FOLDERS, _MAX_FILLED
        while (pending and budget) or (filled and filled_budget):
            if pending and budget:
                budget -= 1
                folder, level = pending.popleft()
            else:
                filled_budget -= 1
                folder, level = filled.popleft()
            self._known[folder] = level, None  # retried if listing fails
            with suppress(OSError):
                listing = self._listings.find(folder)
                self._known[folder] = level, listing
                if listing.has_repository:
                    yield folder
                below = [(f"{folder}/{name}", level + 1) for name in sorted(listing.subfolders)]
                (filled if below and is_tool_folder(below[0][0]) else pending).extend(below)

    def _add_work_tree(self, folder: str) -> None:
        dot_git = f"{folder}/.git"
        git_dir = find_git_dir(folder)
        if git_dir is None:
            if not os.path.lexists(dot_git) and is_git_dir(folder):
                for existing in {folder, find_common_dir(folder)}:
                    if any(is_below(existing, root) for root in self.writable):
                        self._protect(existing, folder)
            return
        if not os.path.isdir(dot_git):
            self.protected.append(dot_git)
            for linked_git_dir in _linked_git_dirs(folder, git_dir):
                self.outside_git_dirs.append(linked_git_dir)
                self._protect(linked_git_dir, folder)
        common_dir = find_common_dir(git_dir)
        if any(is_below(common_dir, root) for root in self.writable):
            self._protect(common_dir, folder)
            self.protected += [f"{git_dir}/commondir"] if common_dir != git_dir else []
        elif common_dir not in self.git_dirs:
            self.work_trees.add(folder)
        if common_dir in self.git_dirs:
            self.work_trees.add(folder)

    def _protect(self, git_dir: str, work_tree: str) -> None:
        for folder in [git_dir, *submodule_git_dirs(git_dir)]:
            if folder in self.git_dirs or len(self.git_dirs) > _MAX_REPOSITORIES:
                continue
            paths = list(self._protected_paths(folder))
            if paths:
                self.git_dirs.add(folder)
                self.protected += paths
                if os.path.lexists(f"{folder}/commondir"):
                    self.with_commondir.add(folder)
                for path in referenced_paths(f"{folder}/config", (work_tree, folder)):
                    if is_below(path, self.root) and not is_below(self.root, path):
                        self.protected.append(path)

    def _protected_paths(self, folder: str) -> Iterator[str]:
        """Yield the settings and hooks of a git folder, and the files that lead to them."""
        config = f"{folder}/config"
        if not os.path.isfile(config):
            if not is_git_dir(folder):
                return
            with suppress(OSError):
                Path(config).touch()
        yield config
        with suppress(OSError):
            os.makedirs(f"{folder}/hooks", exist_ok=True)  # noqa: PTH103 - as above
            yield f"{folder}/hooks"
        linked_git_dirs = subfolders(f"{folder}/worktrees")
        self.linked_git_dirs.update(linked_git_dirs)
        yield from (f"{git_dir}/commondir" for git_dir in linked_git_dirs)
        if _WORKTREE_CONFIG.search(read_small_file(config)):
            for git_dir in [folder, *linked_git_dirs]:
                with suppress(OSError):
                    Path(git_dir, "config.worktree").touch()
                    yield f"{git_dir}/config.worktree"


def _linked_git_dirs(folder: str, git_dir: str) -> Iterator[str]:
    """Yield the git folder that a `.git` file names, if it refers back to the work tree.

    A program could write a `.git` file that names any folder. So the named folder must belong to a
    linked work tree or a submodule, and point back to `folder`.
    """
    back_reference = os.fsdecode(read_small_file(f"{git_dir}/gitdir")).strip()
    if back_reference:
        origin = find_common_dir(git_dir)
        is_in_origin = os.path.dirname(git_dir) == f"{origin}/worktrees" and is_git_dir(origin)  # noqa: PTH120 - as above
        if (
            os.path.realpath(
                f"{git_dir}/{back_reference}" if back_reference[0] != "/" else back_reference
            )
            == f"{folder}/.git"
        ):
            yield from [origin] if is_in_origin else []
        return
    worktree = _WORKTREE.search(read_small_file(f"{git_dir}/config"))
    if worktree is not None and os.path.realpath(Path(git_dir, os.fsdecode(worktree[1]))) == folder:
        yield git_dir
