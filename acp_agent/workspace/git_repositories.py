"""Find which repositories a git command in a folder would use, and their settings.

Git itself is asked, since only git reads its files exactly as it does. It runs with settings
under which it starts no program of the repository's, and for a few seconds at most.
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

_SECONDS = 10.0  # for all that is read of one folder
_LOOK_SECONDS = 0.05  # between two looks at whether anybody waits
_REPOSITORY_LIMIT = 100  # a repository and its submodules
_SETTING_LIMIT = 10_000
_RECORD_LIMIT = 1_000_000  # bytes of one setting or path
_PIECE = 65_536
_USERS = frozenset({b"system", b"global", b"command"})  # the scopes that no project has a say in
_GITLINK = b"160000 "
# Git gives its submodules none of its variables, but those that say where the user's settings are.
_KEPT = frozenset({"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"})

# Files of a repository that say where its settings are, what they are, and which submodules it has.
_FILES = ("/config", "/config.worktree", "/commondir", "/HEAD", "/index", "/objects", "/refs")
# Variables that lead git to other files than these.
_ELSEWHERE = ("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
_SETTLED = 50_000_000  # nanoseconds: a file may change again in the same tick of the clock
_SECOND = 1_000_000_000
_KNOWN_LIMIT = 100  # folders
_Stamps = tuple[tuple[int, ...] | None, ...]


class Repository(Struct, frozen=True, kw_only=True):
    """A repository: its folders, resolved, and its own settings, not those of the user."""

    work_tree: str
    git_dir: str
    common_dir: str
    settings: tuple[tuple[str, str], ...]


class _UnreadableError(Exception):
    """Git did not answer in time, or with too much."""


class _FailedError(_UnreadableError):
    """Git answered with a failure."""


class KnownRepositories:
    """Cache of what was read of folders, valid until a file that it depends on changes.

    Only plain repositories are kept: a folder `.git` without links and submodules, that has all its
    settings itself, and no repository at all. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[_Stamps, tuple[Repository, ...]]] = {}

    def get(self, folder: str) -> tuple[Repository, ...] | None:
        """Return the valid entry of a folder."""
        known = self._known.get(folder)
        if known is None or known[0] != _stamps(folder):
            return None
        return known[1]

    def keep(self, folder: str, before: _Stamps, found: tuple[Repository, ...], *, at: int) -> None:
        """Store an entry, if changes of its files can be noticed.

        Args:
            folder: what it was read of.
            before: `_stamps` from before.
            found: what was read.
            at: when reading began, in nanoseconds since 1970.
        """
        git_dir = f"{_top(folder)}/.git"
        if found:
            plain = [(one.git_dir, one.common_dir) for one in found] == [(git_dir, git_dir)]
        else:  # what git refuses to use, it may use once the user's settings are others
            plain = not any(before)
        included = any(name.startswith("include") for one in found for name, _ in one.settings)
        if not plain or included or any(name in os.environ for name in _ELSEWHERE):
            return
        present = [stamp for stamp in before if stamp is not None]
        linked = any(stat.S_ISLNK(stamp[0]) for stamp in present)
        # Whole seconds: this file system's clock is too slow to tell two changes apart.
        exact = all(stamp[-1] % _SECOND and stamp[-1] < at - _SETTLED for stamp in present)
        if exact and not linked and before == _stamps(folder):
            while len(self._known) >= _KNOWN_LIMIT:
                self._known.pop(next(iter(tuple(self._known))), None)
            self._known[folder] = before, found


def _stamps(folder: str) -> _Stamps:
    """Return what changes where git would find another repository, or other settings."""
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
    """The repositories of folders, read once: use it for one question only.

    Args:
        stopped: whether the question was cancelled; then every answer is None.
        confine: says how git is started.
        known: what was read for earlier questions.
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
        """Return the repository that git would use there, and its submodules; None: not known.

        Nothing is used where there is no repository, no folder or no git. Starts processes: call it
        in a thread.
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
        # A bare repository is read here, where there is one, so that what it sets is known.
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
            return None  # there is none, or none that git would use
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
        """The folders of submodules that are checked out; some git commands go into them."""
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
        """Yield the records that git prints, without NUL; git has ended after the last one."""
        if self._stopped():  # nobody is left to end what would start now
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
    """Return the nearest folder with a repository; the folder itself where there is none."""
    at = os.path.realpath(folder)
    while not os.path.lexists(f"{at}/.git"):
        above = os.path.dirname(at)  # noqa: PTH120 - a name of any characters
        if above == at:
            return folder
        at = above
    return at
