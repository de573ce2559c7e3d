"""Read the JSON of a call's arguments, also if it is slightly wrong but unambiguous.

What models write instead of JSON: literals and quotes of Python, keys without quotes, trailing
commas, comments, line breaks within strings, regular expressions with single backslashes, a code
fence around the object, text after it, an object within a string. Text that was cut off is never
completed, and where two readings are possible none is taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from acp_agent.content import JsonObject

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

_DEPTH: Final = 64  # levels of nesting; a call with more is a mistake
_FENCE = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)
_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_LITERAL = re.compile(r"(true|false|null|True|False|None)\b")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])")
_KEY = re.compile(r"[A-Za-z_$][\w$-]*")
_PIECE = {
    '"': re.compile(r'[^"\\]+|\\u[0-9a-fA-F]{4}|\\.|"', re.DOTALL),
    "'": re.compile(r"[^'\\]+|\\u[0-9a-fA-F]{4}|\\.|'", re.DOTALL),
}
_VALUES = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_ESCAPES = set('"\\/bfnrtu')
# After a single backslash these mean the backslash too, as in `\d` and `\.` of a pattern. Quotes,
# `$` and a backtick may have been escaped for another language, and `\x` may be a character.
_KEPT = re.compile(r"[AC-EG-MO-QSUVWYZacdghijklmopqsvwyz1-9.()\[\]{}+*?|^\-<> \n]")


def read_arguments(text: str) -> JsonObject:
    """Return a call's arguments; an empty text has none.

    Raises:
        ValueError: they are no JSON object, and not certainly meant as one; the message says why.
    """
    if not text.strip():
        return {}
    value = read_json(text)
    if isinstance(value, str) and "{" in value:  # encoded twice
        value = read_json(value)
    if isinstance(value, dict):
        return value
    raise NotAnObjectError(value)


class NotAnObjectError(ValueError):
    """Arguments that are a JSON value of another kind: `value`."""

    def __init__(self, value: object) -> None:
        super().__init__("not a JSON object")
        self.value = value


def read_json(text: str) -> object:
    """Return a JSON value that is written in these ways; raises ValueError as `read_arguments`."""
    try:
        msgspec.json.decode(text)
        return json.loads(text, object_pairs_hook=_without_contradiction)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        bare = text.lstrip("\ufeff").strip()
        fenced = _FENCE.fullmatch(bare)
        try:
            return _Reader(fenced[1] if fenced else bare).read()
        except _UnclearError as unclear:
            raise ValueError(str(unclear) or str(error)) from error


def _without_contradiction(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    values: dict[str, object] = {}
    for key, value in pairs:
        if values.setdefault(key, value) != value:
            raise ValueError(f"{key!r} is given twice, with different values")
    return values


class _UnclearError(Exception):
    """The text is not certainly one value; the message, if any, says what the model can change."""


class _Reader:
    """Reads one value of a text that is nearly JSON."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._quotes: set[str] = set()

    def read(self) -> Json:
        """Return the value.

        Raises:
            _UnclearError: the text ends before it, or may mean something else.
        """
        value = self._value(_DEPTH)
        end = self._at
        rest = self._text[end:].strip()
        # A quote or a brace may mean that a string within the value was not escaped, or that this
        # was more than one call.
        marks = "{\"'" if "'" in self._quotes else '{"'
        if any(mark in rest for mark in marks) and rest != self._text[:end].strip():
            raise _UnclearError(f"more follows the object: {rest[:60]!r}")
        return value

    def _value(self, depth: int) -> Json:
        self._skip_blank()
        match self._text[self._at : self._at + 1]:
            case "{" if depth:
                return self._object(depth - 1)
            case "[" if depth:
                return self._array(depth - 1)
            case '"' | "'":
                return self._string()
        if found := self._take(_LITERAL):
            return _VALUES[found]
        if found := self._take(_NUMBER):
            return msgspec.json.decode(found, type=int | float)
        raise self._failure()

    def _object(self, depth: int) -> dict[str, Json]:
        values: dict[str, Json] = {}
        self._at += 1
        while not self._closes("}"):
            key = self._string() if self._text[self._at] in "\"'" else self._take(_KEY)
            self._skip_blank()
            if key is None or not self._text.startswith(":", self._at):
                raise self._failure()
            self._at += 1
            value = self._value(depth)
            if values.setdefault(key, value) != value:
                raise _UnclearError(f"{key!r} is given twice, with different values")
            self._end_item("}")
        return values

    def _array(self, depth: int) -> list[Json]:
        values: list[Json] = []
        self._at += 1
        while not self._closes("]"):
            values.append(self._value(depth))
            self._end_item("]")
        return values

    def _closes(self, bracket: str) -> bool:
        self._skip_blank()
        if self._at >= len(self._text):
            raise self._failure()
        closes = self._text[self._at] == bracket
        self._at += closes
        return closes

    def _end_item(self, bracket: str) -> None:
        self._skip_blank()
        if self._text.startswith(",", self._at):
            self._at += 1
        elif not self._text.startswith(bracket, self._at):
            raise self._failure()

    def _string(self) -> str:
        quote = self._text[self._at]
        self._quotes.add(quote)
        self._at += 1
        pieces: list[str] = []
        while (piece := self._take(_PIECE[quote])) != quote:
            if piece is None:
                raise self._failure()
            pieces.append(piece)
        return _unescaped(pieces, quote)

    def _take(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        return found[0]

    def _skip_blank(self) -> None:
        self._take(_BLANK)

    def _failure(self) -> _UnclearError:
        ended = self._at >= len(self._text)
        return _UnclearError("the text ends before the object does" if ended else "")


def _unescaped(pieces: list[str], quote: str) -> str:
    """Return the text of a string's pieces, each an escape or text without a backslash."""
    escaped = [piece[1] for piece in pieces if piece.startswith("\\")]
    strange = [char for char in escaped if char not in _ESCAPES and char != quote]
    if strange:
        # Beside an escape that is one, such as the `\n` of `C:\docs\new`, nothing is certain.
        others = any(char in _ESCAPES and char != '"' for char in escaped)
        if quote == "'" or others or not all(map(_KEPT.fullmatch, strange)):
            raise _UnclearError(f"\\{strange[0]} is not an escape; write \\\\ for a backslash")
    try:
        text: str = msgspec.json.decode(f'"{"".join(map(_as_json, pieces))}"')
    except msgspec.DecodeError as error:  # such as `\u` without its digits
        raise _UnclearError(str(error)) from error
    return text


def _as_json(piece: str) -> str:
    if not piece.startswith("\\"):
        return msgspec.json.encode(piece)[1:-1].decode()
    if piece[1] in _ESCAPES:
        return piece
    return "'" if piece[1] == "'" else msgspec.json.encode(piece)[1:-1].decode()
