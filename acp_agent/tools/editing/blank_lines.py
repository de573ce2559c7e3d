"""An edit whose lines are in the file, with other blank lines between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, pairwise

import msgspec

from acp_agent.tools.editing.adapt import UnclearError, source_lines
from acp_agent.tools.editing.folding import Line, find_lines, parse
from acp_agent.tools.editing.matching import EditVariant, FoldedText
from acp_agent.tools.editing.nearest import quote_lines


def with_file_blank_lines(file: FoldedText, variant: EditVariant) -> EditVariant | None:
    """The edit with the blank lines of the file.

    None if its own lines are not there in one place, or end with blank ones.

    Raises:
        UnclearError: `new` changes lines where `old` has other blank lines than the file.
    """
    lines = variant.old.split("\n")
    if len(lines) < 2 or file.line_forms[lines[0]] not in file.forms:
        return None
    forms = [file.line_forms[line] for line in lines]
    old_forms = list(filter(None, forms))
    if len(old_forms) < 2 or not (forms[0] and forms[-1]):
        return None
    file_indices = [number for number, form in enumerate(file.forms) if form]
    file_forms = [file.forms[number] for number in file_indices]
    starts = list(islice(find_lines(file_forms, old_forms), 2))
    if len(starts) != 1:
        return None
    old = [parse(line) for line in lines]
    old_indices = _nonblank_indices(old)
    numbers = file_indices[starts[0] : starts[0] + len(old_forms)]
    gaps = _gaps(numbers)
    spaced_lines = [
        lines[index] + "\n" * gap for index, gap in zip(old_indices, (*gaps, 0), strict=True)
    ]
    in_file = "\n".join(spaced_lines)
    new = _new_with_gaps(old, variant.new.split("\n"), gaps)
    if new is None:
        raise UnclearError(
            "`old` has other blank lines than the file, where `new` changes lines",
            advice=f"give `old` as it is; {quote_lines(file.lines, numbers[0], in_file)}",
        )
    return msgspec.structs.replace(
        variant,
        old=in_file,
        new=new,
        notes=(*variant.notes, "blank lines"),
        starts_line=True,
        ends_line=True,
        line=numbers[0] + 1,
        distance=2,
    )


def _new_with_gaps(old: Sequence[Line], new: Sequence[str], gaps: Sequence[int]) -> str | None:
    """`new` with the blank lines of the file between lines that it leaves together.

    Where it changes lines it has those of the file already; None if it has not.
    """
    parsed = [parse(line) for line in new]
    old_indices = _nonblank_indices(old)
    old_gaps = _gaps(old_indices)
    order = {index: number for number, index in enumerate(old_indices)}
    sources = {
        index: order[source] for index, source in source_lines(old, parsed) if source in order
    }
    # Both ends count as shared lines.
    shared = [(-1, -1), *sorted(sources.items()), (len(new), len(old_indices))]
    result = list(new)
    for (before, first), (after, last) in reversed(list(pairwise(shared))):
        between = range(max(first, 0), min(last, len(gaps)))
        if all(gaps[number] == old_gaps[number] for number in between):
            continue
        blank = sum(not line.strip() for line in new[before + 1 : after])
        is_split = last != first + 1 or blank != after - before - 1
        if not is_split and blank == old_gaps[first]:
            result[before + 1 : after] = [""] * gaps[first]
        elif is_split and blank != sum(gaps[number] for number in between):
            return None
    return "\n".join(result)


def _nonblank_indices(lines: Sequence[Line]) -> list[int]:
    """The indices of the lines that are not blank."""
    return [index for index, line in enumerate(lines) if line.units]


def _gaps(numbers: Sequence[int]) -> list[int]:
    """How many lines are between the lines with these numbers."""
    return [after - before - 1 for before, after in pairwise(numbers)]
