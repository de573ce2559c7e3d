"""Restore a folder's files from a tree, without changing anything that is not saved."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from acp_agent.platform.descriptor_limit import describe_os_error
from acp_agent.platform.nofollow import open_in_folder, opened_folder
from acp_agent.workspace.checkpoints.base import (
    EXECUTABLE,
    LINK,
    Blob,
    Change,
    Deadline,
    blob_id,
    is_plain,
    join,
)

_TEMPORARY = b".acp-agent-restoring"
_BLOCKED_FOLDER = "something else is in the place of its folder"

_Identity = tuple[int, int, int, int]
_MAX_COMPARED_BYTES = 100_000_000  # a larger unexpected file is not read


class SkippedFile(Struct, frozen=True):
    """A path that was left unchanged, and why."""

    path: bytes
    reason: str


class Restorer:
    """Applies changes to a folder.

    Args:
        private: the files that only their owner may read.
        record_temporary: called with the paths of temporary files before they are created.
    """

    def __init__(
        self,
        root: Path,
        private: frozenset[bytes],
        record_temporary: Callable[[list[bytes]], None],
        deadline: Deadline,
    ) -> None:
        self._root = os.fsencode(root)
        self._private = private
        self._record_temporary = record_temporary
        self._deadline = deadline
        self.applied: list[Change] = []
        self.skipped: list[SkippedFile] = []

    def apply(self, changes: Sequence[Change], contents: Callable[..., Iterator[bytes]]) -> None:
        """Make every change that is still possible.

        Args:
            changes: the changes from the state saved a moment ago to the wanted state.
            contents: returns the contents of blobs by their ids.

        Raises:
            CheckpointTooSlowError: the time is up; `applied` has the changes made so far.
        """
        writes = [change for change in changes if change.new is not None]
        if writes:
            with suppress(OSError):  # each file then reports the error
                os.makedirs(self._root, exist_ok=True)  # noqa: PTH103 - bytes; it may be deleted
        folders = {os.path.dirname(change.path) for change in writes}  # noqa: PTH120 - bytes
        self._record_temporary(
            [join(join(self._root, folder), _TEMPORARY) for folder in sorted(folders)]
        )
        try:
            for change in reversed(changes):  # delete files before their folders
                if change.new is None:
                    self._attempt(change, b"")
            ids = [change.new.id for change in writes if change.new is not None]
            for change, data in zip(writes, contents(ids, self._deadline), strict=True):
                self._attempt(change, data)
        finally:
            self._record_temporary([])

    def _attempt(self, change: Change, data: bytes) -> None:
        self._deadline.check()
        try:
            reason = self._change(change, data)
        except OSError as error:
            is_blocked = error.errno in (errno.ELOOP, errno.ENOTDIR)
            reason = _BLOCKED_FOLDER if is_blocked else describe_os_error(error)
        if reason is None:
            self.applied.append(change)
        else:
            self.skipped.append(SkippedFile(change.path, reason))

    def _change(self, change: Change, data: bytes) -> str | None:
        """Make one change; return the reason if it cannot be made, else None."""
        if not is_plain(change.path):
            return "its name leads out of the folder"
        base, name = os.path.split(change.path)
        try:
            with opened_folder(join(self._root, base), make=change.new is not None) as folder:
                reason = self._change_in(folder, name, change, data)
        except FileNotFoundError:
            if change.new is not None:
                raise
            return None if change.old is None else "it changed meanwhile"
        if reason is None and change.new is None:
            self._remove_empty(base)
        return reason

    def _change_in(self, folder: int, name: bytes, change: Change, data: bytes) -> str | None:
        if change.new is not None and _is_folder(folder, name):
            _remove_empty_folders(folder, name)  # no file is lost
        identity = _file_identity(folder, name)
        current = _current_blob(folder, name, change.old)
        if current != change.old:
            if current == change.new:
                return None
            return "it is not saved as it is now" if change.old is None else "it changed meanwhile"
        if change.new is None:
            os.unlink(name, dir_fd=folder)
            return None
        return self._write_file(folder, change, data, identity)

    def _remove_empty(self, folder: bytes) -> None:
        with suppress(OSError):
            while folder:
                folder, name = os.path.split(folder)
                with opened_folder(join(self._root, folder)) as parent:
                    os.rmdir(name, dir_fd=parent)

    def _write_file(
        self, folder: int, change: Change, data: bytes, identity: _Identity | None
    ) -> str | None:
        """Write a file, unless the existing one changed in the meantime."""
        new, name = change.new, os.path.basename(change.path)  # noqa: PTH119 - bytes
        assert new is not None
        with suppress(FileNotFoundError):
            os.unlink(_TEMPORARY, dir_fd=folder)
        try:
            if new.mode == LINK:
                os.symlink(data, _TEMPORARY, dir_fd=folder)
            else:
                mode = self._mode(folder, name, change.path)
                _write(folder, data, mode, executable=new.mode == EXECUTABLE)
            if _file_identity(folder, name) != identity:
                return "it changed meanwhile"
            if _is_folder(folder, name):
                os.rmdir(name, dir_fd=folder)  # saved files in it are already deleted
            os.replace(_TEMPORARY, name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with suppress(FileNotFoundError):  # already renamed
                os.unlink(_TEMPORARY, dir_fd=folder)
        return None

    def _mode(self, folder: int, name: bytes, path: bytes) -> int | None:
        """Return the permissions that a file has or had; None means those of a new file."""
        status = _status(folder, name)
        if status is not None and stat.S_ISREG(status.st_mode):
            return stat.S_IMODE(status.st_mode)
        return 0o600 if path in self._private else None


def _write(folder: int, data: bytes, mode: int | None, *, executable: bool) -> None:
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
    descriptor = open_in_folder(_TEMPORARY, flags, folder, 0o666 if mode is None else 0o600)
    with os.fdopen(descriptor, "wb") as file:
        if mode is None:
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        readers = (mode & 0o444) >> 2
        os.fchmod(descriptor, mode | readers if executable else mode & ~0o111)
        file.write(data)


def _status(folder: int, name: bytes) -> os.stat_result | None:
    """Return the status of a name in an open folder, or None if it does not exist."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _file_identity(folder: int, name: bytes) -> _Identity | None:
    """Return values that differ if a file is replaced or changed; None if there is none."""
    status = _status(folder, name)
    if status is None:
        return None
    return status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns


def _is_folder(folder: int, name: bytes) -> bool:
    status = _status(folder, name)
    return status is not None and stat.S_ISDIR(status.st_mode)


def _remove_empty_folders(folder: int, name: bytes) -> None:
    """Remove a folder that contains only folders; leave it unchanged if it has a file or a link.

    A git repository, for example, has empty folders that it needs.
    """
    with suppress(RecursionError):  # nested too deeply to remove
        if any(files or links for files, links in _contents(folder, name)):
            return
        for _, inner, _, descriptor in os.fwalk(name, topdown=False, dir_fd=folder):
            for folder_name in inner:
                with suppress(OSError):  # not empty
                    os.rmdir(folder_name, dir_fd=descriptor)
        with suppress(OSError):
            os.rmdir(name, dir_fd=folder)


def _contents(folder: int, name: bytes) -> Iterator[tuple[bool, bool]]:
    """Yield, for each folder from this one down, whether it has files and symlinks to folders."""
    for _, inner, files, descriptor in os.fwalk(name, dir_fd=folder):
        yield bool(files), any(not _is_folder(descriptor, folder_name) for folder_name in inner)


def _current_blob(folder: int, name: bytes, expected: Blob | None) -> Blob | None:
    """Return the current entry as it would be in a tree; None for nothing or an empty folder."""
    status = _status(folder, name)
    if status is None:
        return None
    if stat.S_ISLNK(status.st_mode):
        return Blob(LINK, blob_id(os.readlink(name, dir_fd=folder)))
    if stat.S_ISDIR(status.st_mode):
        return None if _is_empty(folder, name) else Blob(0, "")
    if not stat.S_ISREG(status.st_mode):
        return Blob(0, "")
    mode = EXECUTABLE if status.st_mode & 0o100 else 0o100644
    if expected is None and status.st_size > _MAX_COMPARED_BYTES:
        return Blob(mode, "")
    with os.fdopen(open_in_folder(name, os.O_RDONLY, folder), "rb") as file:
        is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        return Blob(mode, blob_id(file.read()) if is_file else "")


def _is_empty(folder: int, name: bytes) -> bool:
    descriptor = open_in_folder(name, os.O_RDONLY | os.O_DIRECTORY, folder)
    try:
        return not os.listdir(descriptor)  # noqa: PTH208 - a descriptor, not a path
    finally:
        os.close(descriptor)
