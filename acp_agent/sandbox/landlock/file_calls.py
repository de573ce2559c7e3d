"""File system calls that the supervisor executes on behalf of a confined program.

A module of the launcher: it imports nothing of this package.
"""

from __future__ import annotations

import errno
import os
import stat
import struct

import kernel  # type: ignore[import-not-found] # a file in this one's folder
from caller import (  # type: ignore[import-not-found] # a file in this one's folder
    Caller,
    DirectoryEntry,
    LandlockDecides,
    signed,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from acp_agent.sandbox.landlock.confine import LauncherOptions

_AT_FDCWD = -100  # AT_FDCWD
_NO_FOLLOW, _REMOVE_FOLDER, _EMPTY_PATH, _FOLLOW = 0x100, 0x200, 0x1000, 0x400
_EXCHANGE = 2  # linux/fs.h
_CHANGES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_UNNAMED = os.O_TMPFILE & ~os.O_DIRECTORY
_FILE_MODE_MASK = 0o1777  # without set-user-ID and set-group-ID
_NANOSECONDS_PER_MICROSECOND = 1_000  # nanoseconds in a microsecond


class Files:
    """The permissions on files.

    Args:
        kinds: `write`, `read` or `hide` by path; each also applies to everything below the path.
        granted: folders in which Landlock allows all changes.
        divided: folders that may be listed, although Landlock refuses that.
    """

    def __init__(
        self, kinds: dict[bytes, str], granted: Sequence[bytes], divided: Sequence[bytes]
    ) -> None:
        self._kinds = kinds
        self._granted = set(granted)
        self._divided = set(divided)
        self._protected = [path for path, kind in kinds.items() if kind != "write"]

    def may_change(self, path: bytes) -> bool:
        """Return whether a file may be changed."""
        while path:
            kind = self._kinds.get(path)
            if kind is not None:
                return kind == "write"
            path = path.rpartition(b"/")[0]
        return False

    def may_list(self, path: bytes) -> bool:
        """Return whether a folder may be listed although Landlock refuses that."""
        return path in self._divided

    def landlock_decides(self, path: bytes) -> bool:
        """Return whether Landlock has a grant for a folder that contains the file."""
        while path := path.rpartition(b"/")[0]:
            if path in self._granted:
                return True
        return False

    def has_no_grant(self, path: bytes) -> bool:
        """Return whether a file may be changed although Landlock has no grant for it."""
        return self.may_change(path) and not self.landlock_decides(path)

    def forget_grant(self, path: bytes) -> None:
        """Note that the path may now belong to another file, which has no grant."""
        self._granted.discard(path)

    def protected_below(self, path: bytes) -> list[bytes]:
        """Return the paths below a folder that must not be changed, even if they do not exist."""
        return [protected for protected in self._protected if protected.startswith(path + b"/")]


class FileCalls:
    """Executes calls. Each private method is named for a call and takes the caller and arguments.

    A method raises OSError for the error that the program gets.
    """

    def __init__(self, options: LauncherOptions) -> None:
        self._files = Files(options["kinds"], options["granted"], options["divided"])

    def call(self, name: str, caller: Caller, arguments: Sequence[int]) -> int:
        """Execute a call and return its result.

        Raises:
            OSError: the call fails.
            LandlockDecides: the kernel should continue the call.
            Answered: the call is already answered.
        """
        method: Callable[..., int] = getattr(self, f"_{name}")
        return method(caller, *arguments) or 0

    # Opening

    def _open(self, caller: Caller, path: int, flags: int, mode: int, *_: int) -> None:
        self._openat(caller, _AT_FDCWD, path, flags, mode)

    def _creat(self, caller: Caller, path: int, mode: int, *_: int) -> None:
        self._openat(caller, _AT_FDCWD, path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, mode)

    def _openat(self, caller: Caller, at: int, path: int, flags: int, mode: int, *_: int) -> None:
        flags = signed(flags)
        if flags & os.O_PATH or flags & _UNNAMED:
            raise LandlockDecides
        follow = (
            not flags & os.O_NOFOLLOW
            and flags & (create_new := os.O_CREAT | os.O_EXCL) != create_new
        )
        path_text = caller.path(path)
        if not flags & _CHANGES:
            fd_path, real_path = caller.file(signed(at), path_text, follow=follow)
            if self._files.may_list(real_path) or self._files.has_no_grant(real_path):
                self._answer_open(caller, os.stat(fd_path).st_mode, fd_path, flags & ~os.O_NOFOLLOW)
            raise LandlockDecides
        entry = caller.resolve_entry(signed(at), path_text, follow=follow)
        self._require_changeable(entry)
        try:
            file_mode = os.stat(entry.name, dir_fd=entry.folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            file_mode = stat.S_IFREG
        mode = mode & ~caller.umask() & _FILE_MODE_MASK if flags & os.O_CREAT else 0
        self._answer_open(caller, file_mode, entry.name, flags | os.O_NOFOLLOW, mode, entry.folder)

    def _answer_open(
        self,
        caller: Caller,
        kind: int,
        path: bytes,
        flags: int,
        mode: int = 0,
        folder: int | None = None,
    ) -> None:
        if stat.S_ISFIFO(kind) and not flags & os.O_NONBLOCK:  # it blocks
            caller.send_descriptor_later(path, flags, folder)
        caller.send_descriptor(caller.open(path, flags, mode, folder), flags)

    def _truncate(self, caller: Caller, path: int, size: int, *_: int) -> None:
        entry = caller.resolve_entry(_AT_FDCWD, caller.path(path), follow=True)
        self._require_changeable(entry)
        flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        os.truncate(caller.open(entry.name, flags, 0, entry.folder), signed(size, 64))

    # Names

    def _mkdir(self, caller: Caller, path: int, mode: int, *_: int) -> None:
        self._mkdirat(caller, _AT_FDCWD, path, mode)

    def _mkdirat(self, caller: Caller, at: int, path: int, mode: int, *_: int) -> None:
        entry = self._changeable_entry(caller, at, path)
        os.mkdir(entry.name, mode & ~caller.umask() & 0o7777, dir_fd=entry.folder)

    def _mknod(self, caller: Caller, path: int, mode: int, device: int, *_: int) -> None:
        self._mknodat(caller, _AT_FDCWD, path, mode, device)

    def _mknodat(self, caller: Caller, at: int, path: int, mode: int, *_: int) -> None:
        entry = self._changeable_entry(caller, at, path)
        kind = stat.S_IFMT(mode) or stat.S_IFREG
        if kind not in (stat.S_IFREG, stat.S_IFIFO):
            raise PermissionError(errno.EPERM, "no devices")
        mode = kind | mode & ~caller.umask() & _FILE_MODE_MASK
        os.mknod(entry.name, mode, dir_fd=entry.folder)

    def _rmdir(self, caller: Caller, path: int, *_: int) -> None:
        self._unlinkat(caller, _AT_FDCWD, path, _REMOVE_FOLDER)

    def _unlink(self, caller: Caller, path: int, *_: int) -> None:
        self._unlinkat(caller, _AT_FDCWD, path, 0)

    def _unlinkat(self, caller: Caller, at: int, path: int, flags: int, *_: int) -> None:
        entry = self._changeable_entry(caller, at, path)
        if flags & _REMOVE_FOLDER:
            os.rmdir(entry.name, dir_fd=entry.folder)
        else:
            os.unlink(entry.name, dir_fd=entry.folder)
        self._files.forget_grant(entry.path)

    def _symlink(self, caller: Caller, target: int, path: int, *_: int) -> None:
        self._symlinkat(caller, target, _AT_FDCWD, path)

    def _symlinkat(self, caller: Caller, target: int, at: int, path: int, *_: int) -> None:
        entry = self._changeable_entry(caller, at, path)
        self._require_nothing_protected_below(entry)
        os.symlink(caller.path(target), entry.name, dir_fd=entry.folder)

    def _link(self, caller: Caller, old: int, new: int, *_: int) -> None:
        self._linkat(caller, _AT_FDCWD, old, _AT_FDCWD, new, 0)

    def _linkat(
        self, caller: Caller, at: int, old: int, new_at: int, new: int, flags: int, *_: int
    ) -> None:
        if flags & _EMPTY_PATH:
            raise PermissionError(errno.EPERM, "only files with names")
        source = caller.resolve_entry(signed(at), caller.path(old), follow=bool(flags & _FOLLOW))
        target = caller.resolve_entry(signed(new_at), caller.path(new), follow=False)
        self._require_changeable(source, target)
        os.link(
            source.name,
            target.name,
            src_dir_fd=source.folder,
            dst_dir_fd=target.folder,
            follow_symlinks=False,
        )

    def _rename(self, caller: Caller, old: int, new: int, *_: int) -> None:
        self._renameat2(caller, _AT_FDCWD, old, _AT_FDCWD, new, 0)

    def _renameat(self, caller: Caller, at: int, old: int, new_at: int, new: int, *_: int) -> None:
        self._renameat2(caller, at, old, new_at, new, 0)

    def _renameat2(
        self, caller: Caller, at: int, old: int, new_at: int, new: int, flags: int, *_: int
    ) -> None:
        source = caller.resolve_entry(signed(at), caller.path(old), follow=False)
        target = caller.resolve_entry(signed(new_at), caller.path(new), follow=False)
        self._require_changeable(source, target)
        for entry, counterpart in ((source, target), (target, source)):
            if any(map(os.path.lexists, self._files.protected_below(entry.path))):
                raise PermissionError(errno.EACCES, "a file in it may not be moved")
            if entry is target or flags & _EXCHANGE:
                mode = os.stat(
                    counterpart.name, dir_fd=counterpart.folder, follow_symlinks=False
                ).st_mode
                if not stat.S_ISREG(mode):
                    self._require_nothing_protected_below(entry)
        kernel.call(
            "renameat2", source.folder, source.name, target.folder, target.name, signed(flags)
        )
        for entry in (source, target):
            self._files.forget_grant(entry.path)

    # Modes, owners and times

    def _chmod(self, caller: Caller, path: int, mode: int, *_: int) -> None:
        self._change_mode(self._file(caller, _AT_FDCWD, path), mode)

    def _fchmod(self, caller: Caller, descriptor: int, mode: int, *_: int) -> None:
        self._change_mode(self._file(caller, descriptor, None), mode)

    def _fchmodat(self, caller: Caller, at: int, path: int, mode: int, *_: int) -> None:
        self._change_mode(self._file(caller, at, path), mode)

    def _fchmodat2(
        self, caller: Caller, at: int, path: int, mode: int, flags: int, *_: int
    ) -> None:
        self._change_mode(self._file(caller, at, path, flags), mode)

    def _change_mode(self, file: bytes, mode: int) -> None:
        file_mode = os.stat(file).st_mode
        if stat.S_ISLNK(file_mode):
            raise OSError(errno.EOPNOTSUPP, "links have no mode")
        os.chmod(file, mode & (0o7777 if stat.S_ISDIR(file_mode) else _FILE_MODE_MASK))

    def _chown(self, caller: Caller, path: int, user: int, group: int, *_: int) -> None:
        os.chown(self._file(caller, _AT_FDCWD, path), signed(user), signed(group))

    def _lchown(self, caller: Caller, path: int, user: int, group: int, *_: int) -> None:
        os.chown(self._file(caller, _AT_FDCWD, path, _NO_FOLLOW), signed(user), signed(group))

    def _fchown(self, caller: Caller, descriptor: int, user: int, group: int, *_: int) -> None:
        os.chown(self._file(caller, descriptor, None), signed(user), signed(group))

    def _fchownat(
        self, caller: Caller, at: int, path: int, user: int, group: int, flags: int, *_: int
    ) -> None:
        os.chown(self._file(caller, at, path, flags), signed(user), signed(group))

    def _utime(self, caller: Caller, path: int, times: int, *_: int) -> None:
        file = self._file(caller, _AT_FDCWD, path)
        seconds = struct.unpack("=2q", caller.read(times, 16)) if times else None
        _change_times(file, None if seconds is None else (seconds[0], 0, seconds[1], 0))

    def _utimes(self, caller: Caller, path: int, times: int, *_: int) -> None:
        self._futimesat(caller, _AT_FDCWD, path, times)

    def _futimesat(self, caller: Caller, at: int, path: int, times: int, *_: int) -> None:
        file = self._file(caller, at, path or None)
        if not times:
            _change_times(file, None)
            return
        access_seconds, access_fraction, change_seconds, change_fraction = struct.unpack(
            "=4q", caller.read(times, 32)
        )
        _change_times(
            file,
            (
                access_seconds,
                access_fraction * _NANOSECONDS_PER_MICROSECOND,
                change_seconds,
                change_fraction * _NANOSECONDS_PER_MICROSECOND,
            ),
        )

    def _utimensat(
        self, caller: Caller, at: int, path: int, times: int, flags: int, *_: int
    ) -> None:
        file = self._file(caller, at, path or None, flags)
        values = struct.unpack("=4q", caller.read(times, 32)) if times else None
        _change_times(file, values)

    # Helpers

    def _changeable_entry(self, caller: Caller, at: int, path: int) -> DirectoryEntry:
        entry = caller.resolve_entry(signed(at), caller.path(path), follow=False)
        self._require_changeable(entry)
        return entry

    def _require_changeable(self, *entries: DirectoryEntry) -> None:
        """Raise `LandlockDecides` unless all may be changed and at least one has no grant."""
        if not all(self._files.may_change(entry.path) for entry in entries):
            raise LandlockDecides  # Landlock refuses it
        if all(self._files.landlock_decides(entry.path) for entry in entries):
            raise LandlockDecides

    def _require_nothing_protected_below(self, entry: DirectoryEntry) -> None:
        """Refuse a call that would create files at paths that must not be changed."""
        if self._files.protected_below(entry.path):
            raise PermissionError(errno.EACCES, "a file below it may not be made")

    def _file(self, caller: Caller, at: int, path: int | None, flags: int = 0) -> bytes:
        """Return a path of a file that may be changed; raise OSError if it must not be."""
        path_text: bytes | None = None
        if path is not None:
            text = caller.read(path, 1)
            path_text = None if text == b"\0" and flags & _EMPTY_PATH else caller.path(path)
        fd_path, real_path = caller.file(signed(at), path_text, follow=not flags & _NO_FOLLOW)
        if not self._files.may_change(real_path):
            raise PermissionError(errno.EPERM, "it is outside of what may be changed")
        return bytes(fd_path)


def _change_times(file: bytes, times: tuple[int, int, int, int] | None) -> None:
    kernel.call(
        "utimensat", _AT_FDCWD, file, None if times is None else struct.pack("=4q", *times), 0
    )
