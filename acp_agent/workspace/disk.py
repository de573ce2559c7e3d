"""Regular files on disk: bounded reads that never block, and replacements that are all or nothing.

Every path given here is resolved and checked already. It is opened without following a symlink, so
a link that another process puts on it in between leads nowhere (`platform/nofollow.py`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from acp_agent.errors import MissingFileError, WorkspaceError
from acp_agent.platform.nofollow import open_last, opened_folder
from acp_agent.platform.open_files import limit_reached

_FULL = "{shown} cannot be {doing}: the disk or the quota is full; free some space and try again"
_DENIED = "{shown} cannot be {doing}: permission denied"
_MESSAGES = {
    errno.EISDIR: "{shown} is a folder, not a file",
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: _FULL,
    errno.EROFS: "{shown} cannot be {doing}: its file system is read-only",
    errno.ENAMETOOLONG: "the path is too long: {shown:.80}",
}

_ADVICE = {
    errno.EISDIR: "use `list` to see what is in it",
    errno.EACCES: "ask the user",
    errno.EPERM: "ask the user",
    errno.EROFS: "write elsewhere",
    errno.ENAMETOOLONG: "use a shorter name",
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
    advice = _ADVICE.get(number, "")
    return WorkspaceError(message.format(shown=shown, doing=doing), advice=advice)


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
        f"{shown} leads to another place than a moment ago (a symbolic link?)",
        advice="look at it again, then try again",
    )


def too_large(shown: str, size: int, limit: int) -> WorkspaceError:
    """The error for a file over a limit; both counts are bytes."""
    return WorkspaceError(
        f"{shown} is too large: {size:,} bytes, the limit is {limit:,}",
        advice="use `grep`, or `shell` with head, tail or sed, for the part that you need",
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


async def read_regular(path: Path, *, limit: int, shown: str) -> bytes:
    """All bytes of a regular file, read off the event loop.

    Nothing but a regular file of at most `limit` bytes is ever opened for reading.

    Raises:
        MissingFileError: there is no such file.
        WorkspaceError: it is no regular file, is over the limit, or cannot be read.
    """
    import aiofiles  # noqa: PLC0415 - 13 ms that the start of a session must not pay

    def open_regular(_: str, flags: int) -> int:
        with opened_folder(path.parent) as folder:
            found = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
            _require_regular(found, shown, limit)  # opening a device may already act on it
            descriptor = open_last(path.name, flags, folder)
        try:
            _require_regular(os.fstat(descriptor), shown, limit)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    try:
        async with aiofiles.open(str(path), "rb", opener=open_regular) as file:
            data = await file.read(limit + 1)
    except OSError as error:
        raise explain(error, shown, "read") from error
    if len(data) > limit:  # it grew, or its size was not known (files of /proc)
        raise too_large(shown, len(data), limit)
    return data


def make_parents(path: Path, *, shown: str) -> None:
    """Make the folders that `path` is to lie in."""
    with _parent(path, shown):
        pass


def replace_file(path: Path, data: bytes, *, shown: str) -> None:
    """Create or replace a file so that at any instant it is whole, the old one or the new one.

    Blocks: call it in a thread. An existing file keeps its mode, and one that is not writable is
    refused although its folder would allow the exchange.

    Raises:
        WorkspaceError: it cannot be written; nothing has changed.
    """
    with _parent(path, shown) as folder:
        try:
            _replace(folder, path.name, data, _mode_of_target(folder, path.name, shown))
        except OSError as error:
            raise explain(error, shown, "written") from error


@contextlib.contextmanager
def _parent(path: Path, shown: str) -> Iterator[int]:
    """The folder that `path` lies in, open; made where it is missing."""
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(opened_folder(path.parent, make=True))
        except NotADirectoryError as error:
            raise WorkspaceError(f"{shown} cannot be written: a file is in its way") from error
        except OSError as error:
            raise explain(error, shown, "written") from error
        yield folder


def _replace(folder: int, name: str, data: bytes, mode: int | None) -> None:
    temporary = f".acp-agent-{os.urandom(8).hex()}.tmp"
    try:
        descriptor = open_last(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, folder)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None:
                os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with contextlib.suppress(FileNotFoundError):  # it is in its place
            os.unlink(temporary, dir_fd=folder)


def _mode_of_target(folder: int, name: str, shown: str) -> int | None:
    """The mode of the file that is to be replaced; None where there is none.

    Raises:
        WorkspaceError: what is there cannot be replaced.
    """
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise WorkspaceError(f"{shown} is a folder", advice="choose a name for a file in it")
    if stat.S_ISLNK(status.st_mode):
        raise moved(shown)
    if not stat.S_ISREG(status.st_mode):
        raise WorkspaceError(f"{shown} is not a regular file; it cannot be written")
    try:
        os.close(open_last(name, os.O_WRONLY, folder))
    except PermissionError as error:
        raise WorkspaceError(
            f"{shown} cannot be written: it is read-only", advice="ask the user"
        ) from error
    return stat.S_IMODE(status.st_mode)
