"""Find the git folders of a folder's repositories, and the parts that name programs to run."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from acp_agent.sandbox.git_data import (
    common_data,
    gitlinks,
    is_repository,
    named_data,
    read_small,
    subfolders,
    submodules,
)
from acp_agent.sandbox.git_settings import named_files

_NESTED_DEPTH = 2  # levels below a root that are searched for repositories
_MOST_FOLDERS = 2_000  # maximum number of searched folders
_MOST_REPOSITORIES = 100
_NO_REPOSITORIES = frozenset({"node_modules", ".venv", "venv", "target", "__pycache__", ".git"})
_WORKTREE_CONFIG = re.compile(rb"^\s*worktreeconfig\b", re.IGNORECASE | re.MULTILINE)
_WORKTREE = re.compile(rb"^\s*worktree\s*=\s*\"?([^\"\n]+?)\"?\s*$", re.IGNORECASE | re.MULTILINE)


class GitFolders:
    """The repositories of a folder, read while no confined program runs.

    Attributes:
        outside: git folders outside the folder that git must be able to write.
        fixed: settings and hooks, which name programs that git runs later, outside the sandbox. A
            missing hooks folder is created empty, so that commands cannot create one.
        data: the git folders whose settings are in `fixed`.
        with_git: the folders whose `.git` leads to one of them, or to an unwritable git folder.
        worktrees: the git folders of existing linked work trees.
        common: those of `data` that have a `commondir` file.

    Args:
        root: the folder, resolved.
        writable: all folders that confined programs may change, resolved.
    """

    def __init__(self, root: str, writable: tuple[str, ...]) -> None:
        self.root = root
        self.writable = writable
        self.outside: list[str] = []
        self.fixed: list[str] = []
        self.data: set[str] = set()
        self.with_git: set[str] = set()
        self.worktrees: set[str] = set()
        self.common: set[str] = set()
        self._listed: dict[str, tuple[int, frozenset[str]]] = {}
        pending = deque(self._list([(root, 0)], _NESTED_DEPTH))
        seen = set(pending)
        while pending and len(seen) < _MOST_FOLDERS:
            folder = pending.popleft()
            self._add(folder)
            new = [path for path in gitlinks(folder) if path not in seen]
            seen.update(new)
            pending += [path for path in new if os.path.lexists(f"{path}/.git")]

    def new_folders_with_git(self) -> Iterator[str]:
        """Yield new folders that have a `.git` or are a git folder.

        Checks only folders whose entries changed since the last check, and new folders at any
        depth.
        """
        new: list[tuple[str, int]] = []
        for folder, (changed, below) in list(self._listed.items()):
            with suppress(OSError):
                if os.stat(folder).st_ctime_ns != changed:  # noqa: PTH116 - many of them, and pathlib is slow
                    found, now = self._list_one(folder)
                    if found:
                        yield folder
                    new += [(f"{folder}/{name}", 0) for name in sorted(now - below)]
        yield from self._list(new, _MOST_FOLDERS)

    def _list(self, folders: list[tuple[str, int]], depth: int) -> Iterator[str]:
        """Yield those of the folders, and of the folders below them, that have a repository."""
        pending, looked = deque(folders), 0
        while pending and looked < _MOST_FOLDERS:
            folder, level = pending.popleft()
            looked += 1
            with suppress(OSError):
                found, below = self._list_one(folder)
                if found:
                    yield folder
                if level < depth:
                    pending += [(f"{folder}/{name}", level + 1) for name in sorted(below)]

    def _list_one(self, folder: str) -> tuple[bool, frozenset[str]]:
        """Return whether a folder has a repository, and its subfolders."""
        changed = os.stat(folder).st_ctime_ns  # noqa: PTH116 - as above
        self._listed[folder] = 0, frozenset()  # retried if listing fails
        with os.scandir(folder) as listed:
            entries = {entry.name: entry for entry in listed}
        below = frozenset(
            name
            for name, entry in entries.items()
            if name not in _NO_REPOSITORIES and entry.is_dir(follow_symlinks=False)
        )
        self._listed[folder] = changed, below
        return ".git" in entries or {"HEAD", "objects", "refs"} <= entries.keys(), below

    def _add(self, folder: str) -> None:
        git = f"{folder}/.git"
        named = named_data(folder)
        if named is None:
            if not os.path.lexists(git) and is_repository(folder):
                self._fix(folder, folder)
            return
        if not os.path.isdir(git):  # noqa: PTH112 - as above
            self.fixed.append(git)
            for data in _linked_data(folder, named):
                self.outside.append(data)
                self._fix(data, folder)
        common = common_data(named)
        if any(_is_below(common, one) for one in self.writable):
            self._fix(common, folder)
            self.fixed += [f"{named}/commondir"] if common != named else []
        elif common not in self.data:
            self.with_git.add(folder)
        if common in self.data:
            self.with_git.add(folder)

    def _fix(self, data: str, work_tree: str) -> None:
        for folder in [data, *submodules(data)]:
            if folder in self.data or len(self.data) > _MOST_REPOSITORIES:
                continue
            parts = list(self._fixed_parts(folder))
            if parts:
                self.data.add(folder)
                self.fixed += parts
                if os.path.lexists(f"{folder}/commondir"):
                    self.common.add(folder)
                for path in named_files(f"{folder}/config", (work_tree, folder)):
                    if _is_below(path, self.root) and not _is_below(self.root, path):
                        self.fixed.append(path)

    def _fixed_parts(self, folder: str) -> Iterator[str]:
        """Yield the settings and hooks of a git folder, and the files that lead to them."""
        config = f"{folder}/config"
        if not os.path.isfile(config):  # noqa: PTH113 - as above
            if not is_repository(folder):
                return
            with suppress(OSError):
                Path(config).touch()
        yield config
        with suppress(OSError):
            os.makedirs(f"{folder}/hooks", exist_ok=True)  # noqa: PTH103 - as above
            yield f"{folder}/hooks"
        worktrees = subfolders(f"{folder}/worktrees")
        self.worktrees.update(worktrees)
        yield from (f"{own}/commondir" for own in worktrees)
        if _WORKTREE_CONFIG.search(read_small(config)):
            for own in [folder, *worktrees]:
                with suppress(OSError):
                    Path(own, "config.worktree").touch()
                    yield f"{own}/config.worktree"


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _linked_data(folder: str, data: str) -> Iterator[str]:
    """Yield the git folder that a `.git` file names, if it refers back to the work tree.

    A program could write a `.git` file that names any folder. So the named folder must belong to a
    linked work tree or a submodule, and point back to `folder`.
    """
    back = os.fsdecode(read_small(f"{data}/gitdir")).strip()
    if back:
        origin = common_data(data)
        is_in_origin = os.path.dirname(data) == f"{origin}/worktrees" and is_repository(origin)  # noqa: PTH120 - as above
        if os.path.realpath(f"{data}/{back}" if back[0] != "/" else back) == f"{folder}/.git":
            yield from [origin] if is_in_origin else []
        return
    worktree = _WORKTREE.search(read_small(f"{data}/config"))
    if worktree is not None and os.path.realpath(Path(data, os.fsdecode(worktree[1]))) == folder:
        yield data
