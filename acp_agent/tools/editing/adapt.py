"""Convert the new text of an edit to the form of the file at that place."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from acp_agent.errors import ToolError
from acp_agent.tools.editing.folding import (
    FORMS,
    Line,
    Unit,
    is_entity,
    parse,
    plain_spaces,
    without_invisible,
)
from acp_agent.tools.editing.matching import Match

NormalForm: TypeAlias = Literal["NFC", "NFD"]

_ALIKE = 0.5  # between 0 and 1; below it two lines are not one that was changed
_PAIRED = 10_000  # pairs of lines in a block that are compared in full
_COMPARED = 4_000_000  # compared pairs of lines, or of words in a line
_IN_WORDS = ("word", "digit")
_CLOSING = {"\u201c": "\u201d", "\u2018": "\u2019"}
_OPENING = {after: before for before, after in _CLOSING.items()}
_ASCII_FORMS = {**FORMS, 0x2026: "..."}
_NORMAL_FORMS: tuple[NormalForm, ...] = ("NFC", "NFD")
_ESCAPED = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


class UnclearError(ToolError):
    """The place is certain, but the new text there is not."""


def adapt(match: Match, new: str) -> str:
    """`new` in the form of the file.

    A line that `old` and `new` share stays as the file has it, and so does each word of a changed
    line that they share. The rest gets the indentation of the file, and the quotation marks,
    dashes and entities that the file has where `old` had others.

    Raises:
        UnclearError: the indentation of a new line is uncertain.
    """
    lines = [parse(line) for line in new.split("\n")]
    sources = dict(source_lines(match.old, lines))
    style = _Style(match, as_given=_has_file_form(match, lines, sources))
    as_given = _has_file_indentation(match, lines, sources)
    if as_given:
        match = msgspec.structs.replace(match, indentation=None)
    result = []
    for index, line in enumerate(lines):
        source = sources.get(index)
        is_end = index == len(lines) - 1
        if source is None:
            body = "".join(style.apply(line.units, range(len(line.units))))
            result.append(style.indent(_indent(match, line, index)) + body + style.trailing(line))
            continue
        old, file = match.old[source], match.file[source]
        if index == 0 and match.inside:
            indent = "" if line.indent in (old.indent, file.indent) else line.indent
        elif line.indent == old.indent and not as_given:
            indent = file.indent
        else:
            indent = style.indent(_indent(match, line, index))
        trailing = file.trailing if line.trailing == old.trailing else style.trailing(line)
        if is_end and (line.trailing == old.trailing or source == len(match.old) - 1):
            trailing = ""  # it lies after the place and stays
        result.append(indent + _body(old, file, line, style) + trailing)
    return "\n".join(result)


def _has_file_indentation(match: Match, lines: Sequence[Line], sources: Mapping[int, int]) -> bool:
    """Return whether `new` is indented like the file, although `old` is not.

    Unmoved lines of `new` are as deep as in the file or as deep as in `old`. If there are both, the
    least depth of `new` decides, which few edits change.
    """
    if match.indentation is None:
        return False
    shared = [
        (line.indent, match.old[sources[index]].indent, match.file[sources[index]].indent)
        for index, line in enumerate(lines)
        if index in sources and line.units and match.old[sources[index]].units
    ]
    as_file = sum(new == file != old for new, old, file in shared)
    as_old = sum(new == old != file for new, old, file in shared)
    if not as_file:
        return False
    least_in_old = min(len(old) for _, old, _ in shared)
    least_in_file = min(len(file) for _, _, file in shared)
    least = min(len(line.indent) for line in lines if line.units)
    return least >= least_in_file and (not as_old or least < least_in_old or least == least_in_file)


def _has_file_form(match: Match, lines: Sequence[Line], sources: Mapping[int, int]) -> bool:
    """Return whether `new` writes its unchanged lines as the file does, although `old` does not."""
    texts = [
        tuple(_raw(one.units) for one in (lines[index], match.old[source], match.file[source]))
        for index, source in sources.items()
        if lines[index].form == match.old[source].form
    ]
    differing = [(new, old, file) for new, old, file in texts if old != file]
    return bool(differing) and all(new == file for new, _, file in differing)


def _indent(match: Match, line: Line, index: int) -> str:
    if not line.units or (index == 0 and match.inside) or match.indentation is None:
        return line.indent
    known = match.indentation.convert(plain_spaces(line.indent))
    lone = len([one for one in match.old if one.units]) == 1 and not match.old[0].indent
    if known is None or (lone and index and len(line.indent) >= len(match.file[0].indent) > 0):
        raise UnclearError(
            "the indentation of `old` is another than the file's, and that of `new` is unclear",
            advice="write both with the indentation of the file",
        )
    return known


def source_lines(old: Sequence[Line], new: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Yield indices of lines in `new` with those of the lines in `old` that they come from.

    Raises:
        UnclearError: what differs is too long for that.
    """
    for tag, old_start, old_end, new_start, new_end in _opcodes(old, new):
        same_length = old_end - old_start == new_end - new_start
        if tag in ("equal", "replace") and same_length:
            yield from zip(range(new_start, new_end), range(old_start, old_end), strict=True)
        elif tag == "replace" and (old_end - old_start) * (new_end - new_start) <= _PAIRED:
            yield from _pairs(old, new, range(old_start, old_end), range(new_start, new_end))


def _pairs(
    old: Sequence[Line], new: Sequence[Line], some: range, others: range
) -> Iterator[tuple[int, int]]:
    """Pair the most similar lines of two blocks, in order."""
    start = some.start
    for index in others:
        best, found = _ALIKE, None
        for source in range(start, some.stop):
            matcher = difflib.SequenceMatcher(None, old[source].form, new[index].form)
            if matcher.quick_ratio() > best and (likeness := matcher.ratio()) > best:
                best, found = likeness, source
        if found is not None:
            yield index, found
            start = found + 1


def _opcodes(
    old: Sequence[Hashable], new: Sequence[Hashable]
) -> Iterator[tuple[str, int, int, int, int]]:
    """The opcodes of difflib, in bounded time.

    Raises:
        UnclearError: what differs is too long for that.
    """
    least = min(len(old), len(new))
    start = next((index for index in range(least) if old[index] != new[index]), least)
    least -= start
    after = next((index for index in range(least) if old[-1 - index] != new[-1 - index]), least)
    old_end, new_end = len(old) - after, len(new) - after
    if (old_end - start) * (new_end - start) > _COMPARED:
        raise UnclearError(
            "`old` is not in the file exactly, and too much changes to adapt `new`",
            advice="give `old` exactly, or make smaller edits",
        )
    if start:
        yield "equal", 0, start, 0, start
    matcher = difflib.SequenceMatcher(None, old[start:old_end], new[start:new_end], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        yield tag, a + start, b + start, c + start, d + start
    if after:
        yield "equal", old_end, len(old), new_end, len(new)


def _body(old: Line, file: Line, new: Line, style: _Style) -> str:
    """Return a changed line: text shared with `old` as in the file, the rest in its style."""
    old_words, new_words = _words(old.units), _words(new.units)
    opcodes = _opcodes(
        [_raw(old.units[start:end]) for start, end in old_words],
        [_raw(new.units[start:end]) for start, end in new_words],
    )
    pieces: list[str] = []
    for tag, old_start, old_end, new_start, new_end in opcodes:
        if tag == "equal":
            start, end = old_words[old_start][0], old_words[old_end - 1][1]
            pieces.append(_raw(file.units[start:end]))
        elif new_end > new_start:
            places = range(new_words[new_start][0], new_words[new_end - 1][1])
            pieces.extend(style.apply(new.units, places))
    return "".join(pieces)


def _words(units: Sequence[Unit]) -> list[tuple[int, int]]:
    """Return where the words of a line begin and end; every other character is a word."""
    words: list[tuple[int, int]] = []
    for index, unit in enumerate(units):
        is_word = _kind(unit) in _IN_WORDS
        if is_word and words and _kind(units[index - 1]) in _IN_WORDS:
            words[-1] = (words[-1][0], index + 1)
        else:
            words.append((index, index + 1))
    return words


def _raw(units: Sequence[Unit]) -> str:
    return "".join(unit.raw for unit in units)


def _kind(unit: Unit | None) -> str:
    if unit is None or unit.form == " " or unit.form in "([{":
        return "edge"
    if unit.form[0].isdigit():
        return "digit"
    return "word" if unit.form[0].isalpha() or unit.form == "_" else "other"


def _around(units: Sequence[Unit], index: int) -> tuple[str, str]:
    """Return the kinds of the units before and after one; consecutive dashes count as one."""
    first = last = index
    if units[index].form == "-":
        while first and units[first - 1].form == "-":
            first -= 1
        while last + 1 < len(units) and units[last + 1].form == "-":
            last += 1
    # A dash that a line begins with is the mark of an item.
    start = "start" if units[index].form == "-" else "edge"
    before = _kind(units[first - 1]) if first else start
    after = _kind(units[last + 1] if last + 1 < len(units) else None)
    if units[index].form == "-":  # `--print` in code is another than a dash after a bracket
        before = units[first - 1].form if before == "other" else before
        after = units[last + 1].form if after == "other" else after
    return before, after


def _plain(raw: str) -> str:
    """A quotation mark, dash or ellipsis as ASCII has it."""
    return raw.translate(_ASCII_FORMS) if not raw.isascii() else raw


class _Style:
    """How the file writes the characters that a match writes differently."""

    def __init__(self, match: Match, *, as_given: bool) -> None:
        self._as_given = as_given
        self._hides = False  # whether only `old` has characters that are not seen
        self._by_place: dict[tuple[str, str, str], set[str]] = {}
        self._by_char: dict[str, set[str]] = {}
        self._plain_quotes = False  # whether the file has ASCII quotes for others in `old`
        forms: set[NormalForm] = set()
        entities: set[bool] = set()
        ends: dict[bool, set[str]] = {True: set(), False: set()}
        for old, file in zip(match.old, match.file, strict=True):
            if old.trailing:
                ends[bool(old.units)].add(file.trailing)
            for index, (unit, other) in enumerate(zip(old.units, file.units, strict=True)):
                if unit.form in "'\"" and unit.raw != other.raw == _plain(unit.raw):
                    self._plain_quotes = True
                if not unit.raw.isascii():
                    self._hides |= without_invisible(unit.raw) == other.raw != unit.raw
                    forms.update(
                        one
                        for one in _NORMAL_FORMS
                        if unicodedata.normalize(one, unit.raw) == other.raw != unit.raw
                    )
                if unit.form not in "'\"-<>& \u2026":
                    continue
                place = (unit.raw, *_around(old.units, index))
                self._by_place.setdefault(place, set()).add(other.raw)
                self._by_char.setdefault(unit.raw, set()).add(other.raw)
                if is_entity(unit.raw):
                    entities.add(is_entity(other.raw))
        # For lines with text, and for blank ones: whether only `old` has white space at their ends.
        self._no_ends = {has_text for has_text, found in ends.items() if found == {""}}
        self._plain_spaces = all(
            form.isascii()
            for char, forms in self._by_char.items()
            if char.isspace()
            for form in forms
        )
        self._normal_form = forms.pop() if len(forms) == 1 else None
        self._unescape = entities == {False}
        escaped = [is_entity(form) for char in _ESCAPED for form in self._by_char.get(char, ())]
        self._escape = bool(escaped) and all(escaped)

    def apply(self, units: Sequence[Unit], places: range) -> Iterator[str]:
        """Yield the units of a new line at some places, as the file would write them."""
        for index in places:
            unit = units[index]
            if self._as_given:
                yield unit.raw
                continue
            if self._hides:
                unit = Unit(without_invisible(unit.raw), unit.form)
            yield self._form(unit, *_around(units, index))

    def trailing(self, line: Line) -> str:
        """Return the white space at the end of a new line, without what only `old` has."""
        return "" if bool(line.units) in self._no_ends else line.trailing

    def indent(self, raw: str) -> str:
        """Return the indentation of a new line, with plain spaces if only `old` has others."""
        return plain_spaces(raw) if self._plain_spaces else raw

    def _space(self, raw: str) -> str:
        known = self._by_char.get(raw, set())
        if any("\t" in form for form in known) and known != {raw}:
            if len(known) > 1:
                raise UnclearError(
                    "the file has tabs within lines where `old` has spaces, and `new` is unclear",
                    advice="write the tabs in both",
                )
            return next(iter(known))
        return " " * len(raw) if self._plain_spaces and not raw.isascii() else raw

    def _form(self, unit: Unit, before: str, after: str) -> str:
        if unit.form == " ":
            return self._space(unit.raw)
        forms = self._by_place.get((unit.raw, before, after), set())
        if len(forms) == 1:
            return next(iter(forms))
        if self._unescape and is_entity(unit.raw):
            return unit.form
        if self._escape and unit.raw in _ESCAPED:
            return _ESCAPED[unit.raw]
        known = self._by_char.get(unit.raw, set())
        if not unit.raw.isascii():
            plain = _plain(unit.raw)
            if known == {plain} or (unit.form in "'\"" and not known and self._plain_quotes):
                return plain
            if self._normal_form is not None:
                return unicodedata.normalize(self._normal_form, unit.raw)
        if forms or not known or unit.raw in known:
            return unit.raw
        if all(form in _CLOSING or form in _OPENING for form in known):
            char = next(iter(known))
            opening = char if char in _CLOSING else _OPENING[char]
            return opening if before == "edge" else _CLOSING[opening]
        return unit.raw
