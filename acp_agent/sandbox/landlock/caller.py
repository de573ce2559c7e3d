"""A program that waits for the supervisor: its memory, its folders and its descriptors.

A module of the launcher: it imports nothing of this package.
"""

from __future__ import annotations

import _thread
import errno
import fcntl
import os
import struct

# linux/seccomp.h
_SEND, _ADD_DESCRIPTOR = 0xC0182101, 0x40182103
_ANSWER = 2  # together with the descriptor
_LONGEST = 4096  # bytes of a path, with its end
_AT_CURRENT = -100
_MOST_LINKS = 40
_TRIES = 3  # where files are renamed meanwhile


class LandlockDecides(Exception):  # noqa: N818 - says what is done, and is no error
    """The call is to go on as if nobody had looked."""


class Answered(Exception):  # noqa: N818 - as above
    """The program has its answer."""


def signed(number: int, bits: int = 32) -> int:
    """Return an argument as the signed number that its lower bits are."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


class Place:
    """A name in a folder that is held open, so that nobody can put another in its place.

    Attributes:
        folder: the folder's descriptor.
        name: the last part of the path.
        path: the whole path, absolute and without links.
    """

    def __init__(self, folder: int, folder_path: bytes, name: bytes) -> None:
        self.folder = folder
        self.name = name
        self.path = folder_path.rstrip(b"/") + b"/" + name


class Caller:
    """One call of a program; to be used in a `with`, which closes what was opened for it.

    Args:
        process: the number of the thread that waits.
        listener: the descriptor that its call was read from.
        identity: the kernel's number of the call.
    """

    def __init__(self, process: int, listener: int, identity: int) -> None:
        self.process = process
        self._listener = listener
        self._identity = identity
        self._opened: list[int] = []
        self._memory = -1

    def __enter__(self) -> Caller:  # noqa: PYI034 - `Self` would need `typing`
        """Open its memory. Raises OSError where it is gone."""
        self._memory = self.open(b"/proc/%d/mem" % self.process, os.O_RDONLY)
        return self

    def __exit__(self, *exception: object) -> None:
        """Close what was opened."""
        for descriptor in self._opened:
            os.close(descriptor)

    def open(self, path: bytes, flags: int, mode: int = 0, folder: int | None = None) -> int:
        """Open a file until the call is answered. Raises OSError."""
        descriptor = os.open(path, flags | os.O_CLOEXEC, mode, dir_fd=folder)
        self._opened.append(descriptor)
        return descriptor

    def read(self, address: int, size: int) -> bytes:
        """Return a piece of its memory. Raises OSError where it has none there."""
        data = os.pread(self._memory, size, address)
        if not data:
            raise OSError(errno.EFAULT, "no such memory")
        return data

    def path(self, address: int) -> bytes:
        """Return a path from its memory. Raises OSError where there is none."""
        text, end, _ = self.read(address, _LONGEST).partition(b"\0")
        if not end:
            raise OSError(errno.ENAMETOOLONG, "the path is too long")
        if not text:
            raise OSError(errno.ENOENT, "the path is empty")
        return text

    def umask(self) -> int:
        """Return which rights it takes from new files."""
        with open(f"/proc/{self.process}/status", "rb") as file:
            for line in file:
                if line.startswith(b"Umask:"):
                    return int(line.split()[1], 8)
        return 0o77

    def full(self, folder: int, path: bytes) -> bytes:
        """Return a path of it as this process can use it.

        Args:
            folder: the descriptor of the folder that it begins in, as the program numbers it.
            path: the path.
        """
        if not path.startswith(b"/"):
            start = b"cwd" if folder == _AT_CURRENT else b"fd/%d" % folder
            path = os.readlink(b"/proc/%d/%s" % (self.process, start)) + b"/" + path
        for own in (b"/proc/self/", b"/proc/thread-self/"):
            if path.startswith(own):
                return b"/proc/%d/%s" % (self.process, path[len(own) :])
        return path

    def place(self, folder: int, path: bytes, *, follow: bool) -> Place:
        """Return where a path leads to, whether there is something or not.

        Args:
            folder: as in `full`.
            path: the path.
            follow: whether a link at its end is followed.

        Raises:
            OSError: a folder on the way does not exist.
            LandlockDecides: the path ends with `.` or `..`, or is the root.
        """
        full = self.full(folder, path)
        for _ in range(_MOST_LINKS):
            parent, _, name = full.rstrip(b"/").rpartition(b"/")
            if name in (b"", b".", b".."):
                raise LandlockDecides
            held = self.open(parent or b"/", os.O_PATH | os.O_DIRECTORY)
            found = Place(held, self.path_of(held), name)
            if not follow:
                return found
            try:
                link = os.readlink(name, dir_fd=held)
            except OSError:
                return found
            full = self.full(_AT_CURRENT, os.path.join(os.path.dirname(found.path), link))
        raise OSError(errno.ELOOP, "too many links")

    def file(self, folder: int, path: bytes | None, *, follow: bool) -> tuple[bytes, bytes]:
        """Return a path of this process that leads to a file for sure, and the file's own path.

        Args:
            folder: as in `full`, or the file's descriptor.
            path: the path; None: the descriptor is the file's.
            follow: whether a link at its end is followed.

        Raises:
            OSError: there is no such file.
        """
        if path is None:
            start = b"cwd" if folder == _AT_CURRENT else b"fd/%d" % folder
            held = self.open(b"/proc/%d/%s" % (self.process, start), os.O_PATH)
        else:
            held = self.open(self.full(folder, path), os.O_PATH | (0 if follow else os.O_NOFOLLOW))
        own = self.path_of(held)
        if os.fstat(held).st_nlink == 0:
            own = own.removesuffix(b" (deleted)")
        return b"/proc/self/fd/%d" % held, own

    def path_of(self, descriptor: int) -> bytes:
        """Return the path of something that this process has open.

        Raises:
            OSError: it is reached through another process whose folders are mounted otherwise, as
                those of a container are; its path there says nothing here.
        """
        held = os.fstat(descriptor)
        for _ in range(_TRIES):
            path = os.readlink(b"/proc/self/fd/%d" % descriptor)
            if held.st_nlink == 0:
                return path
            try:
                found = os.stat(path, follow_symlinks=False)
            except FileNotFoundError:  # renamed just now
                continue
            if (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino):
                return path
        raise PermissionError(errno.EACCES, "it is not among the files that are seen here")

    def give(self, descriptor: int, flags: int) -> None:
        """Answer with a descriptor. Raises `Answered`, or OSError where the program is gone."""
        given = struct.pack("=QIIII", self._identity, _ANSWER, descriptor, 0, flags & os.O_CLOEXEC)
        fcntl.ioctl(self._listener, _ADD_DESCRIPTOR, given)
        raise Answered

    def give_later(self, path: bytes, flags: int, folder: int | None) -> None:
        """Answer with a named pipe when its other end is opened. Raises `Answered`."""
        kept, self._opened = self._opened, []  # the path may need them

        def wait() -> None:
            try:
                opened = os.open(path, flags | os.O_CLOEXEC, dir_fd=folder)
                kept.append(opened)
                self.give(opened, flags)
            except Answered:
                pass
            except OSError as error:
                refuse(self._listener, self._identity, error)
            finally:
                for descriptor in kept:
                    os.close(descriptor)

        _thread.start_new_thread(wait, ())
        raise Answered


def refuse(listener: int, identity: int, error: OSError) -> None:
    """Answer a call with an error; does nothing where the program is gone."""
    respond(listener, identity, error=-(error.errno or errno.EPERM))


def respond(listener: int, identity: int, value: int = 0, error: int = 0, flags: int = 0) -> None:
    """Answer a call; does nothing where the program is gone."""
    try:
        fcntl.ioctl(listener, _SEND, struct.pack("=QqiI", identity, value, error, flags))
    except OSError:
        return
