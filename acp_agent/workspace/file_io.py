"""Read and replace files on disk; text as files have it; file names as people read them.

Every path given here is resolved and checked already. It is opened without following a symlink, so
a link that another process puts on it in between leads nowhere (`platform/nofollow.py`).
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct

from acp_agent.errors import MissingFileError, WorkspaceError
from acp_agent.platform.descriptor_limit import explain_descriptor_limit
from acp_agent.platform.nofollow import open_last, opened_folder

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
BYTE_ORDER_MARK = "\ufeff"


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
        why = explain_descriptor_limit(error) or os.strerror(number).lower()
        return WorkspaceError(f"{shown} cannot be {doing}: {why}")
    advice = _ADVICE.get(number, "")
    return WorkspaceError(message.format(shown=shown, doing=doing), advice=advice)


def file_kind(path: Path) -> Literal["file", "folder", "other"] | None:
    """Return the kind of a resolved path; None if it does not exist or cannot be read."""
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


class TextFile(Struct, frozen=True, kw_only=True):
    """A text file as it was read: `text` with its own line endings, without byte order mark.

    `digest` is the SHA-256 of the text with LF line endings, so that an editor which hides CRLF
    and the disk agree. `newline` is CRLF where every line ends so, else LF; `encoding` is `utf-8`,
    or `utf-8-sig` where the file has a byte order mark. Both are what `write_text` wants back.
    """

    path: str
    text: str
    digest: str
    newline: str = "\n"
    encoding: str = "utf-8"


def is_utf8(text: str) -> bool:
    """Whether a text can be written as UTF-8: false where it has half a surrogate pair."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def with_lf(text: str) -> str:
    """`text` with LF for every CRLF."""
    return text.replace("\r\n", "\n")


def with_newline(text: str, newline: str) -> str:
    """Return `text` with `newline` (LF or CRLF) at the end of each line; LF changes nothing."""
    return with_lf(text).replace("\n", newline) if newline == "\r\n" else text


def text_digest(text: str) -> str:
    """SHA-256, in hex, of the text with LF line endings."""
    return hashlib.sha256(with_lf(text).encode("utf-8", "surrogatepass")).hexdigest()


def text_file(path: Path, text: str) -> TextFile:
    """The text of a file, a byte order mark at its start included, as a `TextFile`."""
    marked = text.startswith(BYTE_ORDER_MARK)
    text = text.removeprefix(BYTE_ORDER_MARK)
    crlf = text.count("\r\n")
    return TextFile(
        path=str(path),
        text=text,
        digest=text_digest(text),
        newline="\r\n" if crlf and crlf == text.count("\n") else "\n",
        encoding="utf-8-sig" if marked else "utf-8",
    )


def decode(path: Path, data: bytes, *, shown: str) -> TextFile:
    """A file's bytes as a text file.

    Raises:
        WorkspaceError: they are binary, or text that is not UTF-8.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise WorkspaceError(
            f"{shown} is UTF-16 text; only UTF-8 can be read",
            advice="convert it, with iconv for instance",
        )
    if b"\0" in data:
        raise WorkspaceError(
            f"{shown} is a binary file, {len(data):,} bytes",
            advice="look at it with a `shell` command that understands its format",
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise WorkspaceError(
            f"{shown} is not valid UTF-8 (byte 0x{data[error.start]:02x} in line {line})",
            advice="convert it first, with iconv for instance",
        ) from error
    return text_file(path, text)


def encode(text: str, *, newline: str, encoding: str) -> bytes:
    """The bytes of a text file.

    Raises:
        WorkspaceError: the text has half a surrogate pair, which no UTF-8 file can hold.
    """
    try:
        return with_newline(text, newline).encode(encoding)
    except UnicodeEncodeError as error:
        raise WorkspaceError(
            f"the text has a broken character (U+{ord(text[error.start]):04X}) at position "
            f"{error.start}",
            advice="leave it out",
        ) from error


def display_path(path: str | Path, cwd: Path) -> str:
    """A path relative to the working folder where it lies below it, else absolute, on one line."""
    path = Path(path)
    if path.is_relative_to(cwd):
        path = path.relative_to(cwd)
    return display_name(path.as_posix())


def display_name(name: str) -> str:
    """A file's name with line breaks and other control characters escaped as in Python.

    Bytes of a name that are not UTF-8 become U+FFFD.
    """
    name = os.fsencode(name).decode("utf-8", "replace") if not name.isascii() else name
    if name.isprintable():
        return name
    escaped = (c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in name)
    return "".join(escaped)
