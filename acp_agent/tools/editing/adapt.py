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

_MIN_SIMILARITY = 0.5  # between 0 and 1; below it two lines are not one that was changed
_MAX_PAIRS = 10_000  # pairs of lines in a block that are compared in full
_MAX_COMPARISONS = 4_000_000  # compared pairs of lines, or of words in a line
_WORD_KINDS = ("word", "digit")
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
    style = _Style(match, verbatim=_has_file_form(match, lines, sources))
    keeps_indentation = _has_file_indentation(match, lines, sources)
    if keeps_indentation:
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
        elif line.indent == old.indent and not keeps_indentation:
            indent = file.indent
        else:
            indent = style.indent(_indent(match, line, index))
        trailing = file.trailing if line.trailing == old.trailing else style.trailing(line)
        if is_end and (line.trailing == old.trailing or source == len(match.old) - 1):
            trailing = ""  # it lies after the place and stays
        result.append(indent + _adapt_body(old, file, line, style) + trailing)
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
    file_count = sum(new == file != old for new, old, file in shared)
    old_count = sum(new == old != file for new, old, file in shared)
    if not file_count:
        return False
    min_old_indent = min(len(old) for _, old, _ in shared)
    min_file_indent = min(len(file) for _, _, file in shared)
    min_new_indent = min(len(line.indent) for line in lines if line.units)
    return min_new_indent >= min_file_indent and (
        not old_count or min_new_indent < min_old_indent or min_new_indent == min_file_indent
    )


def _has_file_form(match: Match, lines: Sequence[Line], sources: Mapping[int, int]) -> bool:
    """Return whether `new` writes its unchanged lines as the file does, although `old` does not."""
    texts = [
        tuple(_raw(line.units) for line in (lines[index], match.old[source], match.file[source]))
        for index, source in sources.items()
        if lines[index].form == match.old[source].form
    ]
    differing = [(new, old, file) for new, old, file in texts if old != file]
    return bool(differing) and all(new == file for new, _, file in differing)


def _indent(match: Match, line: Line, index: int) -> str:
    if not line.units or (index == 0 and match.inside) or match.indentation is None:
        return line.indent
    converted = match.indentation.convert(plain_spaces(line.indent))
    is_single_line = (
        len([old_line for old_line in match.old if old_line.units]) == 1 and not match.old[0].indent
    )
    if converted is None or (
        is_single_line and index and len(line.indent) >= len(match.file[0].indent) > 0
    ):
        raise UnclearError(
            "the indentation of `old` is another than the file's, and that of `new` is unclear",
            advice="write both with the indentation of the file",
        )
    return converted


def source_lines(old: Sequence[Line], new: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Yield indices of lines in `new` with those of the lines in `old` that they come from.

    Raises:
        UnclearError: what differs is too long for that.
    """
    for tag, old_start, old_end, new_start, new_end in _opcodes(old, new):
        same_length = old_end - old_start == new_end - new_start
        if tag in ("equal", "replace") and same_length:
            yield from zip(range(new_start, new_end), range(old_start, old_end), strict=True)
        elif tag == "replace" and (old_end - old_start) * (new_end - new_start) <= _MAX_PAIRS:
            yield from _pairs(old, new, range(old_start, old_end), range(new_start, new_end))


def _pairs(
    old: Sequence[Line], new: Sequence[Line], old_range: range, new_range: range
) -> Iterator[tuple[int, int]]:
    """Pair the most similar lines of two blocks, in order."""
    start = old_range.start
    for index in new_range:
        best, closest = _MIN_SIMILARITY, None
        for source in range(start, old_range.stop):
            matcher = difflib.SequenceMatcher(None, old[source].form, new[index].form)
            if matcher.quick_ratio() > best and (similarity := matcher.ratio()) > best:
                best, closest = similarity, source
        if closest is not None:
            yield index, closest
            start = closest + 1


def _opcodes(
    old: Sequence[Hashable], new: Sequence[Hashable]
) -> Iterator[tuple[str, int, int, int, int]]:
    """Return the opcodes of difflib, in bounded time.

    Raises:
        UnclearError: what differs is too long for that.
    """
    min_length = min(len(old), len(new))
    start = next((index for index in range(min_length) if old[index] != new[index]), min_length)
    min_length -= start
    suffix_length = next(
        (index for index in range(min_length) if old[-1 - index] != new[-1 - index]), min_length
    )
    old_end, new_end = len(old) - suffix_length, len(new) - suffix_length
    if (old_end - start) * (new_end - start) > _MAX_COMPARISONS:
        raise UnclearError(
            "`old` is not in the file exactly, and too much changes to adapt `new`",
            advice="give `old` exactly, or make smaller edits",
        )
    if start:
        yield "equal", 0, start, 0, start
    matcher = difflib.SequenceMatcher(None, old[start:old_end], new[start:new_end], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        yield tag, a + start, b + start, c + start, d + start
    if suffix_length:
        yield "equal", old_end, len(old), new_end, len(new)


def _adapt_body(old: Line, file: Line, new: Line, style: _Style) -> str:
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
            indices = range(new_words[new_start][0], new_words[new_end - 1][1])
            pieces.extend(style.apply(new.units, indices))
    return "".join(pieces)


def _words(units: Sequence[Unit]) -> list[tuple[int, int]]:
    """Return where the words of a line begin and end; every other character is a word."""
    words: list[tuple[int, int]] = []
    for index, unit in enumerate(units):
        is_word = _kind(unit) in _WORD_KINDS
        if is_word and words and _kind(units[index - 1]) in _WORD_KINDS:
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


def _adjacent_kinds(units: Sequence[Unit], index: int) -> tuple[str, str]:
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
    """Return the ASCII form of a quotation mark, dash or ellipsis."""
    return raw.translate(_ASCII_FORMS) if not raw.isascii() else raw


class _Style:
    """How the file writes the characters that a match writes differently."""

    def __init__(self, match: Match, *, verbatim: bool) -> None:
        self._verbatim = verbatim
        self._drops_invisible = False  # whether only `old` has characters that are not seen
        self._by_context: dict[tuple[str, str, str], set[str]] = {}
        self._by_char: dict[str, set[str]] = {}
        self._plain_quotes = False  # whether the file has ASCII quotes for others in `old`
        forms: set[NormalForm] = set()
        entities: set[bool] = set()
        trailing: dict[bool, set[str]] = {True: set(), False: set()}
        for old, file in zip(match.old, match.file, strict=True):
            if old.trailing:
                trailing[bool(old.units)].add(file.trailing)
            for index, (unit, file_unit) in enumerate(zip(old.units, file.units, strict=True)):
                if unit.form in "'\"" and unit.raw != file_unit.raw == _plain(unit.raw):
                    self._plain_quotes = True
                if not unit.raw.isascii():
                    self._drops_invisible |= (
                        without_invisible(unit.raw) == file_unit.raw != unit.raw
                    )
                    forms.update(
                        normal_form
                        for normal_form in _NORMAL_FORMS
                        if unicodedata.normalize(normal_form, unit.raw) == file_unit.raw != unit.raw
                    )
                if unit.form not in "'\"-<>& \u2026":
                    continue
                context = (unit.raw, *_adjacent_kinds(old.units, index))
                self._by_context.setdefault(context, set()).add(file_unit.raw)
                self._by_char.setdefault(unit.raw, set()).add(file_unit.raw)
                if is_entity(unit.raw):
                    entities.add(is_entity(file_unit.raw))
        # For lines with text, and for blank ones: whether only `old` has white space at their ends.
        self._strips_trailing = {
            has_text for has_text, trailing_spaces in trailing.items() if trailing_spaces == {""}
        }
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

    def apply(self, units: Sequence[Unit], indices: range) -> Iterator[str]:
        """Yield the units of a new line at some places, as the file would write them."""
        for index in indices:
            unit = units[index]
            if self._verbatim:
                yield unit.raw
                continue
            if self._drops_invisible:
                unit = Unit(without_invisible(unit.raw), unit.form)
            yield self._form(unit, *_adjacent_kinds(units, index))

    def trailing(self, line: Line) -> str:
        """Return the white space at the end of a new line, without what only `old` has."""
        return "" if bool(line.units) in self._strips_trailing else line.trailing

    def indent(self, raw: str) -> str:
        """Return the indentation of a new line, with plain spaces if only `old` has others."""
        return plain_spaces(raw) if self._plain_spaces else raw

    def _space(self, raw: str) -> str:
        char_forms = self._by_char.get(raw, set())
        if any("\t" in form for form in char_forms) and char_forms != {raw}:
            if len(char_forms) > 1:
                raise UnclearError(
                    "the file has tabs within lines where `old` has spaces, and `new` is unclear",
                    advice="write the tabs in both",
                )
            return next(iter(char_forms))
        return " " * len(raw) if self._plain_spaces and not raw.isascii() else raw

    def _form(self, unit: Unit, before: str, after: str) -> str:
        if unit.form == " ":
            return self._space(unit.raw)
        context_forms = self._by_context.get((unit.raw, before, after), set())
        if len(context_forms) == 1:
            return next(iter(context_forms))
        if self._unescape and is_entity(unit.raw):
            return unit.form
        if self._escape and unit.raw in _ESCAPED:
            return _ESCAPED[unit.raw]
        char_forms = self._by_char.get(unit.raw, set())
        if not unit.raw.isascii():
            plain = _plain(unit.raw)
            if char_forms == {plain} or (
                unit.form in "'\"" and not char_forms and self._plain_quotes
            ):
                return plain
            if self._normal_form is not None:
                return unicodedata.normalize(self._normal_form, unit.raw)
        if context_forms or not char_forms or unit.raw in char_forms:
            return unit.raw
        if all(form in _CLOSING or form in _OPENING for form in char_forms):
            char = next(iter(char_forms))
            opening = char if char in _CLOSING else _OPENING[char]
            return opening if before == "edge" else _CLOSING[opening]
        return unit.raw
