"""Regular files on disk: bounded reads that never block, and replacements that are all or nothing.

Every path given here is resolved already. It is resolved once more at the moment of use, so that a
symlink put on it in between is noticed. That guards against accidents and against a model's own
commands; it is no wall against a program that races it, which is what a sandbox is for.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Literal

from acp_agent.errors import MissingFileError, WorkspaceError
from acp_agent.platform.open_files import limit_reached

# Absent where the system has no such flag. Without O_NONBLOCK opening a FIFO waits for a writer.
_READ_FLAGS = (
    getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
)
_FULL = "{shown} cannot be {doing}: the disk or the quota is full; free some space and try again"
_DENIED = "{shown} cannot be {doing}: permission denied; ask the user"
_MESSAGES = {
    errno.EISDIR: "{shown} is a folder, not a file: use `list` to see what is in it",
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: _FULL,
    errno.EROFS: "{shown} cannot be {doing}: its file system is read-only; write elsewhere",
    errno.ENAMETOOLONG: "the path is too long: {shown:.80}; use a shorter name",
}


def explain(error: OSError, shown: str, doing: str) -> WorkspaceError:
    """The error to raise for a system's error.

    Args:
        error: what the system said.
        shown: the file's name as the user knows it.
        doing: the past participle of what was tried, such as `read`.
    """
    number = error.errno or 0
    if number in (errno.ENOENT, errno.ENOTDIR):
        return MissingFileError(f"no such file: {shown}")
    if number == errno.ELOOP:
        return moved(shown)
    message = _MESSAGES.get(number)
    if message is None:
        why = limit_reached(error) or os.strerror(number).lower()
        return WorkspaceError(f"{shown} cannot be {doing}: {why}")
    return WorkspaceError(message.format(shown=shown, doing=doing))


def kind_of(path: Path) -> Literal["file", "folder", "other"] | None:
    """What a resolved path leads to; None for nothing, or nothing that we may look at."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return None
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) else "other"


def moved(shown: str) -> WorkspaceError:
    """The error for a path that no longer leads where it led when it was checked."""
    return WorkspaceError(
        f"{shown} leads to another place than a moment ago (a symbolic link?); "
        "look at it again, then try again"
    )


def too_large(shown: str, size: int, limit: int) -> WorkspaceError:
    """The error for a file over a limit; both counts are bytes."""
    return WorkspaceError(
        f"{shown} is too large: {size:,} bytes, the limit is {limit:,}; "
        "use `grep`, or `shell` with head, tail or sed, for the part that you need"
    )


def _require_regular(status: os.stat_result, shown: str, limit: int) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise explain(IsADirectoryError(errno.EISDIR, ""), shown, "read")
    if stat.S_ISLNK(status.st_mode):
        raise moved(shown)
    if not stat.S_ISREG(status.st_mode):
        raise WorkspaceError(
            f"{shown} is not a regular file but a pipe, a socket or a device; it cannot be read"
        )
    if status.st_size > limit:
        raise too_large(shown, status.st_size, limit)


def _require_unmoved(path: Path, shown: str) -> None:
    if os.path.realpath(path) != str(path):
        raise moved(shown)


async def read_regular(path: Path, *, limit: int, shown: str) -> bytes:
    """All bytes of a regular file, read off the event loop.

    Nothing but a regular file of at most `limit` bytes is ever opened for reading.

    Raises:
        MissingFileError: there is no such file.
        WorkspaceError: it is no regular file, is over the limit, or cannot be read.
    """
    import aiofiles  # noqa: PLC0415 - 13 ms that the start of a session must not pay

    name = str(path)

    def open_regular(_: str, flags: int) -> int:
        _require_regular(os.lstat(name), shown, limit)  # opening a device may already act on it
        descriptor = os.open(name, flags | _READ_FLAGS)
        try:
            _require_regular(os.fstat(descriptor), shown, limit)
            _require_unmoved(path, shown)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    try:
        async with aiofiles.open(name, "rb", opener=open_regular) as file:
            data = await file.read(limit + 1)
    except OSError as error:
        raise explain(error, shown, "read") from error
    if len(data) > limit:  # it grew, or its size was not known (files of /proc)
        raise too_large(shown, len(data), limit)
    return data


def make_parents(path: Path, *, shown: str) -> None:
    """Make the folders that `path` is to lie in."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if isinstance(error, (NotADirectoryError, FileExistsError)):
            raise WorkspaceError(f"{shown} cannot be written: a file is in its way") from error
        raise explain(error, shown, "written") from error
    _require_unmoved(path.parent, shown)


def replace_file(path: Path, data: bytes, *, shown: str) -> None:
    """Create or replace a file so that at any instant it is whole, the old one or the new one.

    Blocks: call it in a thread. An existing file keeps its mode, and one that is not writable is
    refused although its folder would allow the exchange.

    Raises:
        WorkspaceError: it cannot be written; nothing has changed.
    """
    make_parents(path, shown=shown)
    temporary = path.parent / f".acp-agent-{os.urandom(8).hex()}.tmp"
    try:
        _check_target(path, shown)
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            temporary.chmod(stat.S_IMODE(path.stat().st_mode))
        _require_unmoved(path, shown)
        temporary.replace(path)
    except OSError as error:
        raise explain(error, shown, "written") from error
    finally:
        temporary.unlink(missing_ok=True)


def _check_target(path: Path, shown: str) -> None:
    _require_unmoved(path, shown)
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISDIR(status.st_mode):
        raise WorkspaceError(f"{shown} is a folder; choose a name for a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise WorkspaceError(f"{shown} is not a regular file; it cannot be written")
    try:
        os.close(os.open(path, os.O_WRONLY))
    except PermissionError as error:
        raise WorkspaceError(f"{shown} cannot be written: it is read-only; ask the user") from error
