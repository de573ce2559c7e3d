"""Words of a shell command line: what they say, as far as that is known before it runs.

The order of the steps is the shell's own (POSIX.1-2017, XCU 2.6; Bash manual, "Shell Expansions"):
braces, tilde, parameters and substitutions, field splitting, path names, quote removal.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, get_args

from msgspec import Struct

UNKNOWN = "\0"  # stands in a word for a part that only the run will show, and that may be empty
NONEMPTY = "\1"  # likewise, for a part that the shell makes sure is not empty: ${name:?}

LITERAL = "u"  # kinds of characters: unquoted text,
QUOTED = "q"  # quoted or escaped text,
EXPANDED = "x"  # and what an unquoted expansion gave, which the shell splits again
MATCHED = "m"  # a name that a loop's pattern matched, between quotes: the pattern stands for it

# Where the part of a word comes from that only the run shows, from the least to the most certain:
# from anywhere; from the output of a command of the line, unquoted or quoted; from a process
# substitution; one of the names that a pattern matches, split again or as it is; a known value.
# It is only true of a line in which no command can set variables in another way.
Origin = Literal["", "unquoted", "output", "pipe", "split", "match", "exact"]
_ORIGINS: tuple[Origin, ...] = get_args(Origin)

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
    """A command line has more to it than is worth looking at."""


class Word(Struct, frozen=True):
    """A word. `static` is false when the run decides about a part of it.

    Such parts stand in `text` as they most likely are, or as UNKNOWN or NONEMPTY. `pattern` is
    true when the shell matches the word against the names of files. `origin` says where such parts
    come from.
    """

    text: str
    static: bool = True
    pattern: bool = False
    origin: Origin = ""

    @property
    def fixed(self) -> bool:
        """Whether the command gets exactly `text`."""
        return self.static and not self.pattern


class Piece(Struct):
    """A part of a word: its characters, each one's kind, and whether they are certain.

    `quoted` is true when there are quotes in it, so that it is a word even where it is empty.
    """

    text: str = ""
    kinds: str = ""
    static: bool = True
    quoted: bool = False
    origin: Origin = "exact"

    def add(self, text: str, kind: str, *, static: bool = True, origin: Origin = "exact") -> None:
        """Append characters of one kind."""
        self.origin = min(self.origin, origin, key=_ORIGINS.index)
        self.text += text
        self.kinds += kind * len(text)
        self.static = self.static and static
        self.quoted = self.quoted or kind == QUOTED

    def join(self, other: Piece) -> None:
        """Append another piece."""
        self.origin = min(self.origin, other.origin, key=_ORIGINS.index)
        self.text += other.text
        self.kinds += other.kinds
        self.static = self.static and other.static
        self.quoted = self.quoted or other.quoted


def unescape(raw: str) -> Piece:
    """Unquoted text with its backslashes taken off."""
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
    """The text between double quotes, or of a here-document, with its backslashes taken off."""
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
    r"""The text of $'...' and of `printf`: \n, \x41, \101, \u00e9, \cA and the like decoded.

    A NUL ends the text of $'...'; of what is printed with one in it, a shell reads the rest.
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
            digits = _leading(raw[start : start + longest], 8 if octal else 16)
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


def _leading(text: str, base: int) -> str:
    allowed = "01234567" if base == 8 else "0123456789abcdefABCDEF"
    return text[: next((i for i, c in enumerate(text) if c not in allowed), len(text))]


def to_words(piece: Piece, *, home: str, cwd: str) -> list[Word]:
    """The words that the shell makes of one written word.

    Raises:
        TooComplexError: its braces make too many words.
    """
    words: list[Word] = []
    spread = _spread_braces(piece.text, piece.kinds) if "{" in piece.text else []
    for text, kinds in spread or [(piece.text, piece.kinds)]:
        if not text and not piece.quoted:
            continue  # the shell drops what comes to nothing
        whole, whole_kinds, static = _tilde(text, kinds, home=home, cwd=cwd)
        static = static and piece.static
        for field, field_kinds in _split(whole, whole_kinds):
            marks = {
                kind
                for character, kind in zip(field, field_kinds, strict=True)
                if character in "*?["
            }
            pattern = bool(marks - {QUOTED})
            certain = not (pattern and QUOTED in marks)  # the text does not say which is which
            words.append(Word(field, static and certain, pattern, piece.origin if certain else ""))
    return words


def _tilde(text: str, kinds: str, *, home: str, cwd: str) -> tuple[str, str, bool]:
    if not text.startswith("~") or kinds[0] != LITERAL:
        return text, kinds, True
    end = text.find("/")
    end = len(text) if end < 0 else end
    user = text[1:end]
    if not user:
        place, static = home, True
    elif user == "+":
        place, static = cwd, True
    elif user == "root":
        place, static = "/root", False
    else:
        place, static = home.rpartition("/")[0] + "/" + user, False
    return place + text[end:], QUOTED * len(place) + kinds[end:], static


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
    """All words of a word with `{a,b}` or `{1..3}` in it; the word itself where it has none."""
    done: list[tuple[str, str]] = []
    waiting = [(text, kinds)]
    while waiting:
        if len(done) + len(waiting) > _BRACE_LIMIT:
            raise TooComplexError
        word, marks = waiting.pop()
        found = _first_brace(word, marks)
        if found is None:
            done.append((word, marks))
            continue
        start, end, parts = found
        waiting += [
            (word[:start] + part + word[end:], marks[:start] + part_marks + marks[end:])
            for part, part_marks in reversed(parts)
        ]
    return done


def _first_brace(text: str, kinds: str) -> tuple[int, int, list[tuple[str, str]]] | None:
    """The first brace that spreads: where it starts and ends, and what it spreads to."""
    open_at: list[int] = []
    commas: dict[int, list[int]] = {}
    found: tuple[int, int] | None = None
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
            if spreads and (found is None or start < found[0]):
                found = (start, at)
    if found is None:
        return None
    start, end = found
    cuts = [start, *commas[start], end]
    if len(cuts) > 2:
        parts = [(text[a + 1 : b], kinds[a + 1 : b]) for a, b in pairwise(cuts)]
    else:
        parts = [(item, QUOTED * len(item)) for item in _sequence(text[start + 1 : end])]
    return start, end + 1, parts


def _sequence(inside: str) -> list[str]:
    """`1..3` and `a..c` written out; what is no sequence stays as it is."""
    ends = inside.split("..")
    first, last = ends[0], ends[1] if len(ends) > 1 else ""
    if len(first) == 1 and len(last) == 1 and first.isalpha() and last.isalpha():
        return [chr(code) for code in _counted(ord(first), ord(last))]
    try:
        return [str(number) for number in _counted(int(first), int(last))]
    except ValueError:
        return ["{" + inside + "}"]


def _counted(first: int, last: int) -> range:
    step = 1 if first <= last else -1
    if abs(last - first) > _BRACE_LIMIT:
        raise TooComplexError
    return range(first, last + step, step)
