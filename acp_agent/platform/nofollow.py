"""Open folders and files by absolute paths without following symlinks anywhere in the path.

After a path is resolved and checked, another process may replace a part of it by a symlink. The
functions here then fail instead of opening something else. Later operations are relative to the
folder's descriptor, which no rename can redirect.

Linux does this in one call, openat2(2). On other systems, and in sandboxes that refuse that call,
each part of the path is opened relative to its parent.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

# Some systems lack these flags. With O_PATH a folder needs no read permission; with O_NONBLOCK
# opening a FIFO does not wait for a writer.
_FOLDER_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
FILE_FLAGS = getattr(os, "O_NONBLOCK", 0) | os.O_NOFOLLOW | os.O_CLOEXEC

_OPENAT2 = 437  # the same number on all Linux architectures except alpha
_AT_FDCWD = -100
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_MAX_ATTEMPTS = 100  # attempts to resolve a path whose links change meanwhile


def real_path(path: str | Path) -> str:
    """Return a path with its symlinks resolved; retry if they change meanwhile.

    Raises:
        OSError: the symlinks change too fast, or there are too many of them.
    """
    for attempts_left in reversed(range(_MAX_ATTEMPTS)):
        try:
            return os.path.realpath(path)
        except RecursionError:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        except OSError:  # a link was removed after it was seen
            if not attempts_left:
                raise
    raise AssertionError("the last try returns or raises")


@contextmanager
def opened_folder(path: str | bytes | Path, *, make: bool = False) -> Iterator[int]:
    """Open a folder while the block runs; use the descriptor for `dir_fd` and `fstat`.

    Args:
        path: the absolute, resolved path.
        make: whether to create missing folders.

    Raises:
        OSError: ELOOP if the path contains a symlink, or any other error of opening.
    """
    descriptor = _open_folder(os.fsencode(path), make=make)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def listed_folder(path: str | bytes | Path) -> Iterator[int]:
    """Open a folder like `opened_folder`, with a descriptor that `os.scandir` can list."""
    with opened_folder(path) as folder:
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def grant_owner_access(folder: int) -> int:
    """Give a folder's owner all permissions on it; return its previous mode.

    Raises:
        OSError: the folder belongs to another user.
    """
    mode = stat.S_IMODE(os.fstat(folder).st_mode)
    Path(f"/proc/self/fd/{folder}").chmod(mode | stat.S_IRWXU)  # fchmod refuses O_PATH
    return mode


@contextmanager
def owner_may_change(folder: int) -> Iterator[None]:
    """Give a folder's owner all permissions while the block runs; see `grant_owner_access`."""
    mode = grant_owner_access(folder)
    try:
        yield
    finally:
        Path(f"/proc/self/fd/{folder}").chmod(mode)


def open_in_folder(name: str | bytes, flags: int, folder: int, mode: int = 0o666) -> int:
    """Open a name in an open folder, without following a symlink or waiting at a FIFO."""
    return os.open(name, flags | FILE_FLAGS, mode, dir_fd=folder)


def _open_folder(path: bytes, *, make: bool) -> int:
    components = [part for part in path.split(b"/") if part]
    if not path.startswith(b"/") or b".." in components or b"\0" in path:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    try:
        return _openat2(path, _FOLDER_FLAGS)
    except OSError as error:
        if error.errno == errno.ENOENT and make:
            return _open_by_components(components, make=True)
        if error.errno in (errno.ENOSYS, errno.EPERM):
            return _open_by_components(components, make=make)
        raise


def _openat2(path: bytes, flags: int) -> int:
    call = _syscall()
    while True:
        descriptor, number = call(path, flags)
        if not number:
            return descriptor
        if number not in (errno.EINTR, errno.EAGAIN):
            raise OSError(number, os.strerror(number))


@cache
def _syscall() -> Callable[[bytes, int], tuple[int, int]]:
    """Return a function that calls openat2(2) and returns a descriptor and an error number."""
    if sys.platform != "linux":
        return lambda _path, _flags: (-1, errno.ENOSYS)
    import ctypes  # noqa: PLC0415 - takes 10 ms, which session start must not pay

    system = ctypes.CDLL(None, use_errno=True).syscall
    system.restype = ctypes.c_long

    def call(path: bytes, flags: int) -> tuple[int, int]:
        open_how = struct.pack("=QQQ", flags, 0, _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS)
        number, start_folder = ctypes.c_long(_OPENAT2), ctypes.c_long(_AT_FDCWD)
        descriptor = system(number, start_folder, path, open_how, ctypes.c_size_t(len(open_how)))
        return (descriptor, 0) if descriptor >= 0 else (-1, ctypes.get_errno())

    return call


def _open_by_components(components: list[bytes], *, make: bool) -> int:
    """Open a folder part by part, starting at the root."""
    descriptor = os.open("/", _FOLDER_FLAGS)
    for component in components:
        try:
            child = _open_component(component, descriptor, make=make)
        finally:
            os.close(descriptor)
        descriptor = child
    return descriptor


def _open_component(component: bytes, folder: int, *, make: bool) -> int:
    try:
        return os.open(component, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
        with suppress(FileExistsError):  # another process made it
            os.mkdir(component, dir_fd=folder)
        return _open_component(component, folder, make=False)
    except NotADirectoryError:
        status = os.stat(component, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise
