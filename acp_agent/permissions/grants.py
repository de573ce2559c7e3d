"""The permissions that the user granted or refused permanently, stored in the data folder.

Several processes share the file: it is replaced atomically under a lock, and read again after a
change. An unreadable file grants nothing; it is renamed, never overwritten.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from acp_agent.errors import StoreError, StoreNewerError
from acp_agent.extensions.definitions.locations import worktree_owner
from acp_agent.permissions.access import Grant
from acp_agent.platform.decoding import decode_json
from acp_agent.platform.posix import locked, write_private

# Version 2 added grants for tools of MCP servers, version 3 those for exact commands, version 4
# those for confined commands.
_VERSION = 4
_LOCK_SECONDS = 5.0
_log = logging.getLogger(__name__)


class _GrantsFile(Struct, frozen=True, kw_only=True):
    version: Annotated[int, Meta(ge=1)]
    grants: tuple[Grant, ...] = ()


class _Version(Struct, frozen=True):
    version: int


Stamp = tuple[int, int, int]  # inode, size in bytes, nanoseconds of the last change


class GrantStore:
    """The remembered grants of all projects. Safe to use from several threads and processes."""

    def __init__(self, path: Path) -> None:
        """Args: path: a JSON file; it and its folder may be missing."""
        self._path = path
        self._mutex = threading.Lock()
        self._stamp: Stamp | None = None
        self._grants: tuple[Grant, ...] = ()
        self._problem: str = ""
        self._newer = False

    @property
    def problem(self) -> str:
        """Return the problem with the file, in one line; "" if there is none."""
        self.all()
        return self._problem

    def all(self) -> tuple[Grant, ...]:
        """Return the grants of all projects, in the order in which they were given."""
        with self._mutex:
            self._refresh()
            return self._grants

    def for_project(self, project: str) -> tuple[Grant, ...]:
        """Return the grants of one project, identified by its resolved folder."""
        projects = {project, worktree_owner(project)}
        return tuple(grant for grant in self.all() if grant.project in projects)

    def add(self, grants: Iterable[Grant]) -> None:
        """Save grants. A new grant replaces an older one with the same project, kind and pattern.

        Raises:
            StoreNewerError: a newer version of the program wrote the file.
            StoreError: the file cannot be written, or another process holds it for too long.
        """
        new_grants = tuple(grants)
        if not new_grants:
            return
        keys = {_grant_key(grant) for grant in new_grants}
        self._change(lambda old: (*(g for g in old if _grant_key(g) not in keys), *new_grants))

    def remove(self, grants: Iterable[Grant]) -> tuple[Grant, ...]:
        """Remove grants and return those that were stored. Raises StoreNewerError, StoreError."""
        keys = {_grant_key(grant) for grant in grants}
        removed: list[Grant] = []

        def without(old: tuple[Grant, ...]) -> tuple[Grant, ...]:
            removed[:] = [grant for grant in old if _grant_key(grant) in keys]
            return tuple(grant for grant in old if _grant_key(grant) not in keys)

        if keys & {_grant_key(grant) for grant in self.all()}:
            self._change(without)
        return tuple(removed)

    def _change(self, change: Callable[[tuple[Grant, ...]], tuple[Grant, ...]]) -> None:
        try:
            with locked(self._path, _LOCK_SECONDS), self._mutex:
                self._write(change)
        except TimeoutError:
            raise StoreError(
                f"another process holds {self._path} for too long; the permission was not kept"
            ) from None
        except OSError as error:
            reason = error.strerror or "unknown error"
            raise StoreError(
                f"cannot remember the permission in {self._path}: {reason}; check the folder"
            ) from error

    def _write(self, change: Callable[[tuple[Grant, ...]], tuple[Grant, ...]]) -> None:
        self._stamp = None  # another process may have written within the same clock tick
        self._refresh()
        if self._newer:
            raise StoreNewerError(self._problem)
        if self._problem:
            renamed = self._path.with_name(f"{self._path.name}.damaged-{time.time_ns()}")
            self._path.rename(renamed)
            _log.warning("renamed the unreadable permissions file to %s", renamed)
        grants = change(self._grants)
        content = msgspec.json.encode(_GrantsFile(version=_VERSION, grants=grants))
        write_private(self._path, msgspec.json.format(content, indent=2) + b"\n")
        self._stamp = None
        self._refresh()

    def _refresh(self) -> None:
        """Read the file again if it has changed since the last read."""
        try:
            status = self._path.stat()
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
            if stamp == self._stamp:
                return
            content = self._path.read_bytes()
        except FileNotFoundError:
            self._stamp, self._grants, self._problem, self._newer = None, (), "", False
            return
        except OSError as error:
            reason = error.strerror or "unknown error"
            self._fail(None, f"cannot read the remembered permissions in {self._path}: {reason}")
            return
        try:
            version = decode_json(content, _Version).version
            if version > _VERSION:
                self._fail(
                    stamp,
                    f"a newer version of acp-agent wrote {self._path}; "
                    "its remembered permissions are not used: update acp-agent",
                    newer=True,
                )
                return
            self._grants = decode_json(content, _GrantsFile).grants
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._fail(
                stamp,
                f"the remembered permissions in {self._path} cannot be read and are not used; "
                "fix or remove the file",
            )
            return
        self._stamp, self._problem, self._newer = stamp, "", False

    def _fail(self, stamp: Stamp | None, problem: str, *, newer: bool = False) -> None:
        if problem != self._problem:
            _log.warning("%s", problem)
        self._stamp, self._grants, self._problem, self._newer = stamp, (), problem, newer


def _grant_key(grant: Grant) -> tuple[str, str, str]:
    return grant.project, grant.kind, grant.pattern
