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
    LandlockDecides,
    Place,
    signed,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from acp_agent.sandbox.landlock.confine import Orders

_HERE = -100  # AT_FDCWD
_NO_FOLLOW, _REMOVE_FOLDER, _EMPTY_PATH, _FOLLOW = 0x100, 0x200, 0x1000, 0x400
_EXCHANGE = 2  # linux/fs.h
_CHANGES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_UNNAMED = os.O_TMPFILE & ~os.O_DIRECTORY
_MODES_OF_FILES = 0o1777  # without set-user-ID and set-group-ID
_SECOND_PARTS = 1_000  # nanoseconds in a microsecond


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
        self._fixed = [path for path, kind in kinds.items() if kind != "write"]

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

    def moved(self, path: bytes) -> None:
        """Note that the path may now belong to another file, which has no grant."""
        self._granted.discard(path)

    def fixed_below(self, path: bytes) -> list[bytes]:
        """Return the paths below a folder that must not be changed, even if they do not exist."""
        return [fixed for fixed in self._fixed if fixed.startswith(path + b"/")]


class FileCalls:
    """Executes calls. Each private method is named for a call and takes the caller and arguments.

    A method raises OSError for the error that the program gets.
    """

    def __init__(self, orders: Orders) -> None:
        self._files = Files(orders["kinds"], orders["granted"], orders["divided"])

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
        self._openat(caller, _HERE, path, flags, mode)

    def _creat(self, caller: Caller, path: int, mode: int, *_: int) -> None:
        self._openat(caller, _HERE, path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, mode)

    def _openat(self, caller: Caller, at: int, path: int, flags: int, mode: int, *_: int) -> None:
        flags = signed(flags)
        if flags & os.O_PATH or flags & _UNNAMED:
            raise LandlockDecides
        follow = not flags & os.O_NOFOLLOW and flags & (new := os.O_CREAT | os.O_EXCL) != new
        named = caller.path(path)
        if not flags & _CHANGES:
            held, own = caller.file(signed(at), named, follow=follow)
            if self._files.may_list(own) or self._files.has_no_grant(own):
                self._give(caller, os.stat(held).st_mode, held, flags & ~os.O_NOFOLLOW)
            raise LandlockDecides
        place = caller.place(signed(at), named, follow=follow)
        self._must_change(place)
        try:
            found = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            found = stat.S_IFREG
        mode = mode & ~caller.umask() & _MODES_OF_FILES if flags & os.O_CREAT else 0
        self._give(caller, found, place.name, flags | os.O_NOFOLLOW, mode, place.folder)

    def _give(
        self,
        caller: Caller,
        kind: int,
        path: bytes,
        flags: int,
        mode: int = 0,
        folder: int | None = None,
    ) -> None:
        if stat.S_ISFIFO(kind) and not flags & os.O_NONBLOCK:  # it blocks
            caller.give_later(path, flags, folder)
        caller.give(caller.open(path, flags, mode, folder), flags)

    def _truncate(self, caller: Caller, path: int, size: int, *_: int) -> None:
        place = caller.place(_HERE, caller.path(path), follow=True)
        self._must_change(place)
        flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        os.truncate(caller.open(place.name, flags, 0, place.folder), signed(size, 64))

    # Names

    def _mkdir(self, caller: Caller, path: int, mode: int, *_: int) -> None:
        self._mkdirat(caller, _HERE, path, mode)

    def _mkdirat(self, caller: Caller, at: int, path: int, mode: int, *_: int) -> None:
        place = self._named(caller, at, path)
        os.mkdir(place.name, mode & ~caller.umask() & 0o7777, dir_fd=place.folder)

    def _mknod(self, caller: Caller, path: int, mode: int, device: int, *_: int) -> None:
        self._mknodat(caller, _HERE, path, mode, device)

    def _mknodat(self, caller: Caller, at: int, path: int, mode: int, *_: int) -> None:
        place = self._named(caller, at, path)
        kind = stat.S_IFMT(mode) or stat.S_IFREG
        if kind not in (stat.S_IFREG, stat.S_IFIFO):
            raise PermissionError(errno.EPERM, "no devices")
        mode = kind | mode & ~caller.umask() & _MODES_OF_FILES
        os.mknod(place.name, mode, dir_fd=place.folder)

    def _rmdir(self, caller: Caller, path: int, *_: int) -> None:
        self._unlinkat(caller, _HERE, path, _REMOVE_FOLDER)

    def _unlink(self, caller: Caller, path: int, *_: int) -> None:
        self._unlinkat(caller, _HERE, path, 0)

    def _unlinkat(self, caller: Caller, at: int, path: int, flags: int, *_: int) -> None:
        place = self._named(caller, at, path)
        if flags & _REMOVE_FOLDER:
            os.rmdir(place.name, dir_fd=place.folder)
        else:
            os.unlink(place.name, dir_fd=place.folder)
        self._files.moved(place.path)

    def _symlink(self, caller: Caller, target: int, path: int, *_: int) -> None:
        self._symlinkat(caller, target, _HERE, path)

    def _symlinkat(self, caller: Caller, target: int, at: int, path: int, *_: int) -> None:
        place = self._named(caller, at, path)
        self._must_lead_to_nothing(place)
        os.symlink(caller.path(target), place.name, dir_fd=place.folder)

    def _link(self, caller: Caller, old: int, new: int, *_: int) -> None:
        self._linkat(caller, _HERE, old, _HERE, new, 0)

    def _linkat(
        self, caller: Caller, at: int, old: int, new_at: int, new: int, flags: int, *_: int
    ) -> None:
        if flags & _EMPTY_PATH:
            raise PermissionError(errno.EPERM, "only files with names")
        source = caller.place(signed(at), caller.path(old), follow=bool(flags & _FOLLOW))
        target = caller.place(signed(new_at), caller.path(new), follow=False)
        self._must_change(source, target)
        os.link(
            source.name,
            target.name,
            src_dir_fd=source.folder,
            dst_dir_fd=target.folder,
            follow_symlinks=False,
        )

    def _rename(self, caller: Caller, old: int, new: int, *_: int) -> None:
        self._renameat2(caller, _HERE, old, _HERE, new, 0)

    def _renameat(self, caller: Caller, at: int, old: int, new_at: int, new: int, *_: int) -> None:
        self._renameat2(caller, at, old, new_at, new, 0)

    def _renameat2(
        self, caller: Caller, at: int, old: int, new_at: int, new: int, flags: int, *_: int
    ) -> None:
        source = caller.place(signed(at), caller.path(old), follow=False)
        target = caller.place(signed(new_at), caller.path(new), follow=False)
        self._must_change(source, target)
        for place, other in ((source, target), (target, source)):
            if any(map(os.path.lexists, self._files.fixed_below(place.path))):
                raise PermissionError(errno.EACCES, "a file in it may not be moved")
            if place is target or flags & _EXCHANGE:
                mode = os.stat(other.name, dir_fd=other.folder, follow_symlinks=False).st_mode
                if not stat.S_ISREG(mode):
                    self._must_lead_to_nothing(place)
        kernel.call(
            "renameat2", source.folder, source.name, target.folder, target.name, signed(flags)
        )
        for place in (source, target):
            self._files.moved(place.path)

    # Modes, owners and times

    def _chmod(self, caller: Caller, path: int, mode: int, *_: int) -> None:
        self._change_mode(self._file(caller, _HERE, path), mode)

    def _fchmod(self, caller: Caller, descriptor: int, mode: int, *_: int) -> None:
        self._change_mode(self._file(caller, descriptor, None), mode)

    def _fchmodat(self, caller: Caller, at: int, path: int, mode: int, *_: int) -> None:
        self._change_mode(self._file(caller, at, path), mode)

    def _fchmodat2(
        self, caller: Caller, at: int, path: int, mode: int, flags: int, *_: int
    ) -> None:
        self._change_mode(self._file(caller, at, path, flags), mode)

    def _change_mode(self, file: bytes, mode: int) -> None:
        found = os.stat(file).st_mode
        if stat.S_ISLNK(found):
            raise OSError(errno.EOPNOTSUPP, "links have no mode")
        os.chmod(file, mode & (0o7777 if stat.S_ISDIR(found) else _MODES_OF_FILES))

    def _chown(self, caller: Caller, path: int, user: int, group: int, *_: int) -> None:
        os.chown(self._file(caller, _HERE, path), signed(user), signed(group))

    def _lchown(self, caller: Caller, path: int, user: int, group: int, *_: int) -> None:
        os.chown(self._file(caller, _HERE, path, _NO_FOLLOW), signed(user), signed(group))

    def _fchown(self, caller: Caller, descriptor: int, user: int, group: int, *_: int) -> None:
        os.chown(self._file(caller, descriptor, None), signed(user), signed(group))

    def _fchownat(
        self, caller: Caller, at: int, path: int, user: int, group: int, flags: int, *_: int
    ) -> None:
        os.chown(self._file(caller, at, path, flags), signed(user), signed(group))

    def _utime(self, caller: Caller, path: int, times: int, *_: int) -> None:
        file = self._file(caller, _HERE, path)
        both = struct.unpack("=2q", caller.read(times, 16)) if times else None
        _change_times(file, None if both is None else (both[0], 0, both[1], 0))

    def _utimes(self, caller: Caller, path: int, times: int, *_: int) -> None:
        self._futimesat(caller, _HERE, path, times)

    def _futimesat(self, caller: Caller, at: int, path: int, times: int, *_: int) -> None:
        file = self._file(caller, at, path or None)
        if not times:
            _change_times(file, None)
            return
        one, one_part, two, two_part = struct.unpack("=4q", caller.read(times, 32))
        _change_times(file, (one, one_part * _SECOND_PARTS, two, two_part * _SECOND_PARTS))

    def _utimensat(
        self, caller: Caller, at: int, path: int, times: int, flags: int, *_: int
    ) -> None:
        file = self._file(caller, at, path or None, flags)
        both = struct.unpack("=4q", caller.read(times, 32)) if times else None
        _change_times(file, both)

    # Helpers

    def _named(self, caller: Caller, at: int, path: int) -> Place:
        place = caller.place(signed(at), caller.path(path), follow=False)
        self._must_change(place)
        return place

    def _must_change(self, *places: Place) -> None:
        """Raise `LandlockDecides` unless all may be changed and at least one has no grant."""
        if not all(self._files.may_change(place.path) for place in places):
            raise LandlockDecides  # Landlock refuses it
        if all(self._files.landlock_decides(place.path) for place in places):
            raise LandlockDecides

    def _must_lead_to_nothing(self, place: Place) -> None:
        """Refuse a call that would create files at paths that must not be changed."""
        if self._files.fixed_below(place.path):
            raise PermissionError(errno.EACCES, "a file below it may not be made")

    def _file(self, caller: Caller, at: int, path: int | None, flags: int = 0) -> bytes:
        """Return a path of a file that may be changed; raise OSError if it must not be."""
        named: bytes | None = None
        if path is not None:
            text = caller.read(path, 1)
            named = None if text == b"\0" and flags & _EMPTY_PATH else caller.path(path)
        held, own = caller.file(signed(at), named, follow=not flags & _NO_FOLLOW)
        if not self._files.may_change(own):
            raise PermissionError(errno.EPERM, "it is outside of what may be changed")
        return bytes(held)


def _change_times(file: bytes, times: tuple[int, int, int, int] | None) -> None:
    kernel.call("utimensat", _HERE, file, None if times is None else struct.pack("=4q", *times), 0)
