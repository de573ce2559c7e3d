"""Find keys by their format; `secret_formats.toml` lists the formats."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterable
from importlib.resources import files as package_files

from msgspec import Struct

from acp_agent.workspace.known_secrets import Hit, Span

_LEAST_MARK = 3  # characters of a mark that is specific enough to identify a key
# A key may follow any character that is not a letter or digit, and also these escapes: that of a
# line break in JSON, and that of a character in a URL.
_ESCAPE = re.compile(r"(?:\\[nrt]|\\u00[0-9a-fA-F]{2}|%[0-9A-Fa-f]{2})\Z")
_LONGEST_ESCAPE = 6
_START = r"(?:(?<![0-9A-Za-z])|(?<=\\[nrt]))"  # the same as a regular expression


class _Pattern(Struct, frozen=True):
    mark: str
    pattern: re.Pattern[str]


class _Formats(Struct, frozen=True):
    """The table of formats: keys with a fixed prefix, and patterns for all others.

    Attributes:
        begins: the prefixes.
        rests: for each prefix, the pattern of the rest.
        patterns: patterns to search in texts that contain their mark; "" is in every text.
    """

    begins: tuple[str, ...]
    rests: tuple[re.Pattern[str], ...]
    patterns: tuple[_Pattern, ...]


def strings() -> tuple[str, ...]:
    """Return the strings to search for in a text: prefixes, then marks."""
    formats = _formats()
    return (*formats.begins, *(one.mark for one in formats.patterns))


def spans(text: str, hits: Iterable[Hit]) -> list[Span]:
    """Return the spans of keys with a known format in `text`.

    Args:
        text: the text.
        hits: the places of `strings` in it.
    """
    formats = _formats()
    found: list[Span] = []
    marks: set[int] = set()
    for number, start, end in hits:
        if number >= len(formats.begins):
            marks.add(number - len(formats.begins))
        elif _may_begin_at(text, start, formats.begins[number]):
            rest = formats.rests[number].match(text, end)
            if rest is not None:
                found.append((start, rest.end()))
    for number, one in enumerate(formats.patterns):
        if number in marks or not one.mark:
            found += (_span(match) for match in one.pattern.finditer(text))
    return found


def may_begin(word: str) -> bool:
    """Return whether a word contains the prefix of a key, or ends with a part of one."""
    begins = [begin for begin in _formats().begins if len(begin) >= _LEAST_MARK]
    return any(
        begin in word or any(word.endswith(begin[:end]) for end in range(2, len(begin)))
        for begin in begins
    )


def _may_begin_at(text: str, start: int, begin: str) -> bool:
    """Return whether a key may begin here: not in the middle of a word or of base64."""
    before = text[start - 1 : start]
    if _is_alnum(before):
        return _ESCAPE.search(text, max(0, start - _LONGEST_ESCAPE), start) is not None
    in_base64 = before in ("+", "/") and _is_alnum(text[start - 2 : start - 1])
    return before != "_" and not (in_base64 and begin.isalnum())


def _is_alnum(sign: str) -> bool:
    return sign.isascii() and sign.isalnum()


def _span(match: re.Match[str]) -> Span:
    """Return the part of a match that is secret."""
    named = match.re.groupindex
    if "secret" in named:
        return match.span("secret")
    return match.start("head") if "head" in named else match.start(), match.end()


@functools.cache
def _formats() -> _Formats:
    table = tomllib.loads((package_files(__package__) / "secret_formats.toml").read_text("utf-8"))
    begins = [(one, re.compile(rest)) for rest, all_ in table["begins"].items() for one in all_]
    patterns = [
        _Pattern(mark, re.compile(entry["pattern"].replace("{start}", _START)))
        for entry in table["pattern"]
        for mark in entry.get("marks", ("",))
    ]
    return _Formats(
        begins=tuple(begin for begin, _ in begins),
        rests=tuple(rest for _, rest in begins),
        patterns=tuple(patterns),
    )
