"""Line diffs: the shortest edit script in bounded time, and the hunks of a unified diff.

Sources: E. W. Myers, "An O(ND) Difference Algorithm and Its Variations" (1986), the greedy
algorithm of section 4; POSIX.1-2024, diff, "Diff -u or -U Output Format".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

# Removed and added lines, up to which the shortest script is searched. The time grows with the
# square: this many take some ten milliseconds, which the event loop can spare. More than that is a
# rewritten text, and is shown as one.
MAX_EDITS = 400
CONTEXT = 3  # lines around what changed
NO_END = "\\ No newline at end of file\n"  # stands below a line that has none
Mark = Literal[" ", "-", "+"]


class Block(Struct, frozen=True):
    """Lines `old_start` to `old_end` of the old text became `new_start` to `new_end` of the new.

    Counted from 0, the end is not part of it.
    """

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def changed_blocks(old: Sequence[str], new: Sequence[str]) -> list[Block]:
    """Return the blocks of lines that differ, in order."""
    start = 0
    shorter = min(len(old), len(new))
    while start < shorter and old[start] == new[start]:
        start += 1
    after = 0
    while after < shorter - start and old[-1 - after] == new[-1 - after]:
        after += 1
    old_middle, new_middle = old[start : len(old) - after], new[start : len(new) - after]
    if not old_middle and not new_middle:
        return []
    middle = Block(start, len(old) - after, start, len(new) - after)
    if not old_middle or not new_middle:
        return [middle]
    trail = _search(old_middle, new_middle)
    if trail is None:
        return [middle]
    unchanged = [
        (start + x, start + y) for x, y in _unchanged_lines(trail, len(old_middle), len(new_middle))
    ]
    return list(_between(unchanged, middle))


def _search(old: Sequence[str], new: Sequence[str]) -> list[dict[int, int]] | None:
    """Return the furthest points before each number of edits, up to the one that reaches the end.

    A diagonal `k` is where `x - y == k`; its furthest point is given by `x`. None: it took more
    edits than are searched for.
    """
    ends = len(old) - len(new)
    furthest = {1: 0}
    trail: list[dict[int, int]] = []
    for edits in range(min(len(old) + len(new), MAX_EDITS) + 1):
        trail.append(furthest.copy())
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and furthest[k - 1] < furthest[k + 1])
            x = furthest[k + 1] if down else furthest[k - 1] + 1
            y = x - k
            while x < len(old) and y < len(new) and old[x] == new[y]:
                x += 1
                y += 1
            furthest[k] = x
            if k == ends and x >= len(old):
                return trail
    return None


def _unchanged_lines(trail: Sequence[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    """Return the pairs of unchanged lines, by tracing the search back."""
    unchanged: list[tuple[int, int]] = []
    for edits in range(len(trail) - 1, -1, -1):
        furthest, k = trail[edits], x - y
        down = k == -edits or (k != edits and furthest[k - 1] < furthest[k + 1])
        before = k + 1 if down else k - 1
        from_x = furthest[before] if edits else 0
        from_y = from_x - before if edits else 0
        while x > from_x and y > from_y:
            x, y = x - 1, y - 1
            unchanged.append((x, y))
        x, y = from_x, from_y
    unchanged.reverse()
    return unchanged


def _between(unchanged: Sequence[tuple[int, int]], middle: Block) -> Iterator[Block]:
    old, new = middle.old_start, middle.new_start
    for x, y in [*unchanged, (middle.old_end, middle.new_end)]:
        if x > old or y > new:
            yield Block(old, x, new, y)
        old, new = x + 1, y + 1


class Hunk(NamedTuple):
    """Adjacent changes with the lines around them.

    Attributes:
        header: the ranges in both texts, with its line end.
        runs: lines that stayed, went or came, as they are in their text; no run is empty.
    """

    header: str
    runs: list[tuple[Mark, Sequence[str]]]


def split_lines(text: str) -> list[str]:
    """Return the lines with their ends. A carriage return is part of its line, as it is to diff."""
    *lines, last = text.split("\n")
    ended = [f"{line}\n" for line in lines]
    return [*ended, last] if last else ended


def hunks(
    old: Sequence[str], new: Sequence[str], blocks: Sequence[Block], context: int = CONTEXT
) -> Iterator[Hunk]:
    """Return the hunks of `blocks`, which turn the lines of `old` into those of `new`."""
    group: list[Block] = []
    for block in blocks:
        if group and block.old_start - group[-1].old_end > 2 * context:
            yield _hunk(group, old, new, context)
            group = []
        group.append(block)
    if group:
        yield _hunk(group, old, new, context)


def _hunk(group: Sequence[Block], old: Sequence[str], new: Sequence[str], context: int) -> Hunk:
    first, last = group[0], group[-1]
    before = min(context, first.old_start)
    after = min(context, len(old) - last.old_end)
    old_range = _range(first.old_start - before, last.old_end + after)
    new_range = _range(first.new_start - before, last.new_end + after)
    runs: list[tuple[Mark, Sequence[str]]] = []
    at = first.old_start - before
    for block in group:
        runs.append((" ", old[at : block.old_start]))
        runs.append(("-", old[block.old_start : block.old_end]))
        runs.append(("+", new[block.new_start : block.new_end]))
        at = block.old_end
    runs.append((" ", old[at : last.old_end + after]))
    return Hunk(f"@@ -{old_range} +{new_range} @@\n", [run for run in runs if run[1]])


def _range(start: int, end: int) -> str:
    """Lines from 1; of none, the line before them."""
    count = end - start
    if count == 0:
        return f"{start},0"
    return str(start + 1) if count == 1 else f"{start + 1},{count}"


def merge_changes(original: str, first: str, second: str) -> str | None:
    """Return a text with the changes of both texts; None if they change the same lines."""
    base_lines, first_lines, second_lines = (
        text.splitlines(keepends=True) for text in (original, first, second)
    )
    blocks = [(block, first_lines) for block in changed_blocks(base_lines, first_lines)]
    blocks += [(block, second_lines) for block in changed_blocks(base_lines, second_lines)]
    result: list[str] = []
    position = 0
    inserted: int | None = None  # where the last block only inserts lines
    for block, lines in sorted(blocks, key=lambda item: (item[0].old_start, item[0].old_end)):
        inserts = block.old_start == block.old_end
        if block.old_start < position or (inserts and inserted == block.old_start):
            return None  # lines that are inserted at one place have no certain order
        inserted = block.old_start if inserts else None
        result += base_lines[position : block.old_start] + lines[block.new_start : block.new_end]
        position = block.old_end
    return "".join(result + base_lines[position:])
