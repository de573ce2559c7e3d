"""Programs that a repository makes git run: hooks, and settings that name a program.

Neither is cloned, but an archive can contain them, and `core.hooksPath` may name a folder of cloned
files. Until the user trusts them, git gets settings that disable them.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from acp_agent.extensions.definitions.locations import find_repository, project_top
from acp_agent.permissions.git_reads import is_data
from acp_agent.permissions.paths import CommandContext
from acp_agent.trust.store import Item, file_digest, folder_name
from acp_agent.workspace.environment import INERT
from acp_agent.workspace.git_repositories import GitRepositories, Repository

_HOOKS = "core.hookspath"
_MAX_LISTED_SETTINGS = 12  # names shown in a question
# Disabled wherever a repository's programs are not trusted.
_DISABLED_SETTINGS = {name: INERT[name] for name in ("core.fsmonitor", "core.hooksPath")}


class GitPrograms(Struct, frozen=True, kw_only=True):
    """The programs that a repository makes git run.

    Attributes:
        item: the trust item that covers all of them.
        overrides: settings under which git runs none of them.
    """

    item: Item
    overrides: Mapping[str, str]
    files: tuple[str, ...] = ()


# A folder, the stamps of its files, and what was found.
_Cached: TypeAlias = tuple[str, tuple[object, ...], GitPrograms | None]


class WatchedGitPrograms:
    """The programs of a folder's repositories, read again when the files that name them change.

    Safe to use from several threads.
    """

    def __init__(self, repositories: Callable[[Callable[[], bool]], GitRepositories]) -> None:
        """Args: repositories: returns what finds repositories until its argument returns true."""
        self._repositories = repositories
        self._lock = threading.Lock()
        self._closed = False
        self._cached: _Cached | None = None

    def find(self, folder: Path) -> GitPrograms | None:
        """Return the programs; see `git_programs`."""
        with self._lock:
            if (cached := self._current(folder)) is not None:
                return cached[2]
            programs = git_programs(folder, self._repositories(lambda: self._closed))
            self._cached = str(folder), _stamps(folder, programs), programs
            return programs

    def are_known_absent(self, folder: Path) -> bool:
        """Return whether an earlier call found none; starts no git and never waits."""
        cached = self._current(folder)
        return cached is not None and cached[2] is None

    def _current(self, folder: Path) -> _Cached | None:
        """Return what was found in a folder, if none of its files has changed since."""
        cached = self._cached
        if cached is None or cached[:2] != (str(folder), _stamps(folder, cached[2])):
            return None
        return cached

    def close(self) -> None:
        """Stop git if it runs, and wait until it has ended. Blocks for a moment."""
        self._closed = True
        with self._lock:
            pass


def _stamps(folder: Path, programs: GitPrograms | None) -> tuple[object, ...]:
    top = project_top(folder)
    files = [f"{top}/.git{name}" for name in ("", "/config", "/config.worktree", "/hooks")]
    return tuple(_stamp(file) for file in (*files, *(() if programs is None else programs.files)))


def _stamp(file: str) -> object:
    try:
        status = os.stat(file)  # noqa: PTH116 - of a few files for every turn
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode


def git_programs(folder: Path, git: GitRepositories) -> GitPrograms | None:
    """Return the programs of the repositories that git uses in a folder; None if there are none.

    Submodules are included. If git does not answer in time or is stopped, the item has no digest
    and is never trusted. Starts git: call it in a thread.
    """
    cwd = os.path.realpath(folder)
    if find_repository(Path(cwd)) is None:
        return None
    repositories = git.used_in(cwd)
    top = folder_name(folder) if not repositories else folder_name(Path(repositories[0].work_tree))
    if repositories is None:
        item = Item(kind="git", folder=top, path=".git", digest="")
        return GitPrograms(item=item, overrides=_DISABLED_SETTINGS)
    context = CommandContext(cwd=cwd, roots=(cwd,), home=str(Path.home()))
    settings = {
        name: value
        for repository in repositories
        for name, value in repository.settings
        if not is_data(name, value, repository, context)
    }
    hooks = {str(hook): hook for repository in repositories for hook in _hooks(repository)}
    if not settings and not hooks:
        return None
    hasher = hashlib.sha256()
    for name, value in sorted(settings.items()):
        hasher.update(f"{len(name)}:{name}{len(value)}:{value}".encode("utf-8", "replace"))
    try:
        for name, hook in sorted(hooks.items()):
            hasher.update(f"{name}\0{file_digest(hook)}".encode("utf-8", "replace"))
        digest = hasher.hexdigest()
    except OSError:
        digest = ""
    descriptions = [f"{name} = {value[:80]}" for name, value in settings.items()][
        :_MAX_LISTED_SETTINGS
    ]
    if hooks:
        descriptions.append(f"hooks: {', '.join(hook.name for hook in hooks.values())}")
    item = Item(kind="git", folder=top, path=".git", digest=digest, what="; ".join(descriptions))
    # An empty text converter would replace the diff with an error.
    overrides = {
        name: "cat" if name.endswith(".textconv") else "" for name in settings
    } | _DISABLED_SETTINGS
    return GitPrograms(item=item, overrides=overrides, files=tuple(hooks))


def _hooks(repository: Repository) -> Iterator[Path]:
    """Yield the hooks that git would run."""
    hooks_paths = [value for name, value in repository.settings if name == _HOOKS]
    hooks_folder = Path(repository.common_dir, "hooks")
    if hooks_paths:
        hooks_folder = Path(repository.work_tree, Path(hooks_paths[-1]).expanduser())
    try:
        entries = sorted(hooks_folder.iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.suffix != ".sample" and os.path.isfile(entry) and os.access(entry, os.X_OK):
            yield entry
