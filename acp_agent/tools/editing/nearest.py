"""Find the text in a file that is nearest to a missing one, so that a model can correct it."""

from __future__ import annotations

import difflib
import heapq
from collections import Counter
from collections.abc import Sequence

from acp_agent.tools.editing.folding import fold

_LINES_COMPARED = 20_000
_LINE_COMPARED = 300  # characters
_LINE_SKIMMED = 120  # characters, of each line of the file
_CANDIDATES = 50
_LIKENESS = 0.6  # between 0 and 1; below it two lines are no more alike than any two
_LINES_SHOWN = 15
_LINE_SHOWN = 200  # characters
_LONG = 3  # lines, from which on the first one that differs is named
_NEAR = 8  # lines above or below that may tell two places apart
_PLACES = 4


def explain_absence(text: str, wanted: str) -> str:
    """Return why `wanted` may not be in `text`, with the nearest text and its lines.

    Both have LF line endings. The work is bounded (the first 20,000 lines are compared) and takes
    up to some seconds for the largest files: call it in a thread.
    """
    wanted_lines = wanted.strip("\n").split("\n")
    if not wanted.strip():
        return "it is only white space: add text around it"
    lines = text.split("\n")[:_LINES_COMPARED]
    start = _same_but_for_white_space(lines, wanted_lines)
    if start is not None:
        found = lines[start : start + len(wanted_lines)]
        return f"white space differs; {_quote(found, start)}"
    start = _nearest(lines, wanted_lines)
    if start is None:
        return "nor is anything like it: read the file again"
    found = lines[start : start + len(wanted_lines)]
    return _quote(found, start) + _first_difference(found, wanted_lines, start)


def quote_lines(lines: Sequence[str], first: int, wanted: str) -> str:
    """Quote the lines from index `first` on, as many as `wanted` has, with their numbers."""
    lines = lines[first : first + wanted.strip("\n").count("\n") + 1]
    return _quote(lines, first)


def lines_that_differ(lines: list[str], numbers: Sequence[int]) -> str:
    """Return nearby lines that distinguish some lines, given by their numbers from 1."""
    for distance in (*range(1, _NEAR), *range(-1, -_NEAR, -1)):
        near = [number - distance for number in numbers[:_PLACES]]
        if not all(0 < number <= len(lines) for number in near):
            continue
        texts = [lines[number - 1].strip()[:_LINE_SHOWN] for number in near]
        if all(texts) and len(set(texts)) == len(texts):
            rows = [f"{number}\t{lines[number - 1][:_LINE_SHOWN]}" for number in near]
            return "; what differs near them (number, tab, text):\n" + "\n".join(rows)
    return ""


def _quote(lines: Sequence[str], start: int) -> str:
    rows = [f"{start + 1 + at}\t{line[:_LINE_SHOWN]}" for at, line in enumerate(lines)]
    more = f"\n[{len(rows) - _LINES_SHOWN} more lines]" if len(rows) > _LINES_SHOWN else ""
    return (
        f"the nearest text begins in line {start + 1} (number, tab, text):\n"
        + "\n".join(rows[:_LINES_SHOWN])
        + more
    )


def _first_difference(found: list[str], wanted: list[str], start: int) -> str:
    """Return the first line that differs in more than form, if there are several."""
    if len(wanted) < _LONG:
        return ""
    for index, line in enumerate(wanted):
        here = found[index] if index < len(found) else ""
        if fold(line) != fold(here):
            return (
                f"\nThe first difference is in line {start + index + 1}:\n"
                f"the file has {here.strip()[:_LINE_SHOWN]!r}\n"
                f"`old` has    {line.strip()[:_LINE_SHOWN]!r}"
            )
    return ""


def _same_but_for_white_space(lines: list[str], wanted: list[str]) -> int | None:
    """Return the index where the wanted lines begin, ignoring all white space."""
    keys = ["".join(line.split()) for line in lines]
    wanted_keys = ["".join(line.split()) for line in wanted]
    count = len(wanted_keys)
    for at in range(len(keys) - count + 1):
        if keys[at] == wanted_keys[0] and keys[at : at + count] == wanted_keys:
            return at
    if count == 1:
        return next((at for at, key in enumerate(keys) if wanted_keys[0] in key), None)
    return None


def _nearest(lines: list[str], wanted: list[str]) -> int | None:
    """Return the index where text similar to the wanted lines begins."""
    stripped = [line.strip()[:_LINE_COMPARED] for line in lines]
    targets = [line.strip()[:_LINE_COMPARED] for line in wanted]
    # Of the lines with letters or digits that the file has, the rarest anchors the comparison.
    common = {target for target in targets if any(c.isalnum() for c in target)} & set(stripped)
    if common:
        times = Counter(stripped)
        anchor = min(common, key=lambda line: (times[line], -len(line), line))
        return max(0, stripped.index(anchor) - targets.index(anchor))
    longest = max(targets, key=len)
    candidates = _candidates(stripped, longest)
    close = _closest(longest, candidates) or _containing(longest, candidates)
    return None if close is None else max(0, stripped.index(close) - targets.index(longest))


def _closest(wanted: str, lines: list[str]) -> str | None:
    """The line most like the wanted one, None if none is much like it."""
    # Not get_close_matches: it takes the frequent characters of long lines for junk.
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    best, closest = _LIKENESS, None
    for line in lines:
        matcher.set_seq1(line)
        if matcher.quick_ratio() > best and (likeness := matcher.ratio()) > best:
            best, closest = likeness, line
    return closest


def _containing(wanted: str, lines: list[str]) -> str | None:
    """Return the longer line that contains nearly all of the wanted one."""
    parts = _trigrams(wanted)
    shared = {line: len(parts & _trigrams(line)) for line in lines}
    best = max(shared, key=shared.__getitem__, default=None)
    return best if best is not None and shared[best] > _LIKENESS * len(parts) else None


def _candidates(lines: list[str], wanted: str) -> list[str]:
    """Return the few lines that share most with the wanted one; comparing all takes too long."""
    parts = _trigrams(wanted)
    shared = {line: len(parts & _trigrams(line)) for line in dict.fromkeys(lines)}
    return heapq.nlargest(_CANDIDATES, shared, key=shared.__getitem__)


def _trigrams(line: str) -> set[str]:
    return {line[at : at + 3] for at in range(min(len(line), _LINE_SKIMMED) - 2)}
