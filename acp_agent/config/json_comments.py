"""Read JSON with `//` and `/* */` comments and trailing commas, as editors accept it."""

from __future__ import annotations

import json
import re

from acp_agent.errors import InvalidInputError

_LARGEST = 4 * 1024 * 1024  # bytes; typical settings have some thousands
_COMMENTS = re.compile(rb'"(?:[^"\\\n]|\\.)*"|//[^\r\n]*|/\*[\s\S]*?\*/')
_COMMAS = re.compile(rb'"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])')


def read_json(text: bytes) -> object:
    """Return the value of a text, or None if it has only comments and whitespace.

    Raises:
        InvalidInputError: it is not JSON with comments; the message says where.
    """
    bare = without_comments(text.removeprefix(b"\xef\xbb\xbf"))
    return decoded(without_last_commas(bare)) if bare.strip() else None


def without_comments(text: bytes) -> bytes:
    """Return the text with comments replaced by blanks, so that positions stay the same.

    Raises:
        InvalidInputError: it is too long, or not UTF-8.
    """
    if len(text) > _LARGEST:
        raise InvalidInputError(f"it is too large for a settings file ({len(text)} bytes)")
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"it is not UTF-8 (byte {error.start + 1})") from None
    return _COMMENTS.sub(lambda found: _blank(found) if found[0][:1] == b"/" else found[0], text)


def without_last_commas(bare: bytes) -> bytes:
    """Return a text without comments, with trailing commas replaced by blanks."""
    return _COMMAS.sub(lambda found: b" " if _is_last(found) else found[0], bare)


def decoded(plain: bytes) -> object:
    """Return the value of plain JSON in UTF-8.

    Raises:
        InvalidInputError: it is not JSON; the message says where.
    """
    try:
        return json.loads(plain.decode(), parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        reason = f"line {error.lineno}, column {error.colno}: {error.msg.lower()}"
        raise InvalidInputError(f"it cannot be read as JSON with comments ({reason})") from None
    except ValueError:  # raised by `int`
        reason = "a number has more digits than can be read"
        raise InvalidInputError(f"it cannot be read as JSON with comments ({reason})") from None
    except RecursionError:
        raise InvalidInputError("it is nested too deeply") from None


def _no_constant(name: str) -> object:
    """Reject `NaN` and the infinities, which Python's parser accepts and JSON does not."""
    raise InvalidInputError(f"it cannot be read as JSON with comments ({name} is no value)")


def _blank(found: re.Match[bytes]) -> bytes:
    """Return blanks for a comment; line breaks remain, so that positions stay the same."""
    return re.sub(rb"[^\r\n]", b" ", found[0])


def _is_last(found: re.Match[bytes]) -> bool:
    """Return whether a match is the comma after the last value of an object or array."""
    if found[0] != b",":
        return False
    before = found.start() - 1
    while before >= 0 and found.string[before : before + 1].isspace():
        before -= 1
    return found.string[before : before + 1] not in (b"{", b"[", b",", b"")
