"""Puts a folder's files back as a tree has them, and touches nothing that is not kept."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from acp_agent.platform.open_files import limit_reached
from acp_agent.workspace.checkpoints.contract import (
    EXECUTABLE,
    LINK,
    Blob,
    Change,
    Deadline,
    is_plain,
    join,
)

_TEMPORARY = b".acp-agent-restoring"

_Marks = tuple[int, int, int, int]


class Skipped(Struct, frozen=True):
    """A path that was left as it is, and why."""

    path: bytes
    why: str


class Restorer:
    """Applies changes to a folder.

    Args:
        root: the folder.
        private: the files that only their owner may read.
        note: is told the files that are made on the way, before they are.
        deadline: when it has to be done.
    """

    def __init__(
        self,
        root: Path,
        private: frozenset[bytes],
        note: Callable[[list[bytes]], None],
        deadline: Deadline,
    ) -> None:
        self._root = os.fsencode(root)
        self._private = private
        self._note = note
        self._deadline = deadline
        self.done: list[Change] = []
        self.skipped: list[Skipped] = []

    def apply(self, changes: Sequence[Change], contents: Callable[..., Iterator[bytes]]) -> None:
        """Make every change that is still possible.

        Args:
            changes: from how the files were kept a moment ago to how they are to be.
            contents: gives the contents of files by their ids.

        Raises:
            CheckpointTooSlowError: the time is up; what was done is in `done`.
        """
        writes = [change for change in changes if change.new is not None]
        if writes:
            with suppress(OSError):  # each file then tells why
                os.makedirs(self._root, exist_ok=True)  # noqa: PTH103 - bytes; it may be deleted
        folders = {os.path.dirname(change.path) for change in writes}  # noqa: PTH120 - bytes
        self._note([join(join(self._root, folder), _TEMPORARY) for folder in sorted(folders)])
        try:
            for change in reversed(changes):  # what is in a folder goes before the folder does
                if change.new is None:
                    self._attempt(change, b"")
            ids = [change.new.id for change in writes if change.new is not None]
            for change, data in zip(writes, contents(ids, self._deadline), strict=True):
                self._attempt(change, data)
        finally:
            self._note([])

    def _attempt(self, change: Change, data: bytes) -> None:
        self._deadline.check()
        try:
            why = self._change(change, data)
        except OSError as error:
            why = limit_reached(error) or (error.strerror or type(error).__name__).lower()
        if why is None:
            self.done.append(change)
        else:
            self.skipped.append(Skipped(change.path, why))

    def _change(self, change: Change, data: bytes) -> str | None:
        """Make one change; why not, where it was not made."""
        if not is_plain(change.path):
            return "its name leads out of the folder"
        path = join(self._root, change.path)
        folder = os.path.dirname(change.path)  # noqa: PTH120 - bytes
        if not self._is_reached(folder, make=change.new is not None):
            return "something else is in the place of its folder"
        if change.new is not None and _is_folder(path):
            _remove_empty_folders(path)  # a tree knows of none, so they are nobody's work
        marks = _marks(path)
        found = _on_disk(path, change.old)
        if found != change.old:
            if found == change.new:
                return None
            return "it is not kept as it is now" if change.old is None else "it changed meanwhile"
        if change.new is None:
            os.unlink(path)  # noqa: PTH108 - bytes
            self._remove_empty(folder)
            return None
        return self._put(path, change, change.new, data, marks)

    def _is_reached(self, folder: bytes, *, make: bool) -> bool:
        """Whether a folder can be got to through no symlink; made on the way, where it is to be."""
        place = self._root
        for part in folder.split(b"/") if folder else ():
            place = join(place, part)
            try:
                mode = os.lstat(place).st_mode
            except FileNotFoundError:
                if not make:
                    return True
                os.mkdir(place)  # noqa: PTH102 - bytes
                continue
            if not stat.S_ISDIR(mode):
                return False
        return True

    def _remove_empty(self, folder: bytes) -> None:
        with suppress(OSError):
            while folder:
                os.rmdir(join(self._root, folder))  # noqa: PTH106 - bytes
                folder = os.path.dirname(folder)  # noqa: PTH120 - bytes

    def _put(
        self, path: bytes, change: Change, new: Blob, data: bytes, marks: _Marks | None
    ) -> str | None:
        """Put a file into its place, unless another one was saved there while it was written."""
        temporary = join(os.path.dirname(path), _TEMPORARY)  # noqa: PTH120 - bytes
        with suppress(FileNotFoundError):
            os.unlink(temporary)  # noqa: PTH108 - bytes
        try:
            if new.mode == LINK:
                os.symlink(data, temporary)  # noqa: PTH211 - bytes
            else:
                self._write(temporary, data, self._mode(path, change.path), new.mode == EXECUTABLE)
            if _marks(path) != marks:
                return "it changed meanwhile"
            if _is_folder(path):
                os.rmdir(path)  # noqa: PTH106 - what was in it and kept is deleted already
            os.replace(temporary, path)  # noqa: PTH105 - bytes
        finally:
            with suppress(FileNotFoundError):  # it is in its place
                os.unlink(temporary)  # noqa: PTH108 - bytes
        return None

    def _mode(self, path: bytes, name: bytes) -> int | None:
        """The permissions that a file has or had; None: those of any new file."""
        try:
            found = os.lstat(path).st_mode
        except FileNotFoundError:
            found = 0
        if stat.S_ISREG(found):
            return stat.S_IMODE(found)
        return 0o600 if name in self._private else None

    def _write(self, path: bytes, data: bytes, mode: int | None, executable: bool) -> None:
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        descriptor = os.open(path, flags, 0o666 if mode is None else 0o600)
        with os.fdopen(descriptor, "wb") as file:
            if mode is None:
                mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            readers = (mode & 0o444) >> 2
            os.fchmod(descriptor, mode | readers if executable else mode & ~0o111)
            file.write(data)


def _marks(path: bytes) -> _Marks | None:
    """By what a file is seen to be another one, or changed; None where there is none."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns


def _is_folder(path: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def _remove_empty_folders(path: bytes) -> None:
    """Remove a folder that has nothing but folders in it, with them; any other stays as it is.

    A repository has empty folders that it needs.
    """
    found = list(os.walk(path, topdown=False))
    for folder, inner, files in found:
        if files or any(os.path.islink(os.path.join(folder, name)) for name in inner):  # noqa: PTH114, PTH118 - bytes
            return
    for folder, _, _ in found:
        with suppress(OSError):  # something is in it
            os.rmdir(folder)  # noqa: PTH106 - bytes


def _on_disk(path: bytes, like: Blob | None) -> Blob | None:
    """What is there now, as a tree would have it; None for nothing, or an empty folder."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(found.st_mode):
        return Blob(LINK, _blob_id(os.readlink(path)))  # noqa: PTH115 - bytes
    if stat.S_ISDIR(found.st_mode):
        return None if not os.listdir(path) else Blob(0, "")  # noqa: PTH208 - bytes
    if not stat.S_ISREG(found.st_mode):
        return Blob(0, "")
    mode = EXECUTABLE if found.st_mode & 0o100 else 0o100644
    if like is None:
        return Blob(mode, "") if found.st_size > _COMPARED else Blob(mode, _read_id(path))
    return Blob(mode, _read_id(path))


_COMPARED = 100_000_000  # bytes of an unexpected file that it is worth to look at


def _read_id(path: bytes) -> str:
    with open(path, "rb") as file:  # noqa: PTH123 - bytes
        return _blob_id(file.read())


def _blob_id(data: bytes) -> str:
    """The id that git gives to a content (gitformat-loose(5))."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
