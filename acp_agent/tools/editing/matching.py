"""Find the place of an edit in a text that has no exact copy of `old`.

All matches with the same words are found at once, each with its kinds of differences; those with
the lowest level count. The words, and the order of indentations, are always the same.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

from msgspec import Struct

from acp_agent.tools.editing.folding import (
    Line,
    LineForms,
    compact,
    difference,
    fold,
    parse,
    plain_spaces,
)
from acp_agent.tools.editing.indentation import FileIndents, Indentation
from acp_agent.tools.editing.partial_lines import cut_lines

_MAX_MATCHES = 1_000  # places that are found
_MAX_COMPARED_LINES = 60_000  # lines that are compared in full
_MAX_REPORTED_LINES = 10  # lines in an error
_LEVELS = {
    "line ends": 1,
    "spaces": 1,
    "unicode": 1,
    "quotes": 2,
    "dashes": 2,
    "dots": 2,
    "entities": 2,
    "tabs": 3,
    "indentation": 3,
}
_KIND_NAMES = {
    "line ends": "white space at line ends",
    "spaces": "kinds of spaces",
    "unicode": "Unicode forms",
    "quotes": "quotation marks",
    "dashes": "dashes",
    "dots": "ellipses",
    "entities": "HTML entities",
    "tabs": "tabs or spaces within lines",
    "indentation": "indentation",
}
STRICT = 2  # the highest level at which the indentation is the same


class EditVariant(Struct, frozen=True, kw_only=True):
    """One way to read an edit: the text to search for, and its replacement.

    `notes` say how the call was read. `starts_line` and `ends_line` demand whole lines. `max_level`
    is the highest level of a match that counts, `line` the only line (from 1) where one counts.
    `distance` is how far this is from the given text, like the level of a match. If the last line
    is not a whole line, `following` is a pattern for what follows it there.
    """

    old: str
    new: str
    notes: tuple[str, ...] = ()
    starts_line: bool = False
    ends_line: bool = False
    max_level: int = 3
    line: int | None = None
    distance: int = 0
    following: str = ""

    def may_end(self, line: Line, cut_after: int) -> bool:
        """Return whether a match may end before so many units of a line."""
        following = "".join(unit.raw for unit in line.units[len(line.units) - cut_after :])
        return not following or (
            not self.ends_line and re.match(self.following, following) is not None
        )


class Match(Struct, frozen=True, kw_only=True):
    """A place with the same words.

    `first` is the index of its first line, `start` and `end` are its place in the text. The lines
    of `old` and of the text are those it covers, each in parts; the first and the last may be parts
    of lines. `inside` is set where it begins within a line, or after its indentation.
    """

    first: int
    start: int
    end: int
    old: tuple[Line, ...]
    file: tuple[Line, ...]
    inside: bool
    kinds: frozenset[str]
    indentation: Indentation | None = None

    @property
    def level(self) -> int:
        """How much it differs; 0 if not at all."""
        return max((_LEVELS[kind] for kind in self.kinds), default=0)

    @property
    def notes(self) -> tuple[str, ...]:
        """The differences in words."""
        return tuple(_KIND_NAMES[kind] for kind in _KIND_NAMES if kind in self.kinds)


class FoldedText:
    """A text that is searched for words. It and the searched words have LF line ends.

    Making it takes time in proportion to the text, less where `forms` has its lines.
    """

    def __init__(self, text: str, forms: LineForms) -> None:
        self.text = text
        self.lines = text.split("\n")
        self.line_forms = forms
        self.forms = [forms[line] for line in self.lines]
        self._folded = "\n".join(self.forms)
        self._parsed: dict[int, Line] = {}

    @cached_property
    def _starts(self) -> list[int]:
        """Where each line begins in the folded text."""
        return _starts(self.forms)

    @cached_property
    def _raw_starts(self) -> list[int]:
        return _starts(self.lines)

    @cached_property
    def indents(self) -> FileIndents:
        """How the file is indented."""
        return FileIndents([_indent(line) for line in self.lines if line.strip()])

    @cached_property
    def compact_text(self) -> str:
        """The folded lines without spaces, with one kind of quotation marks."""
        return compact(self._folded)

    def folded_key(self, text: str) -> str | None:
        """Return a text folded; None if its longest line shows that it is not in this text."""
        lines = text.split("\n")
        if self.line_forms[max(lines, key=len)] not in self._folded:
            return None
        return "\n".join(self.line_forms[line] for line in lines)

    def folded_compact_key(self, text: str) -> str | None:
        """Return a text folded, without spaces; None if it is not in this text in that form."""
        lines = text.split("\n")
        if compact(self.line_forms[max(lines, key=len)]) not in self.compact_text:
            return None
        key = compact("\n".join(self.line_forms[line] for line in lines))
        return key if key in self.compact_text else None

    def parsed_lines(self, first: int, count: int) -> list[Line]:
        """Return lines in parts, from an index on."""
        for index in range(first, min(first + count, len(self.lines))):
            if index not in self._parsed:
                self._parsed[index] = parse(self.lines[index])
        return [self._parsed[index] for index in range(first, min(first + count, len(self.lines)))]

    def line_start(self, index: int) -> int:
        """Return where a line begins."""
        return self._raw_starts[index]

    def lines_with_words(self, old: str) -> list[int]:
        """Return the lines, from 1, where the words of `old` begin, in any spacing."""
        key = "\n".join(fold(line) for line in old.strip("\n").split("\n"))
        lines: list[int] = []
        position = self._folded.find(key)
        while position >= 0 and len(lines) < _MAX_REPORTED_LINES and re.search(r"\w", key):
            lines.append(bisect.bisect_right(self._starts, position))
            position = self._folded.find(key, position + 1)
        return lines

    def find(self, variant: EditVariant) -> list[Match]:
        """Return the matches with the lowest level of differences."""
        key = self.folded_key(variant.old)
        position = self._folded.find(key) if key is not None else -1
        if key is None or position < 0 or not re.search(r"\w", key):
            return []  # brackets alone are everywhere
        old = [parse(line) for line in variant.old.split("\n")]
        indents = [
            plain_spaces(_indent(line))
            for line in (variant.old + "\n" + variant.new).split("\n")
            if line
        ]
        matches: list[Match] = []
        compared_lines = 0
        while position >= 0 and len(matches) < _MAX_MATCHES:
            compared_lines += len(old)
            if compared_lines > _MAX_COMPARED_LINES:
                return []  # too many to be one place
            match = self._match(variant, old, position, len(key), indents)
            if match is not None and match.level <= variant.max_level:
                matches.append(match)
            position = self._folded.find(key, position + (len(key) if match else 1))
        min_level = min((match.level for match in matches), default=0)
        return [match for match in matches if match.level == min_level]

    def _match(
        self,
        variant: EditVariant,
        old: list[Line],
        position: int,
        length: int,
        indents: Sequence[str],
    ) -> Match | None:
        """Return the match at `at` of the folded text; None if more than the form differs."""
        first = bisect.bisect_right(self._starts, position) - 1
        if variant.line not in {None, first + 1}:
            return None
        file = self.parsed_lines(first, len(old))
        if len(file) < len(old):
            return None
        full_lines = list(file)
        cut = cut_lines(file, position - self._starts[first], len(old[-1].form), old, length)
        if cut is None:
            return None
        cut_before, cut_after = cut
        if (cut_before and variant.starts_line) or not variant.may_end(full_lines[-1], cut_after):
            return None
        if cut_before and old[0].indent not in ("", " "):
            return None  # a whole line is wanted, not a part of another one
        try:
            kinds = _kinds(old, file, last_is_partial=cut_after)
        except ValueError:
            return None
        if any(
            not old_line.indent.isascii() or not file_line.indent.isascii()
            for old_line, file_line in zip(old, file, strict=True)
        ):
            kinds.add("spaces")
        inside, indentation = bool(cut_before), None
        pairs = [
            (plain_spaces(old_line.indent), plain_spaces(file_line.indent))
            for old_line, file_line in zip(old, file, strict=True)
            if old_line.units and file_line.units
        ]
        if inside:
            pairs = pairs[1:]
        elif pairs and old[0].units and not old[0].indent and not variant.starts_line:
            # It may begin after the indentation of its first line.
            inside = all(
                old_indent == file_indent for old_indent, file_indent in pairs[1:]
            ) and bool(pairs[0][1])
            inside = inside and (len(pairs) > 1 or "\n" not in variant.new)
            pairs = pairs[1:] if inside else pairs
        if any(old_indent != file_indent for old_indent, file_indent in pairs):
            indent_map: dict[str, str] = {}
            if any(indent_map.setdefault(source, target) != target for source, target in pairs):
                return None
            try:
                indentation = Indentation(indent_map, indents, self.indents)
            except ValueError:
                return None
            kinds.add("indentation")
        if cut_before and kinds & {"indentation"}:
            return None
        start, end = self._bounds(first, old, full_lines, cut_before, cut_after, inside=inside)
        return Match(
            first=first,
            start=start,
            end=end,
            old=tuple(old),
            file=tuple(file),
            inside=inside,
            kinds=frozenset(kinds),
            indentation=indentation,
        )

    def _bounds(
        self,
        first: int,
        old: Sequence[Line],
        full_lines: Sequence[Line],
        cut_before: int,
        cut_after: int,
        *,
        inside: bool,
    ) -> tuple[int, int]:
        """Return where a match begins and ends in the text, where its lines are `full_lines`."""
        start = self._raw_starts[first]
        if cut_before or inside:
            start += len(full_lines[0].indent) + _raw_length(full_lines[0], 0, cut_before)
        elif not old[0].units and len(old) > 1 and not old[0].trailing:
            start += len(self.lines[first])  # it begins with the end of this line
        last = first + len(old) - 1
        end = self._raw_starts[last]
        if old[-1].units:
            line = full_lines[-1]
            end += len(line.indent) + _raw_length(line, 0, len(line.units) - cut_after)
        return start, end


def _kinds(old: Sequence[Line], file: Sequence[Line], *, last_is_partial: int) -> set[str]:
    kinds: set[str] = set()
    for index, (old_line, file_line) in enumerate(zip(old, file, strict=True)):
        if len(old_line.units) != len(file_line.units):
            raise ValueError
        if old_line.units != file_line.units:
            pairs = zip(old_line.units, file_line.units, strict=True)
            kinds.update(kind for pair in pairs if (kind := difference(*pair)))
        is_last = index == len(old) - 1
        if old_line.trailing != file_line.trailing and (
            not is_last or (old_line.trailing and not last_is_partial)
        ):
            kinds.add("line ends")
    return kinds


def form_kinds(old: str, new: str) -> set[str]:
    """Return the kinds in which two texts with the same words differ."""
    lines = [[parse(line) for line in text.split("\n")] for text in (old, new)]
    old_lines, new_lines = ([line for line in text_lines if line.units] for text_lines in lines)
    if [line.form for line in old_lines] != [line.form for line in new_lines]:
        return set(_LEVELS)  # joined or split lines
    try:
        kinds = _kinds(old_lines, new_lines, last_is_partial=False)
    except ValueError:
        kinds = {"spaces", "tabs"}
    if any(
        old_line.indent != new_line.indent
        for old_line, new_line in zip(old_lines, new_lines, strict=True)
    ):
        kinds.add("indentation")
    if _blank_line_spaces(lines[0]) != _blank_line_spaces(lines[1]):
        kinds.add("line ends")
    return kinds


def _blank_line_spaces(lines: Sequence[Line]) -> set[str]:
    """Return the white space in blank lines."""
    return {line.trailing for line in lines if not line.units and line.trailing}


def _raw_length(line: Line, start: int, end: int) -> int:
    return sum(len(unit.raw) for unit in line.units[start:end])


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _starts(lines: Sequence[str]) -> list[int]:
    return [0, *accumulate(len(line) + 1 for line in lines[:-1])]
