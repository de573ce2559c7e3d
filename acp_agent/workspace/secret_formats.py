"""Find keys by their format; `secret_formats.toml` lists the formats."""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from acp_agent.platform.data_tables import read_table
from acp_agent.workspace.encoded_secrets import Span
from acp_agent.workspace.string_search import Hit

_MAX_COMMON = 3  # characters of a prefix that hashes in base64 often contain: `-fw_`
_MIN_BASE64 = 16  # characters before a prefix that show that it is in the middle of base64
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+")
_MIN_MARK = 3  # characters of a mark that is specific enough to identify a key
# A key may follow any character that is not a letter or digit, and also these escapes: that of a
# line break in JSON, and that of a character in a URL.
_ESCAPE = re.compile(r"(?:\\[nrt]|\\u00[0-9a-fA-F]{2}|%[0-9A-Fa-f]{2})\Z")
_MAX_ESCAPE = 6
_ALNUM = frozenset(string.ascii_letters + string.digits)
_START = r"(?:(?<![0-9A-Za-z])|(?<=\\[nrt]))"  # the same as a regular expression


class _Pattern(Struct, frozen=True):
    mark: str
    pattern: re.Pattern[str]


class _Formats(Struct, frozen=True):
    """The table of formats: keys with a fixed prefix, and patterns for all others.

    Attributes:
        patterns: patterns that begin with their mark; those with the mark "" are searched anywhere.
    """

    prefixes: tuple[str, ...]
    remainders: tuple[re.Pattern[str], ...]
    patterns: tuple[_Pattern, ...]


def strings() -> tuple[str, ...]:
    """Return the strings to search for in a text: prefixes, then marks."""
    formats = _formats()
    return (*formats.prefixes, *(pattern.mark for pattern in formats.patterns))


def spans(text: str, hits: Iterable[Hit]) -> list[Span]:
    """Return the spans of keys with a known format in `text`.

    Args:
        hits: the places of `strings` in it.
    """
    formats = _formats()
    result: list[Span] = []
    for number, start, end in hits:
        if number >= len(formats.prefixes):
            match = formats.patterns[number - len(formats.prefixes)].pattern.match(text, start)
            if match is not None:
                result.append(_span(match))
        elif _may_start_at(text, start, formats.prefixes[number]):
            remainder = formats.remainders[number].match(text, end)
            if remainder is not None:
                result.append((start, remainder.end()))
    for unmarked in formats.patterns:
        if not unmarked.mark:
            result += (_span(match) for match in unmarked.pattern.finditer(text))
    return result


def may_start_key(word: str) -> bool:
    """Return whether a word contains the prefix of a key, or ends with a part of one."""
    prefixes = [prefix for prefix in _formats().prefixes if len(prefix) >= _MIN_MARK]
    return any(
        prefix in word or any(word.endswith(prefix[:end]) for end in range(2, len(prefix)))
        for prefix in prefixes
    )


def _may_start_at(text: str, start: int, prefix: str) -> bool:
    """Return whether a key may begin here: not in the middle of a word or of base64."""
    before = text[start - 1 : start]
    if before in _ALNUM:
        preceding = text[max(0, start - _MAX_ESCAPE) : start]
        return ("\\" in preceding or "%" in preceding) and _ESCAPE.search(preceding) is not None
    if before not in {"+", "/", "-", "_"}:
        return True
    # Base64 has no "-" and "_" where it has these.
    if before in {"+", "/"} and not prefix.isalnum():
        return True
    if (
        len(prefix) <= _MAX_COMMON
        and prefix.endswith("_")
        and text[start - 2 : start - 1] in _ALNUM
    ):
        return False
    return not _ends_base64(text[max(0, start - _MIN_BASE64) : start])


def _ends_base64(text: str) -> bool:
    """Return whether a text looks like base64 and not like words joined by `-`, `_` or `/`."""
    return (
        len(text) == _MIN_BASE64
        and _BASE64.fullmatch(text) is not None
        and any(map(str.isdigit, text))
        and any(map(str.islower, text))
        and any(map(str.isupper, text))
    )


def _span(match: re.Match[str]) -> Span:
    """Return the part of a match that is secret."""
    groups = match.re.groupindex
    if "secret" in groups:
        return match.span("secret")
    return match.start("head") if "head" in groups else match.start(), match.end()


@functools.cache
def _formats() -> _Formats:
    table = read_table(__package__, "secret_formats.toml", dict[str, Any])
    prefixes = [
        (prefix, re.compile(remainder))
        for remainder, group in table["begins"].items()
        for prefix in group
    ]
    patterns = [
        _Pattern(mark, re.compile(entry["pattern"].replace("{start}", _START)))
        for entry in table["pattern"]
        for mark in entry.get("marks", ("",))
    ]
    return _Formats(
        prefixes=tuple(prefix for prefix, _ in prefixes),
        remainders=tuple(remainder for _, remainder in prefixes),
        patterns=tuple(patterns),
    )
