"""The members of a JSON object whose text is too long to keep, found as the text goes by.

Only the values of a few members are kept, each up to a limit, so the memory has a bound whatever
the text is. The text need not be well-formed: nothing is promised about it then.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Final

_UNKNOWN: Final = b"null"  # in place of a longer value

_QUOTE, _COLON, _COMMA = b'":,'
_OPENING, _CLOSING = b"{[", b"}]"
_BLANK = b" \t\r\n"


class MemberScanner:
    """Reads the text of one object, in pieces of any size.

    Args:
        limit: bytes that a name or a value may have to be kept.
    """

    def __init__(self, names: Collection[str], *, limit: int = 1024) -> None:
        self._names = names
        self._limit = limit
        self._members: dict[str, bytes] = {}
        self._depth = 0
        self._in_string = False
        self._escaped = False  # the last piece ended with the backslash of an escape
        self._name: bytes | None = None  # of the member whose value is being read
        self._token = bytearray()  # what came of a name or a value

    @property
    def members(self) -> Mapping[str, bytes]:
        """The wanted members so far, by name, as JSON; null for objects, arrays and long values."""
        return self._members

    def feed(self, piece: bytes) -> None:
        """Read the next piece."""
        at = 0
        while at < len(piece):
            at = (
                self._read_string(piece, at) if self._in_string else self._read_structure(piece, at)
            )

    def _read_string(self, piece: bytes, start: int) -> int:
        """Read a string up to its closing quote, or the end of the piece."""
        at = start + 1 if self._escaped else start
        while True:
            quote = piece.find(b'"', at)
            text = piece[at:] if quote < 0 else piece[at:quote]
            self._escaped = (len(text) - len(text.rstrip(b"\\"))) % 2 == 1
            if quote < 0 or not self._escaped:
                break
            at = quote + 1
        end = len(piece) if quote < 0 else quote + 1
        self._in_string = quote < 0
        if self._depth == 1:
            self._append(piece[start:end])
        return end

    def _read_structure(self, piece: bytes, start: int) -> int:
        """Read what is between strings, up to the next string's opening quote."""
        quote = piece.find(b'"', start)
        end = len(piece) if quote < 0 else quote
        part = piece[start:end]
        closed = part.count(b"}") + part.count(b"]")
        if self._depth - closed > 1:  # it cannot get out of the value that is skipped
            self._depth += part.count(b"{") + part.count(b"[") - closed
        else:
            for sign in part:
                self._read_sign(sign)
        if quote < 0:
            return end
        self._in_string = True
        if self._depth == 1:
            self._append(b'"')
        return end + 1

    def _read_sign(self, sign: int) -> None:
        if sign in _OPENING:
            if self._depth == 1:
                self._append(_UNKNOWN)
            self._depth += 1
        elif sign in _CLOSING:
            if self._depth == 1:
                self._end_member()
            self._depth -= 1
        elif self._depth != 1 or sign in _BLANK:
            return
        elif sign == _COLON:
            self._name = bytes(self._token)
            self._token.clear()
        elif sign == _COMMA:
            self._end_member()
        else:
            self._append(bytes((sign,)))

    def _append(self, part: bytes) -> None:
        self._token += part[: self._limit + 1 - len(self._token)]

    def _end_member(self) -> None:
        name = None if self._name is None else _text(self._name)
        if name is not None and name in self._names:
            is_short = len(self._token) <= self._limit
            self._members[name] = bytes(self._token) if is_short else _UNKNOWN
        self._name = None
        self._token.clear()


def _text(token: bytes) -> str | None:
    try:
        value = json.loads(token)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, str) else None
