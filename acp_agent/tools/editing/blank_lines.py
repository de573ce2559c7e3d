"""An edit whose lines are in the file, with other blank lines between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from acp_agent.tools.editing.adapt import UnclearError, source_lines
from acp_agent.tools.editing.folding import Line, parse
from acp_agent.tools.editing.matching import FoldedText, Wanted
from acp_agent.tools.editing.nearest import quote_lines


def with_file_blank_lines(file: FoldedText, wanted: Wanted) -> Wanted | None:
    """The edit with the blank lines of the file.

    None if its own lines are not there in one place, or end with blank ones.

    Raises:
        UnclearError: `new` changes lines where `old` has other blank lines than the file.
    """
    old = [parse(line) for line in wanted.old.split("\n")]
    own = _filled(old)
    words = [old[at].form for at in own]
    if len(own) < 2 or not (old[0].units and old[-1].units and words[0] in file.forms):
        return None
    filled = [number for number, form in enumerate(file.forms) if form]
    forms = [file.forms[number] for number in filled]
    places = [at for at, form in enumerate(forms) if form == words[0]]
    places = [at for at in places if forms[at : at + len(words)] == words]
    if len(places) != 1:
        return None
    numbers = filled[places[0] : places[0] + len(words)]
    gaps = _gaps(numbers)
    given = wanted.old.split("\n")
    spread = [given[at] + "\n" * gap for at, gap in zip(own, (*gaps, 0), strict=True)]
    in_file = "\n".join(spread)
    new = _new_with_gaps(old, wanted.new.split("\n"), gaps)
    if new is None:
        raise UnclearError(
            "`old` has other blank lines than the file, where `new` changes lines",
            advice=f"give `old` as it is; {quote_lines(file.lines, numbers[0], in_file)}",
        )
    return msgspec.structs.replace(
        wanted,
        old=in_file,
        new=new,
        notes=(*wanted.notes, "blank lines"),
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
    own = _filled(old)
    given = _gaps(own)
    order = {at: number for number, at in enumerate(own)}
    sources = {at: order[source] for at, source in source_lines(old, parsed) if source in order}
    # Both ends count as shared lines.
    shared = [(-1, -1), *sorted(sources.items()), (len(new), len(own))]
    result = list(new)
    for (before, first), (after, last) in reversed(list(pairwise(shared))):
        between = range(max(first, 0), min(last, len(gaps)))
        if all(gaps[number] == given[number] for number in between):
            continue
        blank = sum(not line.strip() for line in new[before + 1 : after])
        is_parted = last != first + 1 or blank != after - before - 1
        if not is_parted and blank == given[first]:
            result[before + 1 : after] = [""] * gaps[first]
        elif is_parted and blank != sum(gaps[number] for number in between):
            return None
    return "\n".join(result)


def _filled(lines: Sequence[Line]) -> list[int]:
    """The indices of the lines that are not blank."""
    return [at for at, line in enumerate(lines) if line.units]


def _gaps(numbers: Sequence[int]) -> list[int]:
    """How many lines are between the lines with these numbers."""
    return [after - before - 1 for before, after in pairwise(numbers)]
