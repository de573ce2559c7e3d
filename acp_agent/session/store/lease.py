"""A lease: the exclusive right to write a session, across processes.

A lease is a file lock that the operating system holds as long as the process lives, so any end of
the process releases it, `kill -9` included. The file is removed on release.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Self

from acp_agent.errors import SessionBusyError, SessionNotFoundError, StoreError
from acp_agent.ids import SessionId
from acp_agent.platform.posix import try_lock
from acp_agent.session.store.sqlite_errors import describe_system_error

_ATTEMPTS = 3
_PAUSE_SECONDS = 0.002  # longer than a sweep holds a file
_STALE_SECONDS = 3600.0


class Lease:
    """The exclusive right to write a session until it is released, or the `with` block ends."""

    __slots__ = ("_descriptor", "_file", "session_id")

    def __init__(self, session_id: SessionId, file: Path, descriptor: int) -> None:
        self.session_id = session_id
        self._file = file
        self._descriptor: int | None = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Release the session for other writers. Releasing twice does nothing."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        _remove(self._file, descriptor)


def take_lease(folder: Path, session_id: SessionId) -> Lease:
    """Take the lease of a session, with its lock file in `folder`.

    Raises:
        SessionBusyError: another process, or another part of this one, holds it.
        SessionNotFoundError: no session has such an id.
        StoreError: the folder cannot be written.
    """
    if not _is_plain(session_id):
        raise SessionNotFoundError(session_id)
    file = folder / f"{session_id}.lock"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(_PAUSE_SECONDS)
            descriptor = _lock(file)
            if descriptor is not None:
                return Lease(session_id, file, descriptor)
    except OSError as error:
        raise StoreError(
            f"the session cannot be locked for writing: {folder}: {describe_system_error(error)}"
        ) from error
    raise SessionBusyError(
        f"the session {session_id} is open in another process; close it there first"
    )


def sweep(folder: Path) -> None:
    """Remove the lock files that killed processes left behind more than an hour ago."""
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(folder)):
            if entry.name.endswith(".lock") and entry.stat().st_mtime < (
                time.time() - _STALE_SECONDS
            ):
                file = Path(entry.path)
                descriptor = _lock(file)
                if descriptor is not None:
                    _remove(file, descriptor)


def any_lease_held(folder: Path) -> bool:
    """Return whether any process has a session open."""
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(folder)):
            if entry.name.endswith(".lock"):
                descriptor = _lock(Path(entry.path))
                if descriptor is None:
                    return True
                _remove(Path(entry.path), descriptor)
    return False


def _lock(file: Path) -> int | None:
    """Lock the file and return its descriptor; None if it is already locked."""
    while True:
        descriptor = os.open(file, os.O_CREAT | os.O_RDWR, 0o600)
        locked = False
        try:
            if not try_lock(descriptor):
                return None
            # The last holder may have removed the file between our opening and locking it; the lock
            # would then be on a file that no other process can find.
            try:
                locked = os.path.samestat(os.fstat(descriptor), file.stat())
            except FileNotFoundError:
                continue
            if locked:
                return descriptor
        finally:
            if not locked:
                os.close(descriptor)


def _remove(file: Path, descriptor: int) -> None:
    # Remove the file while it is locked; a process that has it open notices by the check in
    # `_lock`.
    with contextlib.suppress(OSError):
        file.unlink()
    os.close(descriptor)


def _is_plain(session_id: str) -> bool:
    """Return whether the id can be a file name; all ids that we create can."""
    letters = session_id.replace("_", "").replace("-", "")
    return letters.isascii() and letters.isalnum() and len(session_id) <= 100
