"""Cut the first and the last line of a match to what it covers."""

from __future__ import annotations

from collections.abc import Sequence

from acp_agent.tools.editing.folding import Line


def cut_lines(
    file: list[Line], column: int, last_length: int, old: Sequence[Line], length: int
) -> tuple[int, int] | None:
    """Cut what is not covered off the first and the last line.

    Returns:
        How many units were cut off at the beginning and at the end; None if a word would be.
    """
    cut_before = 0
    if column and old[0].units:
        cut_before = _boundary(file[0], column)
        if cut_before < 0 or not _between_words(file[0], cut_before):
            return None
        if old[0].indent and not file[0].units[cut_before - 1].raw.endswith(old[0].indent):
            return None
    elif column and column != len(file[0].form):
        return None
    if not old[-1].units and len(old) > 1:
        file[-1] = Line("", (), "")
        cut_after = 0
    else:
        end = column + length if len(old) == 1 else last_length
        count = _boundary(file[-1], end)
        cut_after = len(file[-1].units) - count
        if count < 0 or (cut_after and not _between_words(file[-1], count)):
            return None
        if cut_after and old[-1].trailing and file[-1].units[count].form != " ":
            return None
        if cut_after:
            file[-1] = Line(file[-1].indent, file[-1].units[:count], "")
    if column and old[0].units:
        file[0] = Line("", file[0].units[cut_before:], file[0].trailing)
    elif column:
        file[0] = Line("", (), "")  # its end alone
    return cut_before, cut_after


def _boundary(line: Line, column: int) -> int:
    """Return the number of units with this length in the folded text; -1 if it is inside a unit."""
    count = length = 0
    for unit in line.units:
        if length >= column:
            break
        length += len(unit.form)
        count += 1
    return count if length == column else -1


def _between_words(line: Line, index: int) -> bool:
    if not 0 < index < len(line.units):
        return True
    before, after = line.units[index - 1].form, line.units[index].form
    return not (_is_word(before[-1:]) and _is_word(after[:1]))


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"
