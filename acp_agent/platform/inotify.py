"""Watch folders for changes with Linux's inotify(7)."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

# linux/inotify.h
CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x8, 0x40, 0x80, 0x100, 0x200
OVERFLOW, IGNORED, IS_FOLDER = 0x4000, 0x8000, 0x40000000
_ONLY_FOLDERS, _NO_FOLLOW = 0x1000000, 0x2000000
_WATCHED = CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | _ONLY_FOLDERS | _NO_FOLLOW
# `struct inotify_event`: watch, mask, cookie, length of the name.
_EVENT_HEADER = struct.Struct("iIII")
_READ_BYTES = 1 << 16  # bytes


class InotifyEvent(NamedTuple):
    """An event for `name` in the folder of a watch."""

    watch: int
    mask: int
    name: bytes


class Inotify:
    """An inotify instance. Close it after use.

    Raises:
        OSError: the system has no inotify, or the limit of instances is reached.
    """

    def __init__(self) -> None:
        if sys.platform != "linux":
            raise OSError("only Linux has inotify")
        self._library = ctypes.CDLL(None, use_errno=True)
        self._descriptor: int = self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise _last_error()

    def fileno(self) -> int:
        """Return the descriptor, which is readable when there are events."""
        return self._descriptor

    def add(self, folder: bytes) -> int:
        """Watch a folder, without its subfolders; return the number of the watch.

        Raises:
            OSError: it is not a folder, or there are too many watches.
        """
        watch: int = self._library.inotify_add_watch(self._descriptor, folder, _WATCHED)
        if watch < 0:
            raise _last_error()
        return watch

    def remove(self, watch: int) -> None:
        """Stop watching a folder; do nothing if it was deleted."""
        self._library.inotify_rm_watch(self._descriptor, watch)

    def read(self) -> Iterator[InotifyEvent]:
        """Yield the events since the last call, without waiting."""
        with suppress(BlockingIOError):
            while data := os.read(self._descriptor, _READ_BYTES):
                at = 0
                while at < len(data):
                    watch, mask, _, length = _EVENT_HEADER.unpack_from(data, at)
                    at += _EVENT_HEADER.size + length
                    yield InotifyEvent(watch, mask, data[at - length : at].rstrip(b"\0"))

    def close(self) -> None:
        """Stop watching everything."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
