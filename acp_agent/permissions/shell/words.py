"""The words of a shell command line, as far as they are known before it runs.

The steps follow the shell's order (POSIX.1-2017, XCU 2.6; Bash manual, "Shell Expansions"): braces,
tilde, parameters and substitutions, field splitting, path names, quote removal.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, get_args

from msgspec import Struct

UNKNOWN = "\0"  # a part of a word that is known only at run time, and may be empty
NONEMPTY = "\1"  # likewise, for a part that the shell ensures is not empty: ${name:?}

LITERAL = "u"  # kinds of characters: unquoted text,
QUOTED = "q"  # quoted or escaped text,
EXPANDED = "x"  # the result of an unquoted expansion, which the shell splits again,
MATCHED = "m"  # and a name matched by a loop's pattern, in quotes; the pattern stands for it

# The origin of the part of a word that is known only at run time, from least to most certain:
# unknown; output of a command of the line, unquoted or quoted; hashes of commits; names of files
# that git tracks, by line or separated by NUL; names of files below a folder; a process
# substitution; a name that a pattern matches, split again or not; the top of git's working tree;
# the current folder; a known value. Valid only for a line in which no command can set variables in
# other ways.
Origin = Literal[
    "", "unquoted", "output", "revision", "tracked", "tracked_nul", "below", "pipe", "split",
    "match", "top_level", "folder", "exact",
]  # fmt: skip
_ORIGINS: tuple[Origin, ...] = get_args(Origin)
LISTED: frozenset[Origin] = frozenset({"tracked", "tracked_nul", "below"})  # names of files

_BRACE_LIMIT = 256
_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "?": "?",
}


class TooComplexError(Exception):
    """A command line is too complex to be checked."""


class Word(Struct, frozen=True):
    """A word. `static` is false if a part of it is known only at run time.

    Such parts appear in `text` as their most likely value, or as UNKNOWN or NONEMPTY. `pattern` is
    true if the shell matches the word against file names. `origin` is the origin of such parts.
    """

    text: str
    static: bool = True
    pattern: bool = False
    origin: Origin = ""

    @property
    def fixed(self) -> bool:
        """Return whether the command receives exactly `text`."""
        return self.static and not self.pattern


class Piece(Struct):
    """A part of a word: its characters, the kind of each, and whether they are certain.

    `quoted` is true if it contains quotes, so that it is a word even if it is empty.
    """

    text: str = ""
    kinds: str = ""
    static: bool = True
    quoted: bool = False
    origin: Origin = "exact"

    def add(self, text: str, kind: str, *, static: bool = True, origin: Origin = "exact") -> None:
        """Append characters of one kind."""
        if origin != "exact" or self.origin in LISTED:
            self._add_origin(origin, text, kind)
        self.text += text
        self.kinds += kind * len(text)
        self.static = self.static and static
        self.quoted = self.quoted or kind == QUOTED

    def join(self, piece: Piece) -> None:
        """Append another piece."""
        if piece.origin != "exact" or self.origin in LISTED:
            self._add_origin(piece.origin, piece.text, piece.kinds)
        self.text += piece.text
        self.kinds += piece.kinds
        self.static = self.static and piece.static
        self.quoted = self.quoted or piece.quoted

    def _add_origin(self, origin: Origin, text: str, kinds: str) -> None:
        """Note the origin of a text that is about to be appended."""
        joined = min(self.origin, origin, key=_ORIGINS.index)
        if joined in LISTED and text and self.text:  # no longer the name of a file
            joined = "unquoted" if EXPANDED in self.kinds + kinds else "output"
        self.origin = joined


def unescape(raw: str) -> Piece:
    """Return unquoted text with its backslashes removed."""
    piece = Piece()
    characters = iter(raw)
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            if following != "\n":
                piece.add(following, QUOTED)
        else:
            piece.add(character, LITERAL)
    return piece


def unescape_quoted(raw: str) -> str:
    """Return the text in double quotes, or of a here-document, with its backslashes removed."""
    if "\\" not in raw:
        return raw
    text = []
    characters = iter(raw)
    for character in characters:
        if character != "\\":
            text.append(character)
            continue
        following = next(characters, "")
        if following in '$`"\\':
            text.append(following)
        elif following != "\n":
            text.append("\\" + following)
    return "".join(text)


def decode_ansi_c(raw: str, *, nul_ends: bool = True) -> str:
    r"""Return the text of $'...' or of `printf`, decoded: \n, \x41, \101, \u00e9, \cA and the like.

    A NUL ends the text of $'...'; in a printed text it is dropped.
    """
    text: list[str] = []
    at = 0
    while at < len(raw):
        character = raw[at]
        at += 1
        if character != "\\" or at == len(raw):
            text.append(character)
            continue
        letter = raw[at]
        at += 1
        if letter in _ESCAPES:
            text.append(_ESCAPES[letter])
        elif letter == "c" and at < len(raw):
            text.append(chr(ord(raw[at]) & 0x1F))
            at += 1
        elif letter in "xuU01234567":
            octal = letter not in "xuU"
            longest = 3 if octal else {"x": 2, "u": 4, "U": 8}[letter]
            start = at - 1 if octal else at
            digits = _leading_digits(raw[start : start + longest], 8 if octal else 16)
            at = start + len(digits)
            code = int(digits, 8 if octal else 16) if digits else 0
            if not digits:
                text.append("\\" + letter)
            elif code == 0 and nul_ends:
                break
            elif code == 0:
                continue
            else:
                text.append(chr(code) if code <= 0x10FFFF else "\ufffd")
        else:
            text.append("\\" + letter)
    return "".join(text)


def _leading_digits(text: str, base: int) -> str:
    allowed = "01234567" if base == 8 else "0123456789abcdefABCDEF"
    return text[: next((i for i, c in enumerate(text) if c not in allowed), len(text))]


def to_words(piece: Piece, *, home: str, cwd: str) -> list[Word]:
    """Return the words that the shell makes of one written word."""
    words: list[Word] = []
    variants = _spread_braces(piece.text, piece.kinds) if "{" in piece.text else []
    for text, kinds in variants or [(piece.text, piece.kinds)]:
        if not text and not piece.quoted:
            continue  # the shell drops empty words
        expanded, expanded_kinds, static = _tilde(text, kinds, home=home, cwd=cwd)
        static = static and piece.static
        for field, field_kinds in _split(expanded, expanded_kinds):
            marks = {
                kind
                for character, kind in zip(field, field_kinds, strict=True)
                if character in "*?["
            }
            pattern = bool(marks - {QUOTED})
            certain = not (pattern and QUOTED in marks)  # `text` does not show what is quoted
            if LITERAL in marks and piece.origin == "output":
                certain = False  # output with a pattern behind it may match files anywhere
            words.append(Word(field, static and certain, pattern, piece.origin if certain else ""))
    return words


def _tilde(text: str, kinds: str, *, home: str, cwd: str) -> tuple[str, str, bool]:
    if not text.startswith("~") or kinds[0] != LITERAL:
        return text, kinds, True
    end = text.find("/")
    end = len(text) if end < 0 else end
    user = text[1:end]
    if not user:
        folder, static = home, True
    elif user == "+":
        folder, static = cwd, True
    elif user == "root":
        folder, static = "/root", False
    else:
        folder, static = home.rpartition("/")[0] + "/" + user, False
    return folder + text[end:], QUOTED * len(folder) + kinds[end:], static


def _split(text: str, kinds: str) -> list[tuple[str, str]]:
    if EXPANDED not in kinds:
        return [(text, kinds)]
    fields: list[tuple[str, str]] = []
    start = 0
    for at, character in enumerate(text):
        if character in " \t\n" and kinds[at] == EXPANDED:
            if at > start:
                fields.append((text[start:at], kinds[start:at]))
            start = at + 1
    if start < len(text):
        fields.append((text[start:], kinds[start:]))
    return fields


def _spread_braces(text: str, kinds: str) -> list[tuple[str, str]]:
    """Return all words that a word with `{a,b}` or `{1..3}` expands to, or the word itself."""
    expanded: list[tuple[str, str]] = []
    pending = [(text, kinds)]
    while pending:
        if len(expanded) + len(pending) > _BRACE_LIMIT:
            raise TooComplexError
        word, marks = pending.pop()
        brace = _first_brace(word, marks)
        if brace is None:
            expanded.append((word, marks))
            continue
        start, end, alternatives = brace
        pending += [
            (
                word[:start] + alternative + word[end:],
                marks[:start] + alternative_kinds + marks[end:],
            )
            for alternative, alternative_kinds in reversed(alternatives)
        ]
    return expanded


def _first_brace(text: str, kinds: str) -> tuple[int, int, list[tuple[str, str]]] | None:
    """Return the first brace that expands: its start, its end, and the parts that it expands to."""
    open_at: list[int] = []
    commas: dict[int, list[int]] = {}
    span: tuple[int, int] | None = None
    for at, character in enumerate(text):
        if kinds[at] != LITERAL:
            continue
        if character == "{":
            open_at.append(at)
            commas[at] = []
        elif character == "," and open_at:
            commas[open_at[-1]].append(at)
        elif character == "}" and open_at:
            start = open_at.pop()
            spreads = commas[start] or ".." in text[start:at]
            if spreads and (span is None or start < span[0]):
                span = (start, at)
    if span is None:
        return None
    start, end = span
    cuts = [start, *commas[start], end]
    if len(cuts) > 2:
        alternatives = [(text[a + 1 : b], kinds[a + 1 : b]) for a, b in pairwise(cuts)]
    else:
        alternatives = [(item, QUOTED * len(item)) for item in _sequence(text[start + 1 : end])]
    return start, end + 1, alternatives


def _sequence(inside: str) -> list[str]:
    """Return the items of `1..3` or `a..c`; any other text is returned in its braces."""
    ends = inside.split("..")
    first, last = ends[0], ends[1] if len(ends) > 1 else ""
    if len(first) == 1 and len(last) == 1 and first.isalpha() and last.isalpha():
        return [chr(code) for code in _inclusive_range(ord(first), ord(last))]
    try:
        return [str(number) for number in _inclusive_range(int(first), int(last))]
    except ValueError:
        return ["{" + inside + "}"]


def _inclusive_range(first: int, last: int) -> range:
    step = 1 if first <= last else -1
    if abs(last - first) > _BRACE_LIMIT:
        raise TooComplexError
    return range(first, last + step, step)
