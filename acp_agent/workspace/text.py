"""Text files: what bytes are text, in which line endings, and when two texts are the same."""

from __future__ import annotations

import codecs
import hashlib
from pathlib import Path

from msgspec import Struct

from acp_agent.errors import WorkspaceError

BYTE_ORDER_MARK = "\ufeff"


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
    """`text` with `newline` (LF or CRLF) at the end of each line; LF leaves it as it is."""
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
