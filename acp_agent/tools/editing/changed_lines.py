"""The lines that an edit changed, with their numbers, as a model reads them."""

from __future__ import annotations

from acp_agent.diffs import changed_blocks
from acp_agent.workspace.file_io import with_lf

_CONTEXT = 2  # lines around what changed
_BLOCK = 24  # lines of one place
_LINES = 60  # of all places
_LINE = 200  # characters


def changed_lines(before: str, after: str) -> str:
    """What changed as it is now: number, tab, text; "" if nothing did.

    Long places are cut in the middle, and of many only the first are shown.
    """
    old, new = with_lf(before).split("\n"), with_lf(after).split("\n")
    ranges: list[tuple[int, int]] = []
    for block in changed_blocks(old, new):
        start, end = max(0, block.new_start - _CONTEXT), min(len(new), block.new_end + _CONTEXT)
        if ranges and start <= ranges[-1][1]:
            start = ranges.pop()[0]
        ranges.append((start, end))
    pieces: list[str] = []
    shown = 0
    for start, end in ranges:
        if shown >= _LINES:
            pieces.append("[more changed lines]")
            break
        shown += min(end - start, _BLOCK)
        pieces.append(_numbered(new, start, end))
    return "\nIt is now:\n" + "\n…\n".join(pieces) if pieces else ""


def _numbered(lines: list[str], start: int, end: int) -> str:
    if end == len(lines) and lines[-1] == "":
        end -= 1  # not a line, but what follows the last line feed
    numbers = list(range(start, end))
    rows = [f"{number + 1}\t{_cut(lines[number])}" for number in numbers]
    if len(rows) > _BLOCK:
        half = _BLOCK // 2
        rows[half : len(rows) - half] = [f"[{len(rows) - 2 * half} more lines]"]
    return "\n".join(rows)


def _cut(line: str) -> str:
    return line if len(line) <= _LINE else f"{line[:_LINE]} [… more characters]"
