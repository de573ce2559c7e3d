"""Fold the characters that editors and models write in several ways into one form.

A line is its indentation, units, and white space at its end. A unit is a character as it is
written (an entity, a letter with its accents, a run of spaces) with the form that it is compared
by. Lines with the same forms have the same number of units, so that each unit of one has its
counterpart in the other.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

Kind = Literal["spaces", "unicode", "quotes", "dashes", "dots", "entities", "tabs"]

_SPACES = " \t\f\v\xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
_INVISIBLE = "\xad\u200b\u2060\ufeff"
_FORMS = {
    "'": "\u2018\u2019\u201a\u201b\u2032\u02bc",
    '"': "\u201c\u201d\u201e\u201f\u2033",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
}
FORMS = {ord(char): form for form, chars in _FORMS.items() for char in chars}
_ENTITY = r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,31});"
_UNIT = re.compile(
    rf"(?P<space>(?:[{_SPACES}]|&nbsp;|&#160;|&#[xX][aA]0;)+)|(?P<invisible>[{_INVISIBLE}]+)"
    rf"|(?P<entity>{_ENTITY})|\.\.\.|.",
    re.DOTALL,
)
_LINE = re.compile(rf"([{_SPACES}]*)(.*?)[{_SPACES}]*", re.DOTALL)
_RUN = re.compile(rf"[{_SPACES}]+")
_MAX_UNIT_LENGTH = 32  # characters; a letter with more accents is several units
_SPECIAL = re.compile(rf"[{_INVISIBLE}{''.join(_FORMS.values())}]|\.\.\.|{_ENTITY}")


class Unit(NamedTuple):
    """A character as it is written, and the form by which it is compared."""

    raw: str
    form: str


class Line(NamedTuple):
    """A line in its parts."""

    indent: str
    units: tuple[Unit, ...]
    trailing: str

    @property
    def form(self) -> str:
        """The folded text, without white space at its ends."""
        return "".join(unit.form for unit in self.units)


def parse(text: str) -> Line:
    """Parse a line, or a part of one. White space alone counts as its end."""
    match = _LINE.fullmatch(text)
    assert match is not None
    indent, body = match.groups()
    if not body:
        return Line("", (), text)
    return Line(indent, _units(body), text[len(indent) + len(body) :])


def plain_spaces(indent: str) -> str:
    """Return an indentation with spaces for everything but spaces and tabs."""
    return indent if indent.isascii() else re.sub(r"[^ \t]", " ", indent)


def without_invisible(text: str) -> str:
    """Return a text without invisible characters."""
    return text if text.isascii() else re.sub(f"[{_INVISIBLE}]", "", text)


def fold(text: str) -> str:
    """Return `parse(text).form`, faster."""
    text = text.strip(" \t\r\f\v") if text.isascii() else text
    if _is_plain(text):
        return _RUN.sub(" ", text).strip()
    if _SPECIAL.search(text) is None and unicodedata.is_normalized("NFC", text):
        return _RUN.sub(" ", text).strip(" ")
    return parse(text).form


class LineForms(dict[str, str]):
    """The folded lines of texts: each line is folded once."""

    def __missing__(self, line: str) -> str:
        """Fold a line."""
        form = self[line] = fold(line)
        return form


def compact(form: str) -> str:
    """Return folded lines without spaces, with one kind of quotation marks."""
    return form.replace(" ", "").replace('"', "'")


def find_lines(lines: Sequence[str], target: Sequence[str]) -> Iterator[int]:
    """Yield each index where the target begins, in time that does not grow with its length.

    The lines can be any texts without line feeds.
    """
    text, key = ("\n".join(["", *items, ""]) for items in (lines, target))
    index = counted = 0
    position = text.find(key)
    while position >= 0:
        index += text.count("\n", counted, position)
        counted = position
        yield index
        position = text.find(key, position + 1)


def _is_plain(text: str) -> bool:
    return text.isascii() and "&" not in text and "..." not in text


def _units(body: str) -> tuple[Unit, ...]:
    if _is_plain(body):
        return tuple(Unit(piece, " " if piece[0] in " \t\f\v" else piece) for piece in _ascii(body))
    units: list[Unit] = []
    hidden = ""
    for match in _UNIT.finditer(body):
        raw = match.group()
        if match["invisible"]:
            if units:
                units[-1] = Unit(units[-1].raw + raw, units[-1].form)
            else:
                hidden += raw
            continue
        if match["space"]:
            new = [Unit(raw, " ")]
        elif match["entity"]:
            char = html.unescape(raw)
            is_single = len(char) == 1 and char.isprintable()
            new = [Unit(raw, _form(char))] if is_single else [Unit(piece, piece) for piece in raw]
        else:
            new = [Unit(raw, _form(raw))]
            if units and not raw.isascii() and len(units[-1].raw) < _MAX_UNIT_LENGTH:
                joined = unicodedata.normalize("NFC", units[-1].raw + raw)
                if unicodedata.combining(raw) or len(joined) == 1:
                    new = [Unit(units.pop().raw + raw, joined)]
        if hidden:
            new[0], hidden = Unit(hidden + new[0].raw, new[0].form), ""
        units.extend(new)
    return tuple(units)


_ASCII = re.compile(r"[ \t\f\v]+|.", re.DOTALL)


def _ascii(body: str) -> list[str]:
    return _ASCII.findall(body)


def _form(char: str) -> str:
    if char.isascii() and char != "...":
        return char
    return "\u2026" if char == "..." else unicodedata.normalize("NFC", char).translate(FORMS)


def is_entity(raw: str) -> bool:
    """Return whether a unit is written as an entity."""
    return len(raw) > 3 and raw[0] == "&" and raw[-1] == ";"


def difference(first: Unit, second: Unit) -> Kind | None:
    """Return how two units of the same form differ.

    Raises:
        ValueError: in more than how they are written: runs of another number of spaces.
    """
    if first.raw == second.raw:
        return None
    if first.form == " ":
        if "\t" in first.raw or "\t" in second.raw:
            return "tabs"
        if len(html.unescape(first.raw)) != len(html.unescape(second.raw)):
            raise ValueError
        return "spaces"
    if is_entity(first.raw) or is_entity(second.raw):
        return "entities"
    if first.form in "'\"":
        return "quotes"
    if first.form == "\u2026":
        return "dots"
    return "dashes" if first.form == "-" else "unicode"
