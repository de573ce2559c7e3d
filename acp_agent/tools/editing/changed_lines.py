"""The lines that an edit changed, with their numbers, as a model reads them."""

from __future__ import annotations

from acp_agent.diffs import changed_blocks
from acp_agent.workspace.file_io import with_lf

_CONTEXT_LINES = 2  # lines around what changed
_MAX_BLOCK_LINES = 24  # lines of one place
_MAX_LINES = 60  # of all places
_MAX_LINE_LENGTH = 200  # characters


def changed_lines(before: str, after: str) -> str:
    """What changed as it is now: number, tab, text; "" if nothing did.

    Long places are cut in the middle, and of many only the first are shown.
    """
    old, new = with_lf(before).split("\n"), with_lf(after).split("\n")
    ranges: list[tuple[int, int]] = []
    for block in changed_blocks(old, new):
        start, end = (
            max(0, block.new_start - _CONTEXT_LINES),
            min(len(new), block.new_end + _CONTEXT_LINES),
        )
        if ranges and start <= ranges[-1][1]:
            start = ranges.pop()[0]
        ranges.append((start, end))
    pieces: list[str] = []
    line_count = 0
    for start, end in ranges:
        if line_count >= _MAX_LINES:
            pieces.append("[more changed lines]")
            break
        line_count += min(end - start, _MAX_BLOCK_LINES)
        pieces.append(_numbered_lines(new, start, end))
    return "\nIt is now:\n" + "\n…\n".join(pieces) if pieces else ""


def _numbered_lines(lines: list[str], start: int, end: int) -> str:
    if end == len(lines) and lines[-1] == "":
        end -= 1  # not a line, but what follows the last line feed
    numbers = list(range(start, end))
    rows = [f"{number + 1}\t{_cut(lines[number])}" for number in numbers]
    if len(rows) > _MAX_BLOCK_LINES:
        half = _MAX_BLOCK_LINES // 2
        rows[half : len(rows) - half] = [f"[{len(rows) - 2 * half} more lines]"]
    return "\n".join(rows)


def _cut(line: str) -> str:
    return (
        line if len(line) <= _MAX_LINE_LENGTH else f"{line[:_MAX_LINE_LENGTH]} [… more characters]"
    )
