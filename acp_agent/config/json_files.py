"""Read JSON with comments, explain its syntax errors, and find the line of a value."""

from __future__ import annotations

import json
import re

from acp_agent.errors import ConfigError, InvalidInputError

_MAX_BYTES = 4 * 1024 * 1024  # bytes; typical settings have some thousands
_COMMENTS = re.compile(rb'"(?:[^"\\\n]|\\.)*"|//[^\r\n]*|/\*[\s\S]*?\*/')
_COMMAS = re.compile(rb'"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])')


def read_json(text: bytes) -> object:
    """Return the value of a text, or None if it has only comments and whitespace.

    Raises:
        InvalidInputError: it is not JSON with comments; the message says where.
    """
    bare = remove_comments(text.removeprefix(b"\xef\xbb\xbf"))
    return decode_json(remove_trailing_commas(bare)) if bare.strip() else None


def remove_comments(text: bytes) -> bytes:
    """Return the text with comments replaced by blanks, so that positions stay the same.

    Raises:
        InvalidInputError: it is too long, or not UTF-8.
    """
    if len(text) > _MAX_BYTES:
        raise InvalidInputError(f"it is too large for a settings file ({len(text)} bytes)")
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"it is not UTF-8 (byte {error.start + 1})") from None
    return _COMMENTS.sub(
        lambda match: _blank_comment(match) if match[0][:1] == b"/" else match[0], text
    )


def remove_trailing_commas(bare: bytes) -> bytes:
    """Return a text without comments, with trailing commas replaced by blanks."""
    return _COMMAS.sub(lambda match: b" " if _is_trailing(match) else match[0], bare)


def decode_json(plain: bytes) -> object:
    """Return the value of plain JSON in UTF-8. Raises InvalidInputError if it is not JSON."""
    try:
        return json.loads(plain.decode(), parse_constant=_reject_constant)
    except json.JSONDecodeError as error:
        reason = f"line {error.lineno}, column {error.colno}: {error.msg.lower()}"
        raise InvalidInputError(f"it cannot be read as JSON with comments ({reason})") from None
    except ValueError:  # raised by `int`
        reason = "a number has more digits than can be read"
        raise InvalidInputError(f"it cannot be read as JSON with comments ({reason})") from None
    except RecursionError:
        raise InvalidInputError("it is nested too deeply") from None


def _reject_constant(name: str) -> object:
    """Reject `NaN` and the infinities, which Python's parser accepts and JSON does not."""
    raise InvalidInputError(f"it cannot be read as JSON with comments ({name} is no value)")


def _blank_comment(match: re.Match[bytes]) -> bytes:
    """Return blanks for a comment; line breaks remain, so that positions stay the same."""
    return re.sub(rb"[^\r\n]", b" ", match[0])


def _is_trailing(match: re.Match[bytes]) -> bool:
    """Return whether a match is the comma after the last value of an object or array."""
    if match[0] != b",":
        return False
    before = match.start() - 1
    while before >= 0 and match.string[before : before + 1].isspace():
        before -= 1
    return match.string[before : before + 1] not in (b"{", b"[", b",", b"")


def explain_json(raw: bytes) -> ConfigError:
    """Return an error that says why a text is not valid JSON and how to fix it.

    Args:
        raw: the text as stored in the file.
    """
    try:
        json.loads(raw.decode())
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        return ConfigError(f"line {line} is not UTF-8 text; save the file as UTF-8")
    except json.JSONDecodeError as error:
        if raw.startswith(b"\xef\xbb\xbf"):
            return ConfigError("line 1 begins with a byte order mark; save the file without it")
        return ConfigError(f"line {error.lineno} is not JSON ({error.msg}); fix the line")
    except RecursionError:
        return ConfigError("it is nested too deeply; make it flat")
    except ValueError:  # raised by `int`
        return ConfigError("a number has more digits than can be read; shorten it")
    return ConfigError("it is not JSON; NaN, Infinity and halves of characters are none")


def member_line(text: str, path: tuple[str, ...], *, value: str | None = None) -> int:
    """Return the line, from 1, of a member of a JSON document, or of its last parent found.

    Args:
        value: a text inside the member; its line is returned instead.
    """
    offset = 0
    for key in path:
        member = re.compile(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:")
        match = member.search(text, offset)
        if match is None:
            break
        offset = match.start()
    if value is not None:
        offset = max(offset, text.find(json.dumps(value, ensure_ascii=False), offset))
    return text.count("\n", 0, offset) + 1
