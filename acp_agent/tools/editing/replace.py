"""Replace texts in a file, one after the other, and leave every other byte as it is."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import msgspec
from msgspec import Struct

from acp_agent.diffs import changed_blocks
from acp_agent.errors import ToolError
from acp_agent.tools.editing.adapt import adapt
from acp_agent.tools.editing.blank_lines import with_file_blank_lines
from acp_agent.tools.editing.matching import FoldedText, Match, Wanted, form_kinds
from acp_agent.tools.editing.nearest import explain_absence, lines_that_differ, quote_lines
from acp_agent.tools.editing.placeholders import refuse_omission, refuse_placeholder
from acp_agent.tools.editing.readings import (
    begins_in_indentation,
    begins_with_line_end,
    is_only_form,
    readings,
    with_line_end,
)
from acp_agent.workspace.file_io import TextFile, with_lf
from acp_agent.workspace.scrub import REPLACEMENT

_LINES_NAMED = 10


class Edit(Struct, frozen=True):
    """One replacement: `old` by `new`, at its only place or, with `every`, at each.

    With `after_line`, `new` is inserted after this line instead, 0 for the beginning of the file.
    `times` is the expected number of places.
    """

    old: str
    new: str
    every: bool = False
    after_line: int | None = None
    times: int | None = None


class Span(Struct, frozen=True):
    """A part of a text with LF line endings, and its replacement."""

    start: int
    end: int
    new: str


class Edited(Struct, frozen=True):
    """A file's text after its edits.

    `line` is where the first edit begins, from 1. `places` are the lines that were changed, each
    place as it was and as it became, in order. `notes` say what was normalised to find them. `view`
    is the text before and after as it is shown, where that is not the text of the file.
    """

    text: str
    line: int
    places: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()
    view: tuple[str, str] | None = None


def apply_edits(file: TextFile, edits: Sequence[Edit], shown: str) -> Edited:
    """Make all edits, each in the result of the one before, or else in the text before all.

    New text gets the line endings of the text that it replaces, so a file with mixed line endings
    keeps all others. The work is bounded and takes up to some seconds for the largest files: call
    it in a thread.

    Raises:
        ToolError: one of them cannot be made; the message says which, where there are several.
    """
    done: list[Edited] = []
    original = file
    for number, edit in enumerate(edits, 1):
        try:
            refuse_placeholder(edit.new, original.text)
            refuse_omission(edit.old, edit.new, original.text, shown)
            make = partial(_apply, edit=edit, shown=shown)
            done.append(apply_to_either(file, original, make))
        except ToolError as error:
            if len(edits) == 1:
                raise
            raise ToolError(
                f"edit {number} of {len(edits)}: {error.shown}; none was made", advice=error.advice
            ) from error
        file = msgspec.structs.replace(file, text=done[-1].text)
    return Edited(
        text=file.text,
        line=done[0].line,
        places=tuple(place for one in done for place in one.places),
        notes=tuple(dict.fromkeys(note for one in done for note in one.notes)),
    )


def apply_to_either(
    file: TextFile, original: TextFile, make: Callable[[TextFile], Edited]
) -> Edited:
    """Make an edit in the current text or, if it has no place there, in the original one.

    Raises:
        ToolError: it has a place in neither, or changes lines that the others changed.
    """
    try:
        return make(file)
    except ToolError:
        with suppress(ToolError):
            edited = make(original)
            text = _merged(original.text, file.text, edited.text)
            if text is not None:
                return msgspec.structs.replace(edited, text=text)
        raise


def _merged(original: str, one: str, other: str) -> str | None:
    """A text with the changes that two others have; None if they change the same lines."""
    base, mine, theirs = (text.splitlines(keepends=True) for text in (original, one, other))
    blocks = [(block, mine) for block in changed_blocks(base, mine)]
    blocks += [(block, theirs) for block in changed_blocks(base, theirs)]
    result: list[str] = []
    done = 0
    inserted: int | None = None  # where the last block only inserts lines
    for block, lines in sorted(blocks, key=lambda item: (item[0].old_start, item[0].old_end)):
        inserts = block.old_start == block.old_end
        if block.old_start < done or (inserts and inserted == block.old_start):
            return None  # lines that are inserted at one place have no certain order
        inserted = block.old_start if inserts else None
        result += base[done : block.old_start] + lines[block.new_start : block.new_end]
        done = block.old_end
    return "".join(result + base[done:])


def _apply(file: TextFile, edit: Edit, shown: str) -> Edited:
    old, new = with_lf(edit.old), with_lf(edit.new)
    text = with_lf(file.text)
    if edit.after_line is not None:
        spans: Sequence[Span] = [_insertion(text, edit.after_line, new, shown)]
        return _edited(file, text, spans, ())
    if not old:
        return _fill(file, new, shown)
    if old == new:
        raise ToolError(
            "`old` and `new` are the same; nothing would change",
            advice="leave the edit out, or give the new text in `new`",
        )
    spans, notes = _spans(text, old, new, every=edit.every, shown=shown)
    if edit.times not in {None, len(spans)}:
        raise _several(text, [span.start for span in spans], shown, f", not {edit.times} times")
    return _edited(file, text, spans, notes)


def _edited(file: TextFile, text: str, spans: Sequence[Span], notes: tuple[str, ...]) -> Edited:
    return Edited(
        text=_splice(file, text, spans),
        line=text.count("\n", 0, spans[0].start) + 1,
        places=tuple(_lines_of(text, span) for span in spans),
        notes=notes,
    )


def _insertion(text: str, after_line: int, new: str, shown: str) -> Span:
    lines = text.splitlines(keepends=True)
    if not 0 <= after_line <= len(lines):
        raise ToolError(f"{shown} has {len(lines)} lines; there is no line {after_line}")
    at = sum(map(len, lines[:after_line]))
    if after_line and not lines[after_line - 1].endswith("\n"):
        return Span(at, at, "\n" + new.removesuffix("\n"))
    return Span(at, at, new if new.endswith("\n") else new + "\n")


def _spans(
    text: str, old: str, new: str, *, every: bool, shown: str
) -> tuple[list[Span], tuple[str, ...]]:
    """Return the spans to replace, and what was normalised to find them.

    Raises:
        ToolError: there is no such place, or more than one.
    """
    exact = _occurrences(text, old)
    if exact and not begins_in_indentation(text, exact[0], old, new):
        overlaps = [exact[0], again] if (again := text.find(old, exact[0] + 1)) >= 0 else exact
        if len(overlaps) > 1 and not every:
            raise _several(text, exact if len(exact) > 1 else overlaps, shown)
        whole = with_line_end(old, new)
        if whole != new and all(text[:at].endswith(("\n", "")[at == 0]) for at in exact):
            return [Span(at, at + len(old), whole) for at in exact], ("the last line end of `new`",)
        if begins_with_line_end(text, exact, old, new):
            return [Span(at + 1, at + len(old), new) for at in exact], (
                "the line end before `new`",
            )
        return [Span(at, at + len(old), new) for at in exact], ()
    if REPLACEMENT in old:
        raise hidden_value_error()
    folded = FoldedText(text)
    read = readings(old, new)
    found = [(wanted, places) for wanted in read if (places := folded.find(wanted))]
    if not found:
        spread = [with_file_blank_lines(folded, wanted) for wanted in read]
        found = [(one, places) for one in spread if one and (places := folded.find(one))]
    if found:
        wanted, matches = min(found, key=lambda one: _distance(*one))
        if len(matches) > 1 and not every:
            raise _several(text, [match.start for match in matches], shown)
        if is_only_form(wanted) and not _is_other_form(text, wanted, matches[0]):
            raise ToolError(
                f"`old` is not in {shown} as it is, and `new` differs only in form; "
                "nothing would change",
                advice=f"give `old` exactly; {quote_lines(folded.lines, matches[0].first, old)}",
            )
        spans = [_adapted(folded, match, wanted) for match in matches]
        spans = [span for span in spans if text[span.start : span.end] != span.new]
        if not spans:
            raise ToolError(f"{shown} has the new text already; nothing would change")
        return spans, (*wanted.notes, *matches[0].notes)
    advice = explain_absence(text, old)
    if lines := folded.lines_with_words(old):
        numbers = ", ".join(str(line) for line in lines)
        advice = f"its words are in line {numbers}, indented or spaced otherwise; {advice}"
    raise ToolError(f"the text to replace is not in {shown}", advice=advice)


def _is_other_form(text: str, wanted: Wanted, match: Match) -> bool:
    """Return whether `new` differs from `old`, or from the file, otherwise than these two do."""
    return any(
        not match.kinds & form_kinds(before, wanted.new)
        for before in (wanted.old, text[match.start : match.end])
    )


def _distance(wanted: Wanted, matches: Sequence[Match]) -> tuple[int, int]:
    """Return how far a match is from `old`."""
    return max(wanted.distance, matches[0].level), len(wanted.notes)


def _adapted(folded: FoldedText, match: Match, wanted: Wanted) -> Span:
    if wanted.new or not wanted.ends_line:
        new = adapt(match, wanted.new)
        joins = begins_with_line_end(folded.text, [match.start], wanted.old, wanted.new)
        return Span(match.start + joins, match.end, new)
    # Whole lines go, with the end of the last one, which `old` may have.
    has_end = len(match.old) > 1 and not match.old[-1].units
    end = match.end if has_end else folded.text.find("\n", match.end) + 1
    return Span(folded.line_start(match.first), end or len(folded.text), "")


def _lines_of(text: str, span: Span) -> tuple[str, str]:
    """Return the whole lines around a span, before and after the edit."""
    start = text.rfind("\n", 0, span.start) + 1
    end = text.find("\n", span.end)
    end = len(text) if end < 0 else end
    return text[start:end], text[start : span.start] + span.new + text[span.end : end]


def hidden_value_error() -> ToolError:
    """Return the error for a text with the placeholder of a hidden value."""
    return ToolError(
        f"the text contains {REPLACEMENT}, which stands for a hidden value", advice="edit around it"
    )


def _fill(file: TextFile, new: str, shown: str) -> Edited:
    """Return the new text of a missing or empty file."""
    if file.text.strip():
        raise ToolError(
            f"`old` is empty, but {shown} is not",
            advice="give the text to replace in `old`, or use `write` for the whole file",
        )
    if not new:
        raise ToolError("`old` and `new` are empty; nothing would change")
    return Edited(text=new, line=1, places=((file.text, new),))


def _several(text: str, places: Sequence[int], shown: str, expected: str = "") -> ToolError:
    numbers = [text.count("\n", 0, place) + 1 for place in places[:_LINES_NAMED]]
    named = ", ".join(str(number) for number in numbers)
    more = " and more" if len(places) > _LINES_NAMED else ""
    counted = f"the text to replace is in {shown} {len(places)} times (lines {named}{more})"
    return ToolError(
        f"{counted}{expected}",
        advice="add lines around it in `old` until it is unique, or set `all`"
        + lines_that_differ(text.split("\n"), numbers),
        shown=counted,
    )


def _occurrences(text: str, part: str) -> list[int]:
    places = []
    at = text.find(part)
    while at >= 0:
        places.append(at)
        at = text.find(part, at + len(part))
    return places


def _splice(file: TextFile, text: str, spans: Sequence[Span]) -> str:
    """Return the file's text with each span replaced; `text` is the same with LF line endings."""
    # Where in `text` a line feed stands for CRLF, to find each place in the file's own text.
    crlf: list[int] = []
    at = file.text.find("\r\n")
    while at >= 0:
        crlf.append(at - len(crlf))
        at = file.text.find("\r\n", at + 2)
    pieces = []
    done = 0
    for span in spans:
        first, end, new = _without_common_ends(text, span)
        start = first + bisect.bisect_left(crlf, first)
        line_end = text.find("\n", first)
        is_crlf = _has(crlf, line_end) if line_end >= 0 else file.newline == "\r\n"
        pieces.append(file.text[done:start])
        pieces.append(new.replace("\n", "\r\n") if is_crlf else new)
        done = end + bisect.bisect_left(crlf, end)
    pieces.append(file.text[done:])
    return "".join(pieces)


def _without_common_ends(text: str, span: Span) -> tuple[int, int, str]:
    """Shrink a span by unchanged lines at its ends, which keep their own line endings."""
    old, new = text[span.start : span.end], span.new
    before = 0
    while (end := old.find("\n", before) + 1) and new.startswith(old[before:end], before):
        before = end
    old, new = old[before:], new[before:]
    after = 0
    while (begin := old.rfind("\n", 0, len(old) - after)) >= 0:
        if not new.endswith(old[begin:]):
            break
        after = len(old) - begin
    return span.start + before, span.end - after, new[: len(new) - after]


def _has(items: list[int], item: int) -> bool:
    """Whether a sorted list has an item."""
    at = bisect.bisect_left(items, item)
    return at < len(items) and items[at] == item
