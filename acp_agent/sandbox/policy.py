"""The rights of a confined program, as mounts that every backend understands."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from acp_agent.config.sandbox_types import SandboxConfig
from acp_agent.platform.data_tables import read_table
from acp_agent.platform.posix import is_below
from acp_agent.sandbox.mount_aliases import find_aliases

if TYPE_CHECKING:  # needed by the first command
    from acp_agent.sandbox.git_folders import GitFolders
    from acp_agent.sandbox.git_listings import FolderListings

TEMPORARY = "/tmp"  # noqa: S108 - as confined programs see it: a folder of the session
PRIVATE_FOLDERS = (TEMPORARY, "/var/tmp", "/run", "/dev", "/proc")  # noqa: S108 - no file is created there

_MAX_HOMES = 50  # home folders of other users that are searched for secrets
_FEW_ENTRIES = 500  # of a folder that is listed
_MAX_ENTRIES = 300  # entries of a protected folder that are checked for links

MountKind = Literal["write", "read", "hide"]


class _Hidden(Struct, frozen=True, forbid_unknown_fields=True):
    home: tuple[str, ...]
    agents: tuple[str, ...]
    system: tuple[str, ...]
    run: tuple[str, ...]
    variables: tuple[str, ...]
    caches: dict[str, str]
    offline: dict[str, str]


class _Protected(Struct, frozen=True, forbid_unknown_fields=True):
    paths: tuple[str, ...]


class SandboxPolicy(Struct, frozen=True, kw_only=True):
    """The rights of the programs of one session.

    Args:
        program_files: this program's own files and folders, which are hidden.
        readable: readable paths in hidden folders.
        temporary: the folder that programs see as /tmp.
    """

    roots: tuple[str, ...]
    home: str
    program_files: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    temporary: str = ""
    search_path: str = ""
    config: SandboxConfig

    def mounts(
        self,
        *,
        only_reads: bool,
        secret: Sequence[str] | None = None,
        repositories: Sequence[GitFolders] | None = None,
    ) -> list[tuple[str, MountKind]]:
        """Return resolved paths with their kinds, parents before children.

        Other paths are readable and not writable. Reads many files: call it in a thread.

        Args:
            only_reads: whether only the temporary folder is writable.
            secret: the result of `secret_paths`, if already known.
            repositories: the result of `repositories`, if already known.
        """
        filesystem = self.config.filesystem
        roots = list(_existing(self.roots))
        secret = self.secret_paths() if secret is None else secret
        hidden = [path for path in secret if path not in roots]
        mounts: dict[str, MountKind] = dict.fromkeys(hidden, "hide")
        readable = [*self._readable(roots), *_existing(self._absolute(filesystem.allow_read))]
        mounts |= dict.fromkeys(readable, "read")
        code_folders = [sys.prefix, sys.base_prefix, os.path.dirname(__file__)]  # noqa: PTH120 - strings
        for path in _existing([*code_folders, *(roots if only_reads else ())]):
            mounts.setdefault(path, "read")
        surrounding: dict[str, MountKind] = {} if only_reads else dict.fromkeys(roots, "write")
        surrounding |= mounts
        for path in list(_existing([self.home, *_program_folders(self.search_path)])):
            if mount_kind(path, surrounding) != "write":  # a project's own programs may be changed
                mounts.setdefault(path, "read")
        denied = [*_existing(self._absolute(filesystem.deny_read))]
        denied += find_aliases(denied)
        if not only_reads:
            git_folders = self.repositories() if repositories is None else repositories
            mounts |= self._writable(roots, [*hidden, *denied], git_folders)
        mounts |= dict.fromkeys(denied, "hide")
        return _effective_mounts(mounts)

    def environ(
        self, environ: Mapping[str, str], temporary: str = TEMPORARY, *, offline: bool = False
    ) -> dict[str, str]:
        """Return the environment of a confined program.

        Removes variables that refer to programs outside, and adds folders for package managers.

        Args:
            environ: its environment outside the sandbox.
            temporary: the path of its temporary folder inside the sandbox.
            offline: whether it has no network.
        """
        variables = dict(_hidden().offline) if offline else {}
        variables |= {
            name: value for name, value in environ.items() if name not in _hidden().variables
        }
        if "TMPDIR" in variables or temporary != TEMPORARY:
            variables["TMPDIR"] = temporary
        writable = [*_existing(self.roots), *self._absolute(self.config.filesystem.allow_write)]
        for name, folder in _hidden().caches.items():
            cache_folder = variables.get(name, f"{self.home}/{folder}")
            if not any(is_below(cache_folder, root) for root in writable):
                variables[name] = f"{temporary}/.cache/{Path(folder).name}"
        return variables

    def repositories(self, listings: FolderListings | None = None) -> list[GitFolders]:
        """Return the repositories in the folders. Reads many files: call it in a thread.

        Args:
            listings: the listings of an earlier call.
        """
        from acp_agent.sandbox.git_folders import GitFolders  # noqa: PLC0415 - when first needed
        from acp_agent.sandbox.git_listings import FolderListings  # noqa: PLC0415 - so

        roots = list(_existing(self.roots))
        allowed = _existing(self._absolute(self.config.filesystem.allow_write))
        writable = (*roots, *allowed, os.path.realpath(self.temporary))
        listings = FolderListings() if listings is None else listings
        return [GitFolders(root, writable, listings) for root in roots]

    def protected_paths(self) -> list[str]:
        """Return the paths of files that other programs run automatically; they may not exist.

        Paths in `allow_write` are not included.
        """
        roots = list(_existing(self.roots))
        allowed = [
            path
            for path in map(os.path.realpath, self._absolute(self.config.filesystem.allow_write))
            if not any(is_below(root, path) for root in roots)
        ]
        paths = [f"{root}/{name}" for root in roots for name in protected_names()]
        if any(is_below(self.home, root) for root in roots):
            paths += _home_program_folders(self.search_path, self.home)
        if not allowed:  # as usual; there are hundreds of paths
            return paths
        return [path for path in paths if not any(is_below(path, folder) for folder in allowed)]

    def with_new_names(self, mounts: Sequence[tuple[str, MountKind]]) -> dict[str, MountKind]:
        """Return mounts for a backend that can also protect paths that do not exist.

        Adds the temporary folder and, in writable folders, the names of files that run
        automatically.
        """
        kinds = dict(mounts)
        if self.temporary:
            kinds[os.path.realpath(self.temporary)] = "write"
        writable = [path for path, kind in mounts if kind == "write"]
        for path in self.protected_paths() if writable else ():
            if any(is_below(path, folder) for folder in writable):
                kinds.setdefault(path, "read")
        return kinds

    def _writable(
        self, roots: Sequence[str], hidden: Sequence[str], repositories: Sequence[GitFolders]
    ) -> dict[str, MountKind]:
        filesystem = self.config.filesystem
        writable = [*roots, *_existing(self._absolute(filesystem.allow_write))]
        read_only = list(_existing(self._absolute(filesystem.deny_write)))
        read_only += _existing(existing_paths(self.protected_paths()))
        for repository in repositories:
            writable += repository.outside_git_dirs
            read_only += _existing(repository.protected)
        read_only += [target for path in read_only for target in _link_targets(path)]
        # Links may lead anywhere; a read-only mount elsewhere could reveal a hidden path.
        read_only = [
            path for path in read_only if any(is_below(path, folder) for folder in writable)
        ]
        mounts: dict[str, MountKind] = dict.fromkeys(writable, "write")
        for path in [*read_only, *hidden]:
            # Otherwise a parent folder could be renamed and replaced; a mount point cannot.
            for parent in _parent_folders(path):
                if any(is_below(parent, root) for root in writable) and parent not in hidden:
                    mounts.setdefault(parent, "write")
        return mounts | dict.fromkeys(read_only, "read")

    def _readable(self, roots: Sequence[str]) -> Iterator[str]:
        for path in self.readable:
            # A symlink in a project must not make a hidden path readable.
            program_files = any(is_below(path, root) for root in [*roots, *self.roots])
            for resolved in _existing([path]):
                if not program_files or any(is_below(resolved, root) for root in roots):
                    yield resolved

    def secret_paths(self) -> list[str]:
        """Return all paths of existing credentials and of this program's own files."""
        paths = list(self._secret_paths())
        return [*paths, *find_aliases(paths)]

    def _secret_paths(self) -> Iterator[str]:
        table = _hidden()
        foreign_homes = glob.glob("/home/*")[:_MAX_HOMES]  # noqa: PTH207 - strings
        homes = dict.fromkeys([*_existing([self.home, "/root"]), *foreign_homes])
        for home in homes:
            yield from _glob_existing(f"{home}/{name}" for name in (*table.home, *table.agents))
        for path in _existing(self.program_files):
            # If such a path contains a home folder, do not hide all of it.
            if not any(is_below(home, path) for home in homes):
                yield path
        yield from _glob_existing(table.system)

    def _absolute(self, paths: Iterable[str]) -> Iterator[str]:
        base = self.roots[0] if self.roots else self.home
        for path in paths:
            if path == "~" or path.startswith("~/"):
                yield self.home + path[1:]
            else:
                yield os.path.join(base, path)  # noqa: PTH118 - thousands of times


def mount_kind(path: str, mounts: Mapping[str, MountKind]) -> MountKind:
    """Return the kind of a path, given these mounts and the default ones."""
    for folder in [path, *_parent_folders(path)]:
        if folder in mounts:
            return mounts[folder]
        if folder in PRIVATE_FOLDERS:
            return "hide"
    return "read"


def _effective_mounts(mounts: Mapping[str, MountKind]) -> list[tuple[str, MountKind]]:
    """Return the mounts that have an effect, parents before children.

    Writable paths below other writable ones remain, since a mount point cannot be renamed.
    """
    effective: dict[str, MountKind] = {}
    for path, kind in sorted(mounts.items(), key=lambda mount: mount[0].count("/")):
        if kind == "write" or mount_kind(path, effective) != kind:
            effective[path] = kind
    return list(effective.items())


def needs_file_capabilities(mounts: Iterable[tuple[str, MountKind]]) -> bool:
    """Return whether this is root with writable folders of others, which needs capabilities."""
    if os.geteuid() != 0:
        return False
    for path, kind in mounts:
        with suppress(OSError):
            if kind == "write" and os.stat(path).st_uid != 0:  # noqa: PTH116 - as below
                return True
    return False


def visible_run_folders() -> list[str]:
    """Return the folders of /run that confined programs can see."""
    return list(_existing(_hidden().run))


def existing_paths(paths: Iterable[str]) -> list[str]:
    """Return the absolute paths that exist, broken links included.

    Lists each folder once, which for hundreds of names is faster than asking about each, unless
    the folder is large.
    """
    folders: dict[str, set[str] | None] = {}
    existing: list[str] = []
    for path in paths:
        folder, _, name = path.rpartition("/")
        if folder not in folders:
            folders[folder] = _few_names(folder or "/")
        names = folders[folder]
        # Compared without case for file systems that ignore it.
        if (names is None or name.casefold() in names) and os.path.lexists(path):
            existing.append(path)
    return existing


def _few_names(folder: str) -> set[str] | None:
    """Return the entries of a folder, in lower case; None if there are many or it is unreadable."""
    try:
        with os.scandir(folder) as entries:
            names = {entry.name.casefold() for entry in islice(entries, _FEW_ENTRIES + 1)}
    except (FileNotFoundError, NotADirectoryError):
        return set()
    except OSError:
        return None
    return names if len(names) <= _FEW_ENTRIES else None


def _existing(paths: Iterable[str]) -> Iterator[str]:
    """Yield the paths that exist, with links resolved."""
    for path in paths:
        if os.path.lexists(path):
            resolved = os.path.realpath(path)
            if os.path.exists(resolved):
                yield resolved


def _link_targets(folder: str) -> Iterator[str]:
    """Yield the targets of symlinks in a folder, such as hooks that are scripts of the project."""
    pending, count = [folder], 0
    while pending and count < _MAX_ENTRIES:
        with suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                count += 1
                if entry.is_symlink():
                    yield from _existing([entry.path])
                elif entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)


def _glob_existing(patterns: Iterable[str]) -> Iterator[str]:
    for pattern in patterns:
        yield from _existing(glob.glob(pattern) if "*" in pattern else [pattern])  # noqa: PTH207 - strings


def _parent_folders(path: str) -> list[str]:
    """Return the parent folders of a path, without the root."""
    parents: list[str] = []
    while (path := path.rpartition("/")[0]) != "":
        parents.append(path)
    return parents


def _program_folders(search_path: str) -> Iterator[str]:
    """Yield the folders of PATH; for a `bin` folder its parent, which has the related files."""
    for folder in filter(os.path.isabs, search_path.split(os.pathsep)):
        parent, name = os.path.split(folder.rstrip("/"))
        yield parent if name == "bin" and parent.count("/") > 1 else folder


def _home_program_folders(search_path: str, home: str) -> Iterator[str]:
    """Yield the folders of PATH that lie in a home folder.

    Folders that build tools fill are skipped: virtual environments and `node_modules`.
    """
    for folder in search_path.split(os.pathsep):
        parent = os.path.dirname(folder.rstrip("/"))  # noqa: PTH120 - a string
        is_generated = os.path.exists(f"{parent}/pyvenv.cfg") or parent.endswith("/node_modules")
        if is_below(folder, home) and not is_generated:
            yield folder.rstrip("/")


@cache
def _hidden() -> _Hidden:
    return read_table(__package__, "hidden_paths.toml", _Hidden)


@cache
def protected_names() -> tuple[str, ...]:
    """Return names, relative to a writable folder, that a confined program cannot change."""
    return (*read_table(__package__, "protected_paths.toml", _Protected).paths, *_hidden().agents)
