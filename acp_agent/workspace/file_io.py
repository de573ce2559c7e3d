"""Read and replace files on disk, convert text to and from bytes, and format paths for display.

All paths passed in are already resolved and checked. They are opened without following symlinks,
so a link that another process creates in the meantime has no effect (`platform/nofollow.py`).
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
from acp_agent.platform.nofollow import open_in_folder, opened_folder

_FULL = "{label} cannot be {action}: the disk or the quota is full; free some space and try again"
_DENIED = "{label} cannot be {action}: permission denied"
_MESSAGES = {
    errno.EISDIR: "{label} is a folder, not a file",
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: _FULL,
    errno.EROFS: "{label} cannot be {action}: its file system is read-only",
    errno.ENAMETOOLONG: "the path is too long: {label:.80}",
}

_ADVICE = {
    errno.EISDIR: "use `list` to see what is in it",
    errno.EACCES: "ask the user",
    errno.EPERM: "ask the user",
    errno.EROFS: "write elsewhere",
    errno.ENAMETOOLONG: "use a shorter name",
}
BYTE_ORDER_MARK = "\ufeff"


def explain(error: OSError, label: str, action: str) -> WorkspaceError:
    """Return the error to raise for an `OSError`.

    Args:
        label: the file's name as shown to the user.
        action: the past participle of the failed action, such as `read`.
    """
    number = error.errno or 0
    if number in (errno.ENOENT, errno.ENOTDIR):
        return MissingFileError(f"no such file: {label}")
    if number == errno.ELOOP:
        return moved_error(label)
    message = _MESSAGES.get(number)
    if message is None:
        reason = explain_descriptor_limit(error) or os.strerror(number).lower()
        return WorkspaceError(f"{label} cannot be {action}: {reason}")
    advice = _ADVICE.get(number, "")
    return WorkspaceError(message.format(label=label, action=action), advice=advice)


def file_kind(path: Path) -> Literal["file", "folder", "other"] | None:
    """Return the kind of a resolved path; None if it does not exist or cannot be read."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return None
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) else "other"


def moved_error(label: str) -> WorkspaceError:
    """Return the error for a path that leads to another place than when it was checked."""
    return WorkspaceError(
        f"{label} leads to another place than a moment ago (a symbolic link?)",
        advice="look at it again, then try again",
    )


def too_large_error(label: str, size: int, limit: int) -> WorkspaceError:
    """Return the error for a file over a limit; both numbers are in bytes."""
    return WorkspaceError(
        f"{label} is too large: {size:,} bytes, the limit is {limit:,}",
        advice="use `grep`, or `shell` with head, tail or sed, for the part that you need",
    )


def _require_regular(status: os.stat_result, label: str, limit: int) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise explain(IsADirectoryError(errno.EISDIR, ""), label, "read")
    if stat.S_ISLNK(status.st_mode):
        raise moved_error(label)
    if not stat.S_ISREG(status.st_mode):
        raise WorkspaceError(
            f"{label} is not a regular file but a pipe, a socket or a device; it cannot be read"
        )
    if status.st_size > limit:
        raise too_large_error(label, status.st_size, limit)


async def read_regular(path: Path, *, limit: int, label: str) -> bytes:
    """Return the content of a regular file, read in a thread.

    Only a regular file of at most `limit` bytes is ever opened.

    Raises:
        MissingFileError: there is no such file.
        WorkspaceError: it is not a regular file, is over the limit, or cannot be read.
    """
    import aiofiles  # noqa: PLC0415 - takes 13 ms, which session start must not pay

    def open_regular(_: str, flags: int) -> int:
        with opened_folder(path.parent) as folder:
            status = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
            _require_regular(status, label, limit)  # opening a device may have effects
            descriptor = open_in_folder(path.name, flags, folder)
        try:
            _require_regular(os.fstat(descriptor), label, limit)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    try:
        async with aiofiles.open(str(path), "rb", opener=open_regular) as file:
            data = await file.read(limit + 1)
    except OSError as error:
        raise explain(error, label, "read") from error
    if len(data) > limit:  # it grew, or its size was unknown (as in /proc)
        raise too_large_error(label, len(data), limit)
    return data


def make_parents(path: Path, *, label: str) -> None:
    """Create the missing parent folders of `path`."""
    with _parent(path, label):
        pass


def replace_file(path: Path, data: bytes, *, label: str) -> None:
    """Create or replace a file atomically.

    Blocks: call it in a thread. An existing file keeps its mode. A file that is not writable is
    refused, although its folder would permit replacing it.

    Raises:
        WorkspaceError: the file cannot be written; nothing has changed.
    """
    with _parent(path, label) as folder:
        try:
            _replace(folder, path.name, data, _mode_of_target(folder, path.name, label))
        except OSError as error:
            raise explain(error, label, "written") from error


def delete_file(path: Path, *, label: str) -> None:
    """Delete a file that may be replaced.

    Blocks: call it in a thread.

    Raises:
        WorkspaceError: the file cannot be deleted; nothing has changed.
    """
    with _parent(path, label) as folder:
        try:
            if _mode_of_target(folder, path.name, label) is None:
                raise MissingFileError(f"no such file: {label}")
            os.unlink(path.name, dir_fd=folder)
        except OSError as error:
            raise explain(error, label, "deleted") from error


def rename_file(path: Path, new_path: Path, *, label: str, new_label: str) -> None:
    """Rename a file that may be replaced to a path at which there is none.

    Blocks: call it in a thread.

    Raises:
        WorkspaceError: the file cannot be renamed; nothing has changed.
    """
    with _parent(path, label) as folder, _parent(new_path, new_label) as new_folder:
        try:
            if _mode_of_target(folder, path.name, label) is None:
                raise MissingFileError(f"no such file: {label}")
            if _mode_of_target(new_folder, new_path.name, new_label) is not None:
                raise WorkspaceError(f"{new_label} exists already")
            os.rename(path.name, new_path.name, src_dir_fd=folder, dst_dir_fd=new_folder)
        except OSError as error:
            raise explain(error, label, "renamed") from error


@contextlib.contextmanager
def _parent(path: Path, label: str) -> Iterator[int]:
    """Open the parent folder of `path`, creating it if it is missing."""
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(opened_folder(path.parent, make=True))
        except NotADirectoryError as error:
            raise WorkspaceError(f"{label} cannot be written: a file is in its way") from error
        except OSError as error:
            raise explain(error, label, "written") from error
        yield folder


def _replace(folder: int, name: str, data: bytes, mode: int | None) -> None:
    temporary = f".acp-agent-{os.urandom(8).hex()}.tmp"
    try:
        descriptor = open_in_folder(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, folder)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None:
                os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with contextlib.suppress(FileNotFoundError):  # already renamed
            os.unlink(temporary, dir_fd=folder)


def _mode_of_target(folder: int, name: str, label: str) -> int | None:
    """Return the mode of the file to be replaced, or None if it does not exist.

    Raises:
        WorkspaceError: the existing entry cannot be replaced.
    """
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise WorkspaceError(f"{label} is a folder", advice="choose a name for a file in it")
    if stat.S_ISLNK(status.st_mode):
        raise moved_error(label)
    if not stat.S_ISREG(status.st_mode):
        raise WorkspaceError(f"{label} is not a regular file; it cannot be written")
    try:
        os.close(open_in_folder(name, os.O_WRONLY, folder))
    except PermissionError as error:
        raise WorkspaceError(
            f"{label} cannot be written: it is read-only", advice="ask the user"
        ) from error
    return stat.S_IMODE(status.st_mode)


class TextFile(Struct, frozen=True, kw_only=True):
    """A text file that was read. `text` has the original line endings and no byte order mark.

    `digest` is the SHA-256 of the text with LF line endings, so that it is the same on disk and
    in an editor that hides CRLF. `newline` is CRLF if every line ends with it, else LF.
    `encoding` is `utf-8`, or `utf-8-sig` if the file has a byte order mark. Pass `newline` and
    `encoding` to `write_text` to preserve them.
    """

    path: str
    text: str
    digest: str
    newline: str = "\n"
    encoding: str = "utf-8"


def is_utf8(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8; a lone surrogate cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def with_lf(text: str) -> str:
    """Return `text` with each CRLF replaced by LF."""
    return text.replace("\r\n", "\n") if "\r" in text else text


def with_newline(text: str, newline: str) -> str:
    """Return `text` with all line endings as `newline`; if that is LF, the text is unchanged."""
    return with_lf(text).replace("\n", newline) if newline == "\r\n" else text


def text_digest(text: str) -> str:
    """Return the SHA-256, in hex, of the text with LF line endings."""
    return hashlib.sha256(with_lf(text).encode("utf-8", "surrogatepass")).hexdigest()


def text_file(path: Path, text: str) -> TextFile:
    """Return a `TextFile` for the text of a file, which may start with a byte order mark."""
    has_mark = text.startswith(BYTE_ORDER_MARK)
    text = text.removeprefix(BYTE_ORDER_MARK)
    crlf = text.count("\r\n")
    return TextFile(
        path=str(path),
        text=text,
        digest=text_digest(text),
        newline="\r\n" if crlf and crlf == text.count("\n") else "\n",
        encoding="utf-8-sig" if has_mark else "utf-8",
    )


def decode(path: Path, data: bytes, *, label: str) -> TextFile:
    """Return a file's bytes as a text file.

    Raises:
        WorkspaceError: they are binary, or text that is not UTF-8.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise WorkspaceError(
            f"{label} is UTF-16 text; only UTF-8 can be read",
            advice="convert it, with iconv for instance",
        )
    if b"\0" in data:
        raise WorkspaceError(
            f"{label} is a binary file, {len(data):,} bytes",
            advice="look at it with a `shell` command that understands its format",
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise WorkspaceError(
            f"{label} is not valid UTF-8 (byte 0x{data[error.start]:02x} in line {line})",
            advice="convert it first, with iconv for instance",
        ) from error
    return text_file(path, text)


def encode(text: str, *, newline: str, encoding: str) -> bytes:
    """Return the bytes of a text file.

    Raises:
        WorkspaceError: the text has a lone surrogate, which UTF-8 cannot encode.
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
    """Return a path for display, on one line: relative to `cwd` if it lies below it."""
    path = Path(path)
    if path.is_relative_to(cwd):
        path = path.relative_to(cwd)
    return display_name(path.as_posix())


def display_name(name: str) -> str:
    """Return a file's name with line breaks and other control characters escaped as in Python.

    Bytes that are not UTF-8 become U+FFFD.
    """
    name = os.fsencode(name).decode("utf-8", "replace") if not name.isascii() else name
    if name.isprintable():
        return name
    escaped = (c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in name)
    return "".join(escaped)
