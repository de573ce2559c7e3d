"""Read files that steer the agent and that other users may have created, such as a project's.

A project's file is read only if it is a regular file inside the project, owned by this user or
root. Files are opened without blocking, since opening a FIFO would wait for a writer.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from acp_agent.platform.nofollow import open_in_folder, opened_folder, real_path

NOT_REGULAR = "it is no ordinary file"
OUTSIDE_PROJECT = "it is a link that leads out of the project; put a file there"
WRONG_OWNER = "it belongs to another user; copy it, or make it yours with chown"
WORLD_WRITABLE = "everybody may change its folder; take the right to write there from others"


class RefusedFileError(OSError):
    """Raised for a file that exists but must not be read; `why` is the reason."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EPERM, why)
        self.why = why


def trusted_owners(*folders: Path) -> frozenset[int]:
    """Return the users whose files may steer the agent: this user and root.

    Root may work in folders of another user, as in a container that mounts one. If all `folders`
    of a project have the same owner, root trusts the files of that owner.
    """
    user = os.geteuid()
    if user == 0:
        try:
            owners = {folder.stat().st_uid for folder in folders}
        except OSError:
            owners = set()
        if len(owners) == 1:
            return frozenset({0, *owners})
    return frozenset({0, user})


def read_trusted(path: Path, within: Path, owners: frozenset[int], *, limit: int) -> bytes:
    """Return at most `limit` bytes of a project's file.

    Args:
        within: the folder that must contain the file after all links are resolved.
        owners: the users who may own the file, a link to it, and the folders of both.

    Raises:
        RefusedFileError: it is not a regular file, lies elsewhere, or others may have created it.
        OSError: the file does not exist or cannot be read.
    """
    _require_trusted(path.lstat(), owners)
    _require_safe_folder(path.parent.stat(), owners)
    real = Path(real_path(path))
    if not real.is_relative_to(real_path(within)):
        raise RefusedFileError(OUTSIDE_PROJECT)
    with opened_folder(real.parent) as folder:
        _require_safe_folder(os.fstat(folder), owners)
        descriptor = open_in_folder(real.name, os.O_RDONLY, folder)
    return _read(descriptor, limit, owners)


def read_user_file(path: Path, *, limit: int) -> bytes:
    """Return at most `limit` bytes of the user's own file, which may be a link to any place.

    Raises:
        RefusedFileError: it is not a regular file.
        OSError: the file does not exist or cannot be read.
    """
    return _read(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), limit, None)


def _read(descriptor: int, limit: int, owners: frozenset[int] | None) -> bytes:
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise RefusedFileError(NOT_REGULAR)
        if owners is not None:
            _require_trusted(status, owners)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(limit)
    finally:
        os.close(descriptor)


def _require_trusted(status: os.stat_result, owners: frozenset[int]) -> None:
    if status.st_uid not in owners:
        raise RefusedFileError(WRONG_OWNER)


def _require_safe_folder(status: os.stat_result, owners: frozenset[int]) -> None:
    """Refuse a folder in which others can replace files; in one like /tmp they can only add."""
    _require_trusted(status, owners)
    world_writable = status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX
    if world_writable and status.st_uid != os.geteuid():
        raise RefusedFileError(WORLD_WRITABLE)


def file_stamp(path: Path | str) -> tuple[int, int, int] | None:
    """Return values that change with a file's content; None if there is no readable status."""
    try:
        status = os.stat(path)  # noqa: PTH116 - called often
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def path_exists(path: Path) -> bool:
    """Return whether a path exists; a broken link counts, and so does an inaccessible path.

    The error is reported when the file is read.
    """
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True
