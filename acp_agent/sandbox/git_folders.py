"""Find the git folders of a folder's repositories, and the parts that name programs to run."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from acp_agent.sandbox.git_data import (
    find_common_dir,
    find_git_dir,
    gitlinks,
    is_git_dir,
    read_small_file,
    subfolders,
    submodules,
)
from acp_agent.sandbox.git_settings import referenced_paths

_NESTED_DEPTH = 2  # levels below a root that are searched for repositories
_MAX_FOLDERS = 2_000  # maximum number of searched folders
_MAX_REPOSITORIES = 100
_SKIPPED_FOLDERS = frozenset({"node_modules", ".venv", "venv", "target", "__pycache__", ".git"})
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
    """

    def __init__(self, root: str, writable: tuple[str, ...]) -> None:
        self.root = root
        self.writable = writable
        self.outside_git_dirs: list[str] = []
        self.protected: list[str] = []
        self.git_dirs: set[str] = set()
        self.work_trees: set[str] = set()
        self.linked_git_dirs: set[str] = set()
        self.with_commondir: set[str] = set()
        self._listings: dict[str, tuple[int, frozenset[str]]] = {}
        pending = deque(self._list([(root, 0)], _NESTED_DEPTH))
        visited = set(pending)
        while pending and len(visited) < _MAX_FOLDERS:
            folder = pending.popleft()
            self._add_work_tree(folder)
            new_folders = [path for path in gitlinks(folder) if path not in visited]
            visited.update(new_folders)
            pending += [path for path in new_folders if os.path.lexists(f"{path}/.git")]

    def new_folders_with_git(self) -> Iterator[str]:
        """Yield new folders that have a `.git` or are a git folder.

        Checks only folders whose entries changed since the last check, and new folders at any
        depth.
        """
        new_folders: list[tuple[str, int]] = []
        for folder, (ctime, old_names) in list(self._listings.items()):
            with suppress(OSError):
                if os.stat(folder).st_ctime_ns != ctime:  # noqa: PTH116 - many of them, and pathlib is slow
                    has_repository, names = self._list_folder(folder)
                    if has_repository:
                        yield folder
                    new_folders += [(f"{folder}/{name}", 0) for name in sorted(names - old_names)]
        yield from self._list(new_folders, _MAX_FOLDERS)

    def _list(self, folders: list[tuple[str, int]], depth: int) -> Iterator[str]:
        """Yield those of the folders, and of the folders below them, that have a repository."""
        pending, count = deque(folders), 0
        while pending and count < _MAX_FOLDERS:
            folder, level = pending.popleft()
            count += 1
            with suppress(OSError):
                has_repository, names = self._list_folder(folder)
                if has_repository:
                    yield folder
                if level < depth:
                    pending += [(f"{folder}/{name}", level + 1) for name in sorted(names)]

    def _list_folder(self, folder: str) -> tuple[bool, frozenset[str]]:
        """Return whether a folder has a repository, and its subfolders."""
        ctime = os.stat(folder).st_ctime_ns  # noqa: PTH116 - as above
        self._listings[folder] = 0, frozenset()  # retried if listing fails
        with os.scandir(folder) as iterator:
            entries = {entry.name: entry for entry in iterator}
        names = frozenset(
            name
            for name, entry in entries.items()
            if name not in _SKIPPED_FOLDERS and entry.is_dir(follow_symlinks=False)
        )
        self._listings[folder] = ctime, names
        return ".git" in entries or {"HEAD", "objects", "refs"} <= entries.keys(), names

    def _add_work_tree(self, folder: str) -> None:
        dot_git = f"{folder}/.git"
        git_dir = find_git_dir(folder)
        if git_dir is None:
            if not os.path.lexists(dot_git) and is_git_dir(folder):
                self._protect(folder, folder)
            return
        if not os.path.isdir(dot_git):  # noqa: PTH112 - as above
            self.protected.append(dot_git)
            for linked_git_dir in _linked_git_dirs(folder, git_dir):
                self.outside_git_dirs.append(linked_git_dir)
                self._protect(linked_git_dir, folder)
        common_dir = find_common_dir(git_dir)
        if any(_is_below(common_dir, root) for root in self.writable):
            self._protect(common_dir, folder)
            self.protected += [f"{git_dir}/commondir"] if common_dir != git_dir else []
        elif common_dir not in self.git_dirs:
            self.work_trees.add(folder)
        if common_dir in self.git_dirs:
            self.work_trees.add(folder)

    def _protect(self, git_dir: str, work_tree: str) -> None:
        for folder in [git_dir, *submodules(git_dir)]:
            if folder in self.git_dirs or len(self.git_dirs) > _MAX_REPOSITORIES:
                continue
            paths = list(self._protected_paths(folder))
            if paths:
                self.git_dirs.add(folder)
                self.protected += paths
                if os.path.lexists(f"{folder}/commondir"):
                    self.with_commondir.add(folder)
                for path in referenced_paths(f"{folder}/config", (work_tree, folder)):
                    if _is_below(path, self.root) and not _is_below(self.root, path):
                        self.protected.append(path)

    def _protected_paths(self, folder: str) -> Iterator[str]:
        """Yield the settings and hooks of a git folder, and the files that lead to them."""
        config = f"{folder}/config"
        if not os.path.isfile(config):  # noqa: PTH113 - as above
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


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


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
