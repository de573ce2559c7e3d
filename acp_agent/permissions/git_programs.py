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

from msgspec import Struct

from acp_agent.permissions.paths import CommandContext
from acp_agent.permissions.read_only import is_data
from acp_agent.sandbox.launch import Confine, unconfined
from acp_agent.trust.items import Item, file_digest, folder_name
from acp_agent.workspace.environment import INERT
from acp_agent.workspace.git_repositories import GitRepositories, Repository

_HOOKS = "core.hookspath"
_SHOWN = 12  # names shown in a question
# Disabled wherever a repository's programs are not trusted.
_OFF = {name: INERT[name] for name in ("core.fsmonitor", "core.hooksPath")}


class GitPrograms(Struct, frozen=True, kw_only=True):
    """The programs that a repository makes git run.

    Attributes:
        item: the trust item that covers all of them.
        overrides: settings under which git runs none of them.
        files: the hooks.
    """

    item: Item
    overrides: Mapping[str, str]
    files: tuple[str, ...] = ()


class WatchedGitPrograms:
    """The programs of a folder's repositories, read again when the files that name them change.

    Safe to use from several threads.
    """

    def __init__(self, confine: Confine = unconfined) -> None:
        """Args: confine: how git is started."""
        self._confine = confine
        self._lock = threading.Lock()
        self._closed = False
        self._known: tuple[str, tuple[object, ...], GitPrograms | None] | None = None

    def of(self, folder: Path) -> GitPrograms | None:
        """Return the programs; see `git_programs`."""
        with self._lock:
            known = self._known
            if known is not None and known[:2] == (str(folder), _stamps(folder, known[2])):
                return known[2]
            found = git_programs(folder, lambda: self._closed, self._confine)
            self._known = str(folder), _stamps(folder, found), found
            return found

    def close(self) -> None:
        """Stop git if it runs, and wait until it has ended. Blocks for a moment."""
        self._closed = True
        with self._lock:
            pass


def _stamps(folder: Path, found: GitPrograms | None) -> tuple[object, ...]:
    top = next((one for one in (folder, *folder.parents) if os.path.lexists(one / ".git")), folder)
    files = [f"{top}/.git{name}" for name in ("", "/config", "/config.worktree", "/hooks")]
    return tuple(_stamp(file) for file in (*files, *(() if found is None else found.files)))


def _stamp(file: str) -> object:
    try:
        status = os.stat(file)  # noqa: PTH116 - of a few files for every turn
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode


def git_programs(
    folder: Path, stopped: Callable[[], bool] = lambda: False, confine: Confine = unconfined
) -> GitPrograms | None:
    """Return the programs of the repositories that git uses in a folder; None if there are none.

    Submodules are included. If git does not answer in time or `stopped` returns true, the item has
    no digest and is never trusted. Starts git: call it in a thread.
    """
    cwd = os.path.realpath(folder)
    if not _in_repository(Path(cwd)):
        return None
    used = GitRepositories(stopped, confine).used_in(cwd)
    top = folder_name(folder) if not used else folder_name(Path(used[0].work_tree))
    if used is None:
        item = Item(kind="git", folder=top, path=".git", digest="")
        return GitPrograms(item=item, overrides=_OFF)
    context = CommandContext(cwd=cwd, roots=(cwd,), home=str(Path.home()))
    settings = {
        name: value
        for repository in used
        for name, value in repository.settings
        if not is_data(name, value, repository, context)
    }
    hooks = {str(hook): hook for repository in used for hook in _hooks(repository)}
    if not settings and not hooks:
        return None
    digest = hashlib.sha256()
    for name, value in sorted(settings.items()):
        digest.update(f"{len(name)}:{name}{len(value)}:{value}".encode("utf-8", "replace"))
    try:
        for name, hook in sorted(hooks.items()):
            digest.update(f"{name}\0{file_digest(hook)}".encode("utf-8", "replace"))
        known = digest.hexdigest()
    except OSError:
        known = ""
    what = [f"{name} = {value[:80]}" for name, value in settings.items()][:_SHOWN]
    if hooks:
        what.append(f"hooks: {', '.join(hook.name for hook in hooks.values())}")
    item = Item(kind="git", folder=top, path=".git", digest=known, what="; ".join(what))
    # An empty text converter would replace the diff with an error.
    overrides = {name: "cat" if name.endswith(".textconv") else "" for name in settings} | _OFF
    return GitPrograms(item=item, overrides=overrides, files=tuple(hooks))


def _in_repository(folder: Path) -> bool:
    return any(os.path.lexists(one / ".git") for one in (folder, *folder.parents))


def _hooks(repository: Repository) -> Iterator[Path]:
    """Yield the hooks that git would run."""
    named = [value for name, value in repository.settings if name == _HOOKS]
    place = Path(repository.common_dir, "hooks")
    if named:
        place = Path(repository.work_tree, Path(named[-1]).expanduser())
    try:
        entries = sorted(place.iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.suffix != ".sample" and entry.is_file() and os.access(entry, os.X_OK):
            yield entry
