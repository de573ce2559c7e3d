"""Find the text in a file that is nearest to a missing one, so that a model can correct it."""

from __future__ import annotations

import difflib
import heapq
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from acp_agent.tools.editing.folding import find_lines, fold

_MAX_COMPARED_LINES = 20_000
_MAX_COMPARED_LENGTH = 300  # characters
_MAX_SKIMMED_LENGTH = 120  # characters, of each line of the file
_MAX_CANDIDATES = 50
_MIN_SIMILARITY = 0.6  # between 0 and 1; below it two lines are no more alike than any two
_MAX_SHOWN_LINES = 15
_MAX_SHOWN_LENGTH = 200  # characters
_MIN_DIFFERENCE_LINES = 3  # lines, from which on the first one that differs is named
_MAX_DISTANCE = 8  # lines above or below that may tell two places apart
_MAX_OCCURRENCES = 4


_MIN_MADE_LENGTH = 10  # characters of a new text that shows that the edit was made


def explain_absence(text: str, target: str, new: str = "") -> str:
    """Return why `target` may not be in `text`, with the nearest text and its lines.

    The edit may be made already: then the text has `new`. All have LF line endings. The work is
    bounded (the first 20,000 lines are compared) and takes up to some seconds for the largest
    files: call it in a thread.
    """
    target_lines = target.strip("\n").split("\n")
    if not target.strip():
        return "it is only white space: add text around it"
    at = text.find(new) if len(new.strip()) >= _MIN_MADE_LENGTH else -1
    if at >= 0:
        number = text.count("\n", 0, at) + 1
        return f"the new text is in line {number} already; {explain_absence(text, target)}"
    lines = text.split("\n")[:_MAX_COMPARED_LINES]
    start = _find_ignoring_white_space(lines, target_lines)
    if start is not None:
        nearest_lines = lines[start : start + len(target_lines)]
        return f"white space differs; {_quote(nearest_lines, start)}"
    joined = _find_joined(lines, target)
    if joined is not None:
        return f"line ends differ; {_quote(lines[slice(*joined)], joined[0])}"
    start = _find_nearest(lines, target_lines)
    if start is None:
        return "nor is anything like it: read the file again"
    nearest_lines = lines[start : start + len(target_lines)]
    return _quote(nearest_lines, start) + _first_difference(nearest_lines, target_lines, start)


def quote_lines(lines: Sequence[str], first: int, target: str) -> str:
    """Quote the lines from index `first` on, as many as `wanted` has, with their numbers."""
    lines = lines[first : first + target.strip("\n").count("\n") + 1]
    return _quote(lines, first)


def distinguishing_lines(lines: list[str], numbers: Sequence[int]) -> str:
    """Return nearby lines that distinguish some lines, given by their numbers from 1."""
    for distance in (*range(1, _MAX_DISTANCE), *range(-1, -_MAX_DISTANCE, -1)):
        nearby = [number - distance for number in numbers[:_MAX_OCCURRENCES]]
        if not all(0 < number <= len(lines) for number in nearby):
            continue
        texts = [lines[number - 1].strip()[:_MAX_SHOWN_LENGTH] for number in nearby]
        if all(texts) and len(set(texts)) == len(texts):
            rows = [f"{number}\t{lines[number - 1][:_MAX_SHOWN_LENGTH]}" for number in nearby]
            return "; what differs near them (number, tab, text):\n" + "\n".join(rows)
    return ""


def _quote(lines: Sequence[str], start: int) -> str:
    rows = [f"{start + 1 + at}\t{line[:_MAX_SHOWN_LENGTH]}" for at, line in enumerate(lines)]
    more = f"\n[{len(rows) - _MAX_SHOWN_LINES} more lines]" if len(rows) > _MAX_SHOWN_LINES else ""
    return (
        f"the nearest text begins in line {start + 1} (number, tab, text):\n"
        + "\n".join(rows[:_MAX_SHOWN_LINES])
        + more
    )


def _first_difference(file_lines: list[str], target_lines: list[str], start: int) -> str:
    """Return the first line that differs in more than form, if there are several."""
    if len(target_lines) < _MIN_DIFFERENCE_LINES:
        return ""
    for index, line in enumerate(target_lines):
        file_line = file_lines[index] if index < len(file_lines) else ""
        if fold(line) != fold(file_line):
            return (
                f"\nThe first difference is in line {start + index + 1}:\n"
                f"the file has {file_line.strip()[:_MAX_SHOWN_LENGTH]!r}\n"
                f"`old` has    {line.strip()[:_MAX_SHOWN_LENGTH]!r}"
            )
    return ""


def _find_ignoring_white_space(lines: list[str], target_lines: list[str]) -> int | None:
    """Return the index where the wanted lines begin, ignoring all white space."""
    keys = ["".join(line.split()) for line in lines]
    target_keys = ["".join(line.split()) for line in target_lines]
    start = next(find_lines(keys, target_keys), None)
    if start is not None:
        return start
    if len(target_keys) == 1:
        return next((at for at, key in enumerate(keys) if target_keys[0] in key), None)
    return None


def _find_joined(lines: list[str], target: str) -> tuple[int, int] | None:
    """Return the first and the last index (exclusive) of the wanted text with other line ends."""
    keys = ["".join(line.split()) for line in lines]
    key = "".join(target.split())
    at = "".join(keys).find(key)
    if at < 0:
        return None
    ends = list(accumulate(map(len, keys)))
    return bisect_right(ends, at), bisect_left(ends, at + len(key)) + 1


def _find_nearest(lines: list[str], target_lines: list[str]) -> int | None:
    """Return the index where text similar to the wanted lines begins."""
    stripped, targets = (
        [line.strip()[:_MAX_COMPARED_LENGTH].casefold() for line in each]
        for each in (lines, target_lines)
    )
    # Of the lines with letters or digits that the file has, the rarest anchors the comparison.
    common = {target for target in targets if any(c.isalnum() for c in target)} & set(stripped)
    if common:
        counts = Counter(stripped)
        anchor = min(common, key=lambda line: (counts[line], -len(line), line))
        return max(0, stripped.index(anchor) - targets.index(anchor))
    longest = max(targets, key=len)
    candidates = _candidates(stripped, longest)
    closest = _closest(longest, candidates) or _containing(longest, candidates)
    return None if closest is None else max(0, stripped.index(closest) - targets.index(longest))


def _closest(target: str, lines: list[str]) -> str | None:
    """Return the line that is most similar to the target; None if none is similar enough."""
    # Not get_close_matches: it takes the frequent characters of long lines for junk.
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(target)
    best, closest = _MIN_SIMILARITY, None
    for line in lines:
        matcher.set_seq1(line)
        if matcher.quick_ratio() > best and (similarity := matcher.ratio()) > best:
            best, closest = similarity, line
    return closest


def _containing(target: str, lines: list[str]) -> str | None:
    """Return the longer line that contains nearly all of the wanted one."""
    trigrams = _trigrams(target)
    shared = {line: len(trigrams & _trigrams(line)) for line in lines}
    best = max(shared, key=shared.__getitem__, default=None)
    return best if best is not None and shared[best] > _MIN_SIMILARITY * len(trigrams) else None


def _candidates(lines: list[str], target: str) -> list[str]:
    """Return the few lines that share most with the wanted one; comparing all takes too long."""
    trigrams = _trigrams(target)
    shared = {line: len(trigrams & _trigrams(line)) for line in dict.fromkeys(lines)}
    return heapq.nlargest(_MAX_CANDIDATES, shared, key=shared.__getitem__)


def _trigrams(line: str) -> set[str]:
    return {line[at : at + 3] for at in range(min(len(line), _MAX_SKIMMED_LENGTH) - 2)}
