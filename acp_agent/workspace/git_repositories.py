"""Find the repositories that a git command in a folder would use, and their settings.

This runs git, since no other parser reads git's files in exactly the same way. Its settings
prevent it from starting programs that the repository names, and its time is limited.
"""

from __future__ import annotations

import os
import select
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from msgspec import Struct

from acp_agent.platform.posix import end_group, find_git
from acp_agent.sandbox.launch import Confine, unconfined
from acp_agent.workspace.environment import added_variables, with_settings

_MAX_SECONDS = 3.0  # for one folder
_POLL_SECONDS = 0.05  # between checks for cancellation
_MAX_REPOSITORIES = 100  # a repository and its submodules
_MAX_SETTINGS = 10_000
_MAX_RECORD = 1_000_000  # bytes of one setting or path
_CHUNK = 65_536
_USER_SCOPES = frozenset({b"system", b"global", b"command"})  # scopes that a project cannot set
_GITLINK = b"160000 "
# Git passes these variables on to commands in submodules, and no other GIT_ variables.
_PASSED_VARIABLES = frozenset({"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"})

# Files of a repository that determine its settings and its submodules.
_FILES = ("/config", "/config.worktree", "/commondir", "/HEAD", "/index", "/objects", "/refs")
# Variables that make git use other files.
_LOCATION_VARIABLES = ("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
_SETTLED = 50_000_000  # nanoseconds: a file may change again in the same tick of the clock
_SECOND = 1_000_000_000
_MAX_ENTRIES = 100  # folders
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


class RepositoryCache:
    """Cache of the repositories of folders; an entry is valid until one of its files changes.

    Only simple cases are cached: a folder without a repository, or a `.git` folder without
    symlinks, submodules or included settings. Safe to use from several threads, of which one reads
    a folder that has no entry, while others wait for its entry.
    """

    def __init__(self) -> None:
        self._locks: dict[str, threading.Lock] = {}
        self._entries: dict[str, tuple[_Stamps, tuple[Repository, ...]]] = {}

    def get(self, folder: str) -> tuple[Repository, ...] | None:
        """Return the entry of a folder, or None if there is no valid one."""
        entry = self._entries.get(folder)
        if entry is None or entry[0] != _stamps(folder):
            return None
        return entry[1]

    @contextmanager
    def reading(self, folder: str, stopped: Callable[[], bool]) -> Iterator[None]:
        """Read a folder in the `with` block, after those who read it now, or once stopped."""
        lock = self._locks.setdefault(folder, threading.Lock())
        while not (locked := lock.acquire(timeout=_POLL_SECONDS)) and not stopped():
            pass
        try:
            yield
        finally:
            if locked:
                lock.release()
                self._locks.pop(folder, None)

    def store(
        self, folder: str, before: _Stamps, repositories: tuple[Repository, ...], *, started_at: int
    ) -> None:
        """Store an entry, if changes to its files can be detected.

        Args:
            before: the result of `_stamps` before reading.
            started_at: when reading began, in nanoseconds since 1970.
        """
        git_dir = f"{_top(folder)}/.git"
        if repositories:
            is_simple = [
                (repository.git_dir, repository.common_dir) for repository in repositories
            ] == [(git_dir, git_dir)]
        else:  # a repository that git refuses may become usable if the user's settings change
            is_simple = not any(before)
        has_includes = any(
            name.startswith("include")
            for repository in repositories
            for name, _ in repository.settings
        )
        if not is_simple or has_includes or any(name in os.environ for name in _LOCATION_VARIABLES):
            return
        present = [stamp for stamp in before if stamp is not None]
        has_links = any(stat.S_ISLNK(stamp[0]) for stamp in present)
        # Whole seconds mean that the file system's time stamps are too coarse.
        is_exact = all(
            stamp[-1] % _SECOND and stamp[-1] < started_at - _SETTLED for stamp in present
        )
        if is_exact and not has_links and before == _stamps(folder):
            while len(self._entries) >= _MAX_ENTRIES:
                self._entries.pop(next(iter(tuple(self._entries))), None)
            self._entries[folder] = before, repositories


def _stamps(folder: str) -> _Stamps:
    """Return values that change if git would find another repository or other settings."""
    paths = [f"{_top(folder)}/.git{name}" for name in _FILES]
    current, child = os.path.realpath(folder), ""
    while current != child:
        paths += [f"{current}/.git", f"{current}/HEAD"]  # a bare repository has the latter
        current, child = os.path.dirname(current), current  # noqa: PTH120 - a name of any characters
    return tuple(map(_stamp, paths))


def _blocks(path: str) -> bool:
    """Return whether git would wait for data from a file, such as a pipe, or read a device."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - one of many
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _stamp(path: str) -> tuple[int, ...] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    owner = (status.st_mode, status.st_uid, status.st_ino, status.st_dev, status.st_size)
    return (*owner, status.st_mtime_ns, status.st_ctime_ns)


class GitRepositories:
    """The repositories of folders. Results are never refreshed: use an instance for one decision.

    Args:
        stopped: returns whether the work was cancelled; then every result is None.
        confine: wraps git's command line.
    """

    def __init__(
        self,
        stopped: Callable[[], bool] = lambda: False,
        confine: Confine = unconfined,
        cache: RepositoryCache | None = None,
    ) -> None:
        self._stopped = stopped
        self._confine = confine
        self._cache = cache or RepositoryCache()
        self._has_links = False  # to submodules
        self._program = ""
        self._entries: dict[str, tuple[Repository, ...] | None] = {}

    def used_in(self, folder: str) -> tuple[Repository, ...] | None:
        """Return the repository that git would use in a folder, and its submodules.

        The result is empty if there is no repository, no folder or no git, and None if it cannot
        be determined. Starts processes: call it in a thread.
        """
        if folder not in self._entries:
            entry = self._cache.get(folder)
            if entry is None:
                with self._cache.reading(folder, self._stopped):
                    entry = self._cache.get(folder)
                    if entry is None:
                        entry = self._find(folder)
            self._entries[folder] = entry
        return self._entries[folder]

    def _find(self, folder: str) -> tuple[Repository, ...] | None:
        before, started_at, self._has_links = _stamps(folder), time.time_ns(), False
        if any(_blocks(f"{_top(folder)}/.git{name}") for name in _FILES):
            return None
        try:
            repositories = tuple(self._walk(folder, time.monotonic() + _MAX_SECONDS))
        except (_UnreadableError, OSError, ValueError):
            return None
        if self._program and not self._has_links:
            self._cache.store(folder, before, repositories, started_at=started_at)
        return repositories

    def _walk(self, folder: str, deadline: float) -> Iterator[Repository]:
        self._program = find_git(_top(folder)) or ""
        if not self._program:
            return
        environ = {name: value for name, value in os.environ.items() if name != "GIT_CONFIG"}
        environ |= added_variables(environ, only_reads=True)
        # Read bare repositories too, so that their settings are known.
        environ |= with_settings({"safe.bareRepository": "all"}, environ)
        environ |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
        submodule_environ = {
            name: value
            for name, value in environ.items()
            if not name.startswith("GIT_") or name in _PASSED_VARIABLES
        }
        submodule_environ |= added_variables(submodule_environ, only_reads=True) | {
            "GIT_DIR": ".git"
        }
        pending = [(folder, environ)]
        visited = 0
        while pending:
            current, environ = pending.pop()
            visited += 1
            if visited > _MAX_REPOSITORIES:
                raise _UnreadableError
            if not os.path.isdir(current):
                continue
            repository = self._read(current, environ, deadline)
            if repository is None:
                continue
            yield repository
            submodules = self._submodules(repository, environ, deadline)
            pending += [(submodule, submodule_environ) for submodule in submodules]

    def _read(self, folder: str, environ: Mapping[str, str], deadline: float) -> Repository | None:
        settings = self._settings(folder, environ, deadline)
        query = ("rev-parse", "--path-format=absolute", "--show-toplevel", "--git-dir")
        try:
            lines = b"".join(
                self._records((*query, "--git-common-dir"), folder, environ, deadline)
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
        settings: list[tuple[str, str]] = []
        records = self._records(arguments, folder, environ, deadline)
        for scope, setting in zip(records, records, strict=True):
            if scope in _USER_SCOPES:
                continue
            name, _, value = setting.decode("utf-8", "replace").partition("\n")
            settings.append((name, value))
            if len(settings) > _MAX_SETTINGS:
                raise _UnreadableError
        return tuple(settings)

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
        remainder = b""
        try:
            while data := self._next(process.stdout.fileno(), deadline):
                *records, remainder = (remainder + data).split(b"\0")
                yield from records
                if len(remainder) > _MAX_RECORD:
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
        if remainder:
            yield remainder

    def _next(self, descriptor: int, deadline: float) -> bytes:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        while not poll.poll(_POLL_SECONDS * 1000):
            if self._stopped() or time.monotonic() > deadline:
                raise _UnreadableError
        return os.read(descriptor, _CHUNK)


def _top(folder: str) -> str:
    """Return the nearest folder with a repository, or the folder itself if there is none."""
    current = os.path.realpath(folder)
    while not os.path.lexists(f"{current}/.git"):
        parent = os.path.dirname(current)  # noqa: PTH120 - a name of any characters
        if parent == current:
            return folder
        current = parent
    return current
