"""A confined program that waits for the supervisor: its memory, folders and descriptors.

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
_ANSWER = 2  # SECCOMP_ADDFD_FLAG_SEND: the descriptor is the answer
_MAX_PATH = 4096  # bytes of a path, including the final zero byte
_AT_FDCWD = -100
_MAX_LINKS = 40
_MAX_ATTEMPTS = 3  # attempts if files are renamed meanwhile


class LandlockDecides(Exception):  # noqa: N818 - control flow, not an error
    """Raised to let the kernel continue the call, so that Landlock decides."""


class Answered(Exception):  # noqa: N818 - as above
    """Raised when the call is already answered."""


def signed(number: int, bits: int = 32) -> int:
    """Return the lower bits of an argument as a signed number."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


class DirectoryEntry:
    """A name in a folder that is open, so that the folder cannot be replaced.

    Attributes:
        name: the last part of the path.
        path: the whole path, absolute and without links.
    """

    def __init__(self, folder: int, folder_path: bytes, name: bytes) -> None:
        self.folder = folder
        self.name = name
        self.path = folder_path.rstrip(b"/") + b"/" + name


class Caller:
    """One call of a program. Use it in a `with` statement, which closes all descriptors.

    Args:
        process: the id of the waiting thread.
        identity: the kernel's number of the call.
    """

    def __init__(self, process: int, listener: int, identity: int) -> None:
        self.process = process
        self._listener = listener
        self._identity = identity
        self._opened: list[int] = []
        self._memory = -1

    def __enter__(self) -> Caller:  # noqa: PYI034 - `Self` would need `typing`
        """Open the program's memory. Raises OSError if the program has exited."""
        self._memory = self.open(b"/proc/%d/mem" % self.process, os.O_RDONLY)
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the opened descriptors."""
        for descriptor in self._opened:
            os.close(descriptor)

    def open(self, path: bytes, flags: int, mode: int = 0, folder: int | None = None) -> int:
        """Open a file and return its descriptor, which `__exit__` closes. Raises OSError."""
        descriptor = os.open(path, flags | os.O_CLOEXEC, mode, dir_fd=folder)
        self._opened.append(descriptor)
        return descriptor

    def read(self, address: int, size: int) -> bytes:
        """Return a part of the program's memory. Raises OSError if nothing is mapped there."""
        data = os.pread(self._memory, size, address)
        if not data:
            raise OSError(errno.EFAULT, "no such memory")
        return data

    def path(self, address: int) -> bytes:
        """Return a path from the program's memory. Raises OSError if it is invalid."""
        text, end, _ = self.read(address, _MAX_PATH).partition(b"\0")
        if not end:
            raise OSError(errno.ENAMETOOLONG, "the path is too long")
        if not text:
            raise OSError(errno.ENOENT, "the path is empty")
        return text

    def umask(self) -> int:
        """Return the program's umask."""
        with open(f"/proc/{self.process}/status", "rb") as file:
            for line in file:
                if line.startswith(b"Umask:"):
                    return int(line.split()[1], 8)
        return 0o77

    def absolute_path(self, folder: int, path: bytes) -> bytes:
        """Return a path of the program as an absolute path for this process.

        Args:
            folder: the program's descriptor of the folder that the path starts in.
        """
        if not path.startswith(b"/"):
            start = b"cwd" if folder == _AT_FDCWD else b"fd/%d" % folder
            path = os.readlink(b"/proc/%d/%s" % (self.process, start)) + b"/" + path
        for prefix in (b"/proc/self/", b"/proc/thread-self/"):
            if path.startswith(prefix):
                return b"/proc/%d/%s" % (self.process, path[len(prefix) :])
        return path

    def resolve_entry(self, folder: int, path: bytes, *, follow: bool) -> DirectoryEntry:
        """Return the entry at a path, which need not exist.

        Args:
            follow: whether to follow a link at the end of the path.

        Raises:
            OSError: a parent folder does not exist.
            LandlockDecides: the path ends with `.` or `..`, or is the root.
        """
        target = self.absolute_path(folder, path)
        for _ in range(_MAX_LINKS):
            parent, _, name = target.rstrip(b"/").rpartition(b"/")
            if name in (b"", b".", b".."):
                raise LandlockDecides
            descriptor = self.open(parent or b"/", os.O_PATH | os.O_DIRECTORY)
            entry = DirectoryEntry(descriptor, self.descriptor_path(descriptor), name)
            if not follow:
                return entry
            try:
                link = os.readlink(name, dir_fd=descriptor)
            except OSError:
                return entry
            target = self.absolute_path(_AT_FDCWD, os.path.join(os.path.dirname(entry.path), link))
        raise OSError(errno.ELOOP, "too many links")

    def file(self, folder: int, path: bytes | None, *, follow: bool) -> tuple[bytes, bytes]:
        """Open a file; return its path in /proc/self/fd, which cannot change, and its real path.

        Args:
            folder: as in `absolute_path`, or the file's descriptor.
            path: the path; None if `folder` is the file's descriptor.
            follow: whether to follow a link at the end of the path.

        Raises:
            OSError: there is no such file.
        """
        if path is None:
            start = b"cwd" if folder == _AT_FDCWD else b"fd/%d" % folder
            descriptor = self.open(b"/proc/%d/%s" % (self.process, start), os.O_PATH)
        else:
            descriptor = self.open(
                self.absolute_path(folder, path), os.O_PATH | (0 if follow else os.O_NOFOLLOW)
            )
        real_path = self.descriptor_path(descriptor)
        if os.fstat(descriptor).st_nlink == 0:
            real_path = real_path.removesuffix(b" (deleted)")
        return b"/proc/self/fd/%d" % descriptor, real_path

    def descriptor_path(self, descriptor: int) -> bytes:
        """Return the path of an open descriptor of this process.

        Raises:
            OSError: the path does not lead to the file here. It was opened through a process with
                other mounts, such as a container's.
        """
        status = os.fstat(descriptor)
        for _ in range(_MAX_ATTEMPTS):
            path = os.readlink(b"/proc/self/fd/%d" % descriptor)
            if status.st_nlink == 0:
                return path
            try:
                path_status = os.stat(path, follow_symlinks=False)
            except FileNotFoundError:  # renamed just now
                continue
            if (path_status.st_dev, path_status.st_ino) == (status.st_dev, status.st_ino):
                return path
        raise PermissionError(errno.EACCES, "it is not among the files that are seen here")

    def send_descriptor(self, descriptor: int, flags: int) -> None:
        """Answer with a descriptor. Raises `Answered`, or OSError if the program has exited."""
        request = struct.pack(
            "=QIIII", self._identity, _ANSWER, descriptor, 0, flags & os.O_CLOEXEC
        )
        fcntl.ioctl(self._listener, _ADD_DESCRIPTOR, request)
        raise Answered

    def send_descriptor_later(self, path: bytes, flags: int, folder: int | None) -> None:
        """Answer with a named pipe once its other end is opened. Raises `Answered`."""
        descriptors, self._opened = self._opened, []  # the path may need them

        def wait() -> None:
            try:
                opened = os.open(path, flags | os.O_CLOEXEC, dir_fd=folder)
                descriptors.append(opened)
                self.send_descriptor(opened, flags)
            except Answered:
                pass
            except OSError as error:
                refuse(self._listener, self._identity, error)
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)

        _thread.start_new_thread(wait, ())
        raise Answered


def refuse(listener: int, identity: int, error: OSError) -> None:
    """Answer a call with an error; do nothing if the program has exited."""
    respond(listener, identity, error=-(error.errno or errno.EPERM))


def respond(listener: int, identity: int, value: int = 0, error: int = 0, flags: int = 0) -> None:
    """Answer a call; do nothing if the program has exited."""
    try:
        fcntl.ioctl(listener, _SEND, struct.pack("=QqiI", identity, value, error, flags))
    except OSError:
        return
