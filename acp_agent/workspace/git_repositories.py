"""Find the repositories that a git command in a folder would use, and their settings.

This runs git, since no other parser reads git's files in exactly the same way. Its settings
prevent it from starting programs that the repository names, and its time is limited.
"""

from __future__ import annotations

import os
import select
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from acp_agent.platform.posix import end_group
from acp_agent.platform.programs import find_git
from acp_agent.sandbox.launch import Confine, unconfined
from acp_agent.workspace.environment import added_variables, with_settings

_SECONDS = 10.0  # for one folder
_LOOK_SECONDS = 0.05  # between checks for cancellation
_REPOSITORY_LIMIT = 100  # a repository and its submodules
_SETTING_LIMIT = 10_000
_RECORD_LIMIT = 1_000_000  # bytes of one setting or path
_PIECE = 65_536
_USERS = frozenset({b"system", b"global", b"command"})  # scopes that a project cannot set
_GITLINK = b"160000 "
# Git passes these variables on to commands in submodules, and no other GIT_ variables.
_KEPT = frozenset({"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"})

# Files of a repository that determine its settings and its submodules.
_FILES = ("/config", "/config.worktree", "/commondir", "/HEAD", "/index", "/objects", "/refs")
# Variables that make git use other files.
_ELSEWHERE = ("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
_SETTLED = 50_000_000  # nanoseconds: a file may change again in the same tick of the clock
_SECOND = 1_000_000_000
_KNOWN_LIMIT = 100  # folders
_Stamps = tuple[tuple[int, ...] | None, ...]


class Repository(Struct, frozen=True, kw_only=True):
    """A repository: its resolved folders, and its own settings without those of the user."""

    work_tree: str
    git_dir: str
    common_dir: str
    settings: tuple[tuple[str, str], ...]


class _UnreadableError(Exception):
    """Git took too long or printed too much."""


class _FailedError(_UnreadableError):
    """Git failed."""


class KnownRepositories:
    """Cache of the repositories of folders; an entry is valid until one of its files changes.

    Only simple cases are cached: a folder without a repository, or a `.git` folder without
    symlinks, submodules or included settings. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[_Stamps, tuple[Repository, ...]]] = {}

    def get(self, folder: str) -> tuple[Repository, ...] | None:
        """Return the entry of a folder, or None if there is no valid one."""
        known = self._known.get(folder)
        if known is None or known[0] != _stamps(folder):
            return None
        return known[1]

    def keep(self, folder: str, before: _Stamps, found: tuple[Repository, ...], *, at: int) -> None:
        """Store an entry, if changes to its files can be detected.

        Args:
            folder: the folder.
            before: the result of `_stamps` before reading.
            found: the repositories of the folder.
            at: when reading began, in nanoseconds since 1970.
        """
        git_dir = f"{_top(folder)}/.git"
        if found:
            plain = [(one.git_dir, one.common_dir) for one in found] == [(git_dir, git_dir)]
        else:  # a repository that git refuses may become usable if the user's settings change
            plain = not any(before)
        included = any(name.startswith("include") for one in found for name, _ in one.settings)
        if not plain or included or any(name in os.environ for name in _ELSEWHERE):
            return
        present = [stamp for stamp in before if stamp is not None]
        linked = any(stat.S_ISLNK(stamp[0]) for stamp in present)
        # Whole seconds mean that the file system's time stamps are too coarse.
        exact = all(stamp[-1] % _SECOND and stamp[-1] < at - _SETTLED for stamp in present)
        if exact and not linked and before == _stamps(folder):
            while len(self._known) >= _KNOWN_LIMIT:
                self._known.pop(next(iter(tuple(self._known))), None)
            self._known[folder] = before, found


def _stamps(folder: str) -> _Stamps:
    """Return values that change if git would find another repository or other settings."""
    paths = [f"{_top(folder)}/.git{name}" for name in _FILES]
    at, below = os.path.realpath(folder), ""
    while at != below:
        paths += [f"{at}/.git", f"{at}/HEAD"]  # a bare repository has the latter
        at, below = os.path.dirname(at), at  # noqa: PTH120 - a name of any characters
    return tuple(map(_stamp, paths))


def _stamp(path: str) -> tuple[int, ...] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    owner = (found.st_mode, found.st_uid, found.st_ino, found.st_dev, found.st_size)
    return (*owner, found.st_mtime_ns, found.st_ctime_ns)


class GitRepositories:
    """The repositories of folders. Results are never refreshed: use an instance for one decision.

    Args:
        stopped: returns whether the work was cancelled; then every result is None.
        confine: wraps git's command line.
        known: the cache of earlier results.
    """

    def __init__(
        self,
        stopped: Callable[[], bool] = lambda: False,
        confine: Confine = unconfined,
        known: KnownRepositories | None = None,
    ) -> None:
        self._stopped = stopped
        self._confine = confine
        self._earlier = known or KnownRepositories()
        self._has_links = False  # to submodules
        self._program = ""
        self._known: dict[str, tuple[Repository, ...] | None] = {}

    def used_in(self, folder: str) -> tuple[Repository, ...] | None:
        """Return the repository that git would use in a folder, and its submodules.

        The result is empty if there is no repository, no folder or no git, and None if it cannot
        be determined. Starts processes: call it in a thread.
        """
        if folder not in self._known:
            found = self._earlier.get(folder)
            self._known[folder] = self._ask(folder) if found is None else found
        return self._known[folder]

    def _ask(self, folder: str) -> tuple[Repository, ...] | None:
        before, at, self._has_links = _stamps(folder), time.time_ns(), False
        try:
            found = tuple(self._look(folder, time.monotonic() + _SECONDS))
        except (_UnreadableError, OSError, ValueError):
            return None
        if self._program and not self._has_links:
            self._earlier.keep(folder, before, found, at=at)
        return found

    def _look(self, folder: str, deadline: float) -> Iterator[Repository]:
        self._program = find_git(_top(folder)) or ""
        if not self._program:
            return
        environ = {name: value for name, value in os.environ.items() if name != "GIT_CONFIG"}
        environ |= added_variables(environ, only_reads=True)
        # Read bare repositories too, so that their settings are known.
        environ |= with_settings({"safe.bareRepository": "all"}, environ)
        environ |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
        inside = {
            name: value
            for name, value in environ.items()
            if not name.startswith("GIT_") or name in _KEPT
        }
        inside |= added_variables(inside, only_reads=True) | {"GIT_DIR": ".git"}
        pending = [(folder, environ)]
        seen = 0
        while pending:
            where, environ = pending.pop()
            seen += 1
            if seen > _REPOSITORY_LIMIT:
                raise _UnreadableError
            if not os.path.isdir(where):  # noqa: PTH112 - a name of any characters
                continue
            found = self._read(where, environ, deadline)
            if found is None:
                continue
            yield found
            submodules = self._submodules(found, environ, deadline)
            pending += [(submodule, inside) for submodule in submodules]

    def _read(self, folder: str, environ: Mapping[str, str], deadline: float) -> Repository | None:
        settings = self._settings(folder, environ, deadline)
        asked = ("rev-parse", "--path-format=absolute", "--show-toplevel", "--git-dir")
        try:
            lines = b"".join(
                self._records((*asked, "--git-common-dir"), folder, environ, deadline)
            ).splitlines()
        except _FailedError:
            if settings:
                raise
            return None  # no repository, or none that git accepts
        work_tree, git_dir, common_dir = (os.path.realpath(os.fsdecode(line)) for line in lines)
        return Repository(
            work_tree=work_tree, git_dir=git_dir, common_dir=common_dir, settings=settings
        )

    def _settings(
        self, folder: str, environ: Mapping[str, str], deadline: float
    ) -> tuple[tuple[str, str], ...]:
        arguments = ("config", "--list", "-z", "--show-scope", "--includes")
        found: list[tuple[str, str]] = []
        records = self._records(arguments, folder, environ, deadline)
        for scope, setting in zip(records, records, strict=True):
            if scope in _USERS:
                continue
            name, _, value = setting.decode("utf-8", "replace").partition("\n")
            found.append((name, value))
            if len(found) > _SETTING_LIMIT:
                raise _UnreadableError
        return tuple(found)

    def _submodules(
        self, repository: Repository, environ: Mapping[str, str], deadline: float
    ) -> Iterator[str]:
        """Yield the folders of checked-out submodules; some git commands enter them."""
        folders = (f"--git-dir={repository.git_dir}", f"--work-tree={repository.work_tree}")
        arguments = (*folders, "ls-files", "--stage", "-z")
        for record in self._records(arguments, repository.work_tree, environ, deadline):
            if record.startswith(_GITLINK):
                self._has_links = True
                path = os.fsdecode(record.partition(b"\t")[2])
                folder = os.path.join(repository.work_tree, path)  # noqa: PTH118 - likewise
                if os.path.lexists(f"{folder}/.git"):
                    yield folder

    def _records(
        self, arguments: tuple[str, ...], folder: str, environ: Mapping[str, str], deadline: float
    ) -> Iterator[bytes]:
        """Yield the NUL-terminated records that git prints; git has exited after the last one."""
        if self._stopped():  # do not start a process that nobody would end
            raise _UnreadableError
        process = self._confine([self._program, *arguments], environ, folder).start(
            folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert process.stdout is not None
        rest = b""
        try:
            while data := self._next(process.stdout.fileno(), deadline):
                *records, rest = (rest + data).split(b"\0")
                yield from records
                if len(rest) > _RECORD_LIMIT:
                    raise _UnreadableError
            if process.wait(max(0.0, deadline - time.monotonic())):
                raise _FailedError
        except subprocess.TimeoutExpired:
            raise _UnreadableError from None
        finally:
            if process.poll() is None:
                end_group(process.pid, at_once=True)
            process.stdout.close()
            process.wait()
        if rest:
            yield rest

    def _next(self, descriptor: int, deadline: float) -> bytes:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        while not poll.poll(_LOOK_SECONDS * 1000):
            if self._stopped() or time.monotonic() > deadline:
                raise _UnreadableError
        return os.read(descriptor, _PIECE)


def _top(folder: str) -> str:
    """Return the nearest folder with a repository, or the folder itself if there is none."""
    at = os.path.realpath(folder)
    while not os.path.lexists(f"{at}/.git"):
        above = os.path.dirname(at)  # noqa: PTH120 - a name of any characters
        if above == at:
            return folder
        at = above
    return at
