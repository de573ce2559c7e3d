"""Replace texts in a file, one after the other, and leave every other byte as it is."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import msgspec
from msgspec import Struct

from acp_agent.diffs import merge_changes
from acp_agent.errors import ToolError
from acp_agent.tools.editing.adapt import adapt
from acp_agent.tools.editing.escapes import refuse_decoded_backslash, with_line_end
from acp_agent.tools.editing.folding import LineForms
from acp_agent.tools.editing.matching import EditVariant, FoldedText, Match, form_kinds
from acp_agent.tools.editing.nearest import distinguishing_lines, explain_absence, quote_lines
from acp_agent.tools.editing.new_text import correct_new_text
from acp_agent.tools.editing.placeholders import refuse_omission, refuse_placeholder
from acp_agent.tools.editing.repetition import repeated_lines
from acp_agent.tools.editing.spacing import (
    with_file_blank_lines,
    with_file_escapes,
    with_file_spacing,
)
from acp_agent.tools.editing.variants import (
    begins_in_indentation,
    begins_with_line_end,
    deleted_line_start,
    differs_only_in_form,
    edit_variants,
    indented_block,
)
from acp_agent.workspace.file_io import TextFile, with_lf
from acp_agent.workspace.scrub import REPLACEMENT

_MAX_REPORTED_LINES = 10
_MAX_NORMALIZED_LENGTH = 250_000  # characters of an edit whose `old` is not in the file exactly
END_OF_FILE = -1  # as a line to insert after


class Edit(Struct, frozen=True):
    """One replacement: `old` by `new`, at its only place or, with `replace_all`, at each.

    With `after_line`, `new` is inserted after this line instead, 0 for the beginning of the file.
    `expected_count` is the expected number of occurrences. `near_line` is the line where `old` is,
    if it has several places.
    """

    old: str
    new: str
    replace_all: bool = False
    after_line: int | None = None
    expected_count: int | None = None
    near_line: int | None = None


class Span(Struct, frozen=True):
    """A part of a text with LF line endings, and its replacement."""

    start: int
    end: int
    new: str


class EditResult(Struct, frozen=True):
    """A file's text after its edits.

    `line` is where the first edit begins, from 1. `changes` are the lines that were changed, before
    and after, in order. `notes` say what was normalised to find them. `view` is the text before and
    after as it is shown, where that is not the text of the file. `repeated`: see `repeated_lines`.
    """

    text: str
    line: int
    changes: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()
    view: tuple[str, str] | None = None
    repeated: str = ""


def apply_edits(file: TextFile, edits: Sequence[Edit], display_path: str) -> EditResult:
    """Make all edits, each in the result of the one before, or else in the text before all.

    New text gets the line endings of the text that it replaces, so a file with mixed line endings
    keeps all others. The work is bounded and takes up to some seconds for the largest files: call
    it in a thread.

    Raises:
        ToolError: one of them cannot be made; the message says which, where there are several.
    """
    results: list[EditResult] = []
    original = file
    forms = LineForms()
    done: set[Edit] = set()
    for number, edit in enumerate(edits, 1):
        if edit in done and edit.old and not edit.replace_all:
            continue  # given twice by mistake: a second place would be ambiguous
        done.add(edit)
        try:
            refuse_placeholder(edit.new, original.text)
            refuse_decoded_backslash(edit.new, edit.old, original.text)
            refuse_omission(edit.old, edit.new, original.text, display_path)
            apply = partial(_apply, edit=edit, display_path=display_path, forms=forms)
            results.append(apply_to_current_or_original(file, original, apply))
        except ToolError as error:
            if len(edits) == 1:
                raise
            raise ToolError(
                f"edit {number} of {len(edits)}: {error.shown}; none was made", advice=error.advice
            ) from error
        file = msgspec.structs.replace(file, text=results[-1].text)
    return EditResult(
        text=file.text,
        line=results[0].line,
        changes=tuple(change for result in results for change in result.changes),
        notes=tuple(dict.fromkeys(note for result in results for note in result.notes)),
        repeated=next((result.repeated for result in results if result.repeated), ""),
    )


def apply_to_current_or_original(
    file: TextFile, original: TextFile, apply: Callable[[TextFile], EditResult]
) -> EditResult:
    """Make an edit in the current text or, if it has no place there, in the original one.

    Raises:
        ToolError: it has a place in neither, or changes lines that the others changed.
    """
    try:
        return apply(file)
    except ToolError:
        with suppress(ToolError):
            result = apply(original)
            text = merge_changes(original.text, file.text, result.text)
            if text is not None:
                return msgspec.structs.replace(result, text=text)
        raise


def _apply(file: TextFile, edit: Edit, display_path: str, forms: LineForms) -> EditResult:
    old, new = with_lf(edit.old), with_lf(edit.new)
    text = with_lf(file.text)
    if edit.after_line is not None:
        spans: Sequence[Span] = [_insertion(text, edit.after_line, new, display_path)]
        return _edit_result(file, text, spans, ())
    if not old:
        return _fill_empty_file(file, new, display_path)
    if old == new:
        raise ToolError(
            "`old` and `new` are the same; nothing would change",
            advice="leave the edit out, or give the new text in `new`",
        )
    new, corrections = correct_new_text(old, new, text, display_path)
    fold = partial(FoldedText, text, forms)
    if edit.near_line is not None and not edit.replace_all:
        offset = _line_offset(text, edit.near_line)
        if text.startswith(old, offset) and text.find(old) not in {-1, offset}:
            return _edit_result(file, text, [Span(offset, offset + len(old), new)], corrections)
    spans, notes = _spans(
        text, old, new, fold, replace_all=edit.replace_all, display_path=display_path
    )
    if edit.expected_count not in {None, len(spans)}:
        raise _ambiguity_error(
            text, [span.start for span in spans], display_path, f", not {edit.expected_count} times"
        )
    return _edit_result(file, text, spans, (*corrections, *notes))


def _edit_result(
    file: TextFile, text: str, spans: Sequence[Span], notes: tuple[str, ...]
) -> EditResult:
    return EditResult(
        text=_splice(file, text, spans),
        line=text.count("\n", 0, spans[0].start) + 1,
        changes=tuple(_changed_lines(text, span) for span in spans),
        notes=notes,
        repeated=repeated_lines(text, spans[0].start, spans[0].end, spans[0].new),
    )


def _line_offset(text: str, number: int) -> int:
    """Return where a line begins, or the last one if there are fewer."""
    return len(text) - len(text.split("\n", max(0, number - 1))[-1])


def _insertion(text: str, after_line: int, new: str, display_path: str) -> Span:
    lines = text.splitlines(keepends=True)
    after_line = len(lines) if after_line == END_OF_FILE else after_line
    if not 0 <= after_line <= len(lines):
        raise ToolError(f"{display_path} has {len(lines)} lines; there is no line {after_line}")
    offset = sum(map(len, lines[:after_line]))
    if after_line and not lines[after_line - 1].endswith("\n"):
        return Span(offset, offset, "\n" + new.removesuffix("\n"))
    return Span(offset, offset, new if new.endswith("\n") else new + "\n")


def _spans(
    text: str,
    old: str,
    new: str,
    fold: Callable[[], FoldedText],
    *,
    replace_all: bool,
    display_path: str,
) -> tuple[list[Span], tuple[str, ...]]:
    """Return the spans to replace, and what was normalised to find them.

    Raises:
        ToolError: there is no such place, or more than one.
    """
    exact = _occurrences(text, old)
    if exact and not begins_in_indentation(text, exact[0], old, new):
        overlap = text.find(old, exact[0] + 1, exact[0] + 2 * len(old))
        overlaps = exact if overlap < 0 else [exact[0], overlap]
        if len(overlaps) > 1 and not replace_all:
            raise _ambiguity_error(text, exact if len(exact) > 1 else overlaps, display_path)
        starts = [deleted_line_start(text, at, old) for at in exact]
        if not new and None not in starts:
            ends = [at + len(old) + 1 for at in exact]
            spans = [
                Span(at, end, "") for at, end in zip(starts, ends, strict=True) if at is not None
            ]
            return spans, ("the line end after `old`",)
        full_new = with_line_end(old, new)
        if full_new != new and all(text[:at].endswith(("\n", "")[at == 0]) for at in exact):
            note = "the last line end of `new`"
            return [Span(at, at + len(old), full_new) for at in exact], (note,)
        if begins_with_line_end(text, exact, old, new):
            return [Span(at + 1, at + len(old), new) for at in exact], (
                "the line end before `new`",
            )
        block = indented_block(text, exact, old, new, display_path)
        return [Span(at, at + len(old), block) for at in exact], ("indentation",) * (block != new)
    if REPLACEMENT in old:
        raise hidden_value_error()
    if len(old) + len(new) > _MAX_NORMALIZED_LENGTH:
        raise ToolError(
            f"the text to replace is not in {display_path}",
            advice="make smaller edits: it is compared exactly, since it is so long; "
            f"{explain_absence(text, old)}",
        )
    folded = fold()
    variants = edit_variants(old, new)
    candidates = [(variant, matches) for variant in variants if (matches := folded.find(variant))]
    for respace in (with_file_blank_lines, with_file_spacing, with_file_escapes):
        candidates = candidates or [
            (respaced, matches)
            for variant in variants
            if (respaced := respace(folded, variant)) and (matches := folded.find(respaced))
        ]
    if candidates:
        variant, matches = min(candidates, key=lambda candidate: _distance(*candidate))
        # Another place may have all of `old`, which this variant does not: both may be meant.
        places = {match.start: match.end for match in matches}
        for other, found in candidates:
            if other.distance < variant.distance:
                places |= {
                    match.start: match.end
                    for match in found
                    if all(match.start >= end or match.end <= at for at, end in places.items())
                }
        if len(places) > 1 and not replace_all:
            raise _ambiguity_error(text, sorted(places), display_path)
        if differs_only_in_form(variant) and not _has_other_changes(text, variant, matches[0]):
            raise ToolError(
                f"`old` is not in {display_path} as it is, and `new` differs only in form; "
                "nothing would change",
                advice=f"give `old` exactly; {quote_lines(folded.lines, matches[0].first, old)}",
            )
        spans = [_adapted_span(folded, match, variant) for match in matches]
        spans = [span for span in spans if text[span.start : span.end] != span.new]
        if not spans:
            raise ToolError(f"{display_path} has the new text already; nothing would change")
        return spans, (*variant.notes, *matches[0].notes)
    advice = explain_absence(text, old, new)
    if lines := folded.lines_with_words(old):
        numbers = ", ".join(str(line) for line in lines)
        advice = f"its words are in line {numbers}, indented or spaced otherwise; {advice}"
    raise ToolError(f"the text to replace is not in {display_path}", advice=advice)


def _has_other_changes(text: str, variant: EditVariant, match: Match) -> bool:
    """Return whether `new` differs from `old`, or from the file, otherwise than these two do."""
    return any(
        not match.kinds & form_kinds(before, variant.new)
        for before in (variant.old, text[match.start : match.end])
    )


def _distance(variant: EditVariant, matches: Sequence[Match]) -> tuple[int, int]:
    """Return how far a match is from `old`."""
    return max(variant.distance, matches[0].level), len(variant.notes)


def _adapted_span(folded: FoldedText, match: Match, variant: EditVariant) -> Span:
    if variant.new or not variant.ends_line:
        new = adapt(match, variant.new)
        joins = begins_with_line_end(folded.text, [match.start], variant.old, variant.new)
        return Span(match.start + joins, match.end, new)
    # Whole lines go, with the end of the last one, which `old` may have.
    has_end = len(match.old) > 1 and not match.old[-1].units
    end = match.end if has_end else folded.text.find("\n", match.end) + 1
    return Span(folded.line_start(match.first), end or len(folded.text), "")


def _changed_lines(text: str, span: Span) -> tuple[str, str]:
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


def _fill_empty_file(file: TextFile, new: str, display_path: str) -> EditResult:
    """Return the new text of a missing or empty file."""
    if file.text.strip():
        raise ToolError(
            f"`old` is empty, but {display_path} is not",
            advice="give the text to replace in `old`, or use `write` for the whole file",
        )
    if not new:
        raise ToolError("`old` and `new` are empty; nothing would change")
    return EditResult(text=new, line=1, changes=((file.text, new),))


def _ambiguity_error(
    text: str, offsets: Sequence[int], display_path: str, expected_note: str = ""
) -> ToolError:
    numbers = [text.count("\n", 0, offset) + 1 for offset in offsets[:_MAX_REPORTED_LINES]]
    lines = ", ".join(map(str, numbers)) + " and more" * (len(offsets) > len(numbers))
    summary = f"the text to replace is in {display_path} {len(offsets)} times (lines {lines})"
    return ToolError(
        f"{summary}{expected_note}",
        advice="add lines around it in `old` until it is unique, or set `all`"
        + distinguishing_lines(text.split("\n"), numbers),
        shown=summary,
    )


def _occurrences(text: str, target: str) -> list[int]:
    offsets = []
    offset = text.find(target)
    while offset >= 0:
        offsets.append(offset)
        offset = text.find(target, offset + len(target))
    return offsets


def _splice(file: TextFile, text: str, spans: Sequence[Span]) -> str:
    """Return the file's text with each span replaced; `text` is the same with LF line endings."""
    # Where in `text` a line feed stands for CRLF, to find each place in the file's own text.
    crlf: list[int] = []
    offset = file.text.find("\r\n") if "\r" in file.text else -1
    while offset >= 0:
        crlf.append(offset - len(crlf))
        offset = file.text.find("\r\n", offset + 2)
    pieces = []
    position = 0
    for span in spans:
        first, end, new = _without_common_ends(text, span)
        start = first + bisect.bisect_left(crlf, first)
        line_end = text.find("\n", first)
        at_end = bisect.bisect_left(crlf, line_end)
        is_crlf = line_end in crlf[at_end : at_end + 1] if line_end >= 0 else file.newline == "\r\n"
        pieces.append(file.text[position:start])
        pieces.append(new.replace("\n", "\r\n") if is_crlf else new)
        position = end + bisect.bisect_left(crlf, end)
    pieces.append(file.text[position:])
    return "".join(pieces)


def _without_common_ends(text: str, span: Span) -> tuple[int, int, str]:
    """Shrink a span by unchanged lines at its ends, which keep their own line endings."""
    old, new = text[span.start : span.end], span.new
    prefix_length = 0
    while (end := old.find("\n", prefix_length) + 1) and new.startswith(
        old[prefix_length:end], prefix_length
    ):
        prefix_length = end
    old, new = old[prefix_length:], new[prefix_length:]
    suffix_length = 0
    while (line_start := old.rfind("\n", 0, len(old) - suffix_length)) >= 0:
        line = old[line_start : len(old) - suffix_length]
        if not new.endswith(line, 0, len(new) - suffix_length):
            break
        suffix_length = len(old) - line_start
    return span.start + prefix_length, span.end - suffix_length, new[: len(new) - suffix_length]
