"""Read the JSON of a call's arguments, also if it is slightly wrong but unambiguous.

What models write instead of JSON: literals and quotes of Python, keys without quotes, trailing
commas, comments, line breaks within strings, regular expressions with single backslashes, a code
fence around the object, text after it, an object within a string, XML elements. Text that was cut
off is never completed, and where two readings are possible none is taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from acp_agent.content import JsonObject
from acp_agent.tools.calls.argument_elements import read_elements

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

_MAX_DEPTH: Final = 64  # levels of nesting; a call with more is a mistake
_FENCE = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)
_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_LITERAL = re.compile(r"(true|false|null|True|False|None)\b")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])")
_KEY = re.compile(r"[A-Za-z_$][\w$-]*")
_STRING_PIECES = {
    '"': re.compile(r'[^"\\]+|\\u[0-9a-fA-F]{4}|\\.|"', re.DOTALL),
    "'": re.compile(r"[^'\\]+|\\u[0-9a-fA-F]{4}|\\.|'", re.DOTALL),
}
_LITERAL_VALUES = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
}
_ESCAPES = set('"\\/bfnrtu')
# After a single backslash these mean the backslash too, as in `\d` and `\.` of a pattern. Quotes,
# `$` and a backtick may have been escaped for another language, and `\x` may be a character.
_LITERAL_BACKSLASH = re.compile(r"[AC-EG-MO-QSUVWYZacdghijklmopqsvwyz1-9.()\[\]{}+*?|^\-<> \n]")
_HEXADECIMAL = re.compile(r"\\x[0-9a-fA-F]{2}")


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
        stripped = text.lstrip("\ufeff").strip()
        if '"' not in stripped:  # the quotation marks of a text
            stripped = re.sub("[\u201c\u201d]", '"', stripped)
        fenced = _FENCE.fullmatch(stripped)
        if stripped.startswith("<") and (elements := read_elements(stripped)):
            return elements
        try:
            return _Reader(fenced[1] if fenced else stripped).read()
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
        self._position = 0
        self._quotes: set[str] = set()

    def read(self) -> Json:
        """Return the value.

        Raises:
            _UnclearError: the text ends before it, or may mean something else.
        """
        if self._text.startswith(("{}{", "{} {")):  # an object that began empty, and the whole one
            self._position = 2
        value = self._value(_MAX_DEPTH)
        end = self._position
        trailing_text = self._text[end:].strip()
        # A quote or a brace may mean that a string within the value was not escaped, or that this
        # was more than one call.
        marks = "{\"'" if "'" in self._quotes else '{"'
        if (
            any(mark in trailing_text for mark in marks)
            and trailing_text != self._text[:end].strip()
        ):
            raise _UnclearError(f"more follows the object: {trailing_text[:60]!r}")
        return value

    def _value(self, depth: int) -> Json:
        self._skip_blank()
        match self._text[self._position : self._position + 1]:
            case "{" if depth:
                return self._object(depth - 1)
            case "[" if depth:
                return self._array(depth - 1)
            case '"' | "'":
                return self._string()
        if token := self._take(_LITERAL):
            return _LITERAL_VALUES[token]
        if token := self._take(_NUMBER):
            return msgspec.json.decode(token, type=int | float)
        raise self._failure()

    def _object(self, depth: int) -> dict[str, Json]:
        values: dict[str, Json] = {}
        self._position += 1
        while not self._take_bracket("}"):
            key = self._string() if self._text[self._position] in "\"'" else self._take(_KEY)
            self._skip_blank()
            if key is None or not self._text.startswith(":", self._position):
                raise self._failure()
            self._position += 1
            value = self._value(depth)
            if values.setdefault(key, value) != value:
                raise _UnclearError(f"{key!r} is given twice, with different values")
            self._end_item("}")
        return values

    def _array(self, depth: int) -> list[Json]:
        values: list[Json] = []
        self._position += 1
        while not self._take_bracket("]"):
            values.append(self._value(depth))
            self._end_item("]")
        return values

    def _take_bracket(self, bracket: str) -> bool:
        self._skip_blank()
        if self._position >= len(self._text):
            raise self._failure()
        closes = self._text[self._position] == bracket
        self._position += closes
        return closes

    def _end_item(self, bracket: str) -> None:
        self._skip_blank()
        if self._text.startswith(",", self._position):
            self._position += 1
        elif not self._text.startswith(bracket, self._position):
            raise self._failure()

    def _string(self) -> str:
        quote = self._text[self._position]
        self._quotes.add(quote)
        self._position += 1
        pieces: list[str] = []
        while (piece := self._take(_STRING_PIECES[quote])) != quote:
            if piece is None:
                raise self._failure()
            pieces.append(piece)
        return _unescape_pieces(pieces, quote)

    def _take(self, pattern: re.Pattern[str]) -> str | None:
        match = pattern.match(self._text, self._position)
        if match is None:
            return None
        self._position = match.end()
        return match[0]

    def _skip_blank(self) -> None:
        self._take(_BLANK)

    def _failure(self) -> _UnclearError:
        ended = self._position >= len(self._text)
        return _UnclearError("the text ends before the object does" if ended else "")


def _unescape_pieces(pieces: list[str], quote: str) -> str:
    """Return the text of a string's pieces, each an escape or text without a backslash."""
    escaped = [piece[1] for piece in pieces if piece.startswith("\\")]
    nonstandard = [char for char in escaped if char not in _ESCAPES and char != quote]
    # `\x` without digits is no character of any language.
    unclear = [char for char in nonstandard if not _LITERAL_BACKSLASH.fullmatch(char)]
    if set(unclear) == {"x"} and not _HEXADECIMAL.search("".join(pieces)):
        unclear = []
    if nonstandard:
        # Beside an escape that is one, such as the `\n` of `C:\docs\new`, nothing is certain.
        has_standard_escape = any(char in _ESCAPES and char != '"' for char in escaped)
        if quote == "'" or has_standard_escape or unclear:
            raise _UnclearError(f"\\{nonstandard[0]} is not an escape; write \\\\ for a backslash")
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
