"""Find the problems that are new after a change, although their lines may have moved."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Callable, Sequence

import msgspec

from acp_agent.language_servers.positions import split_lines
from acp_agent.language_servers.problems import Problem

_NUMBER = re.compile(r"\d+")
ANYWHERE = 0  # in place of a line that was changed
_MOST_COMPARED = 500  # changed lines that are compared one by one

Key = tuple[str, str, str, str, str]


def key_of(problem: Problem) -> Key:
    """Return a key that stays the same if a problem only moves.

    Messages name lines at times, which move as well, so numbers do not count.
    """
    message = _NUMBER.sub("#", problem.message)
    return (problem.path, problem.severity, problem.source, problem.code, message)


def moved_problems(
    problems: Sequence[Problem], moved: Callable[[int], int | None]
) -> tuple[Problem, ...]:
    """Return the problems of a file at the lines where they are after a change.

    Args:
        problems: as they were before it.
        moved: returns where a line is now; one that was changed is `ANYWHERE`.
    """
    return tuple(msgspec.structs.replace(one, line=moved(one.line) or ANYWHERE) for one in problems)


def new_problems(before: Sequence[Problem], after: Sequence[Problem]) -> list[Problem]:
    """Return the problems of one file that were not there before a change.

    Args:
        before: its problems then, at their lines now; see `moved_problems`.
        after: its problems now.
    """
    old_lines: dict[Key, list[int]] = defaultdict(list)
    for problem in before:
        old_lines[key_of(problem)].append(problem.line)
    found = after
    for changed in (False, True):  # one in a changed line is the same as one of such a line
        unmatched: list[Problem] = []
        for problem in found:
            lines = old_lines.get(key_of(problem), [])
            line = ANYWHERE if changed else problem.line
            if line in lines:
                lines.remove(line)
            else:
                unmatched.append(problem)
        found = unmatched
    return list(found)


def line_moves(old: str, new: str) -> Callable[[int], int | None]:
    """Return a function from a line of `old`, from 1, to the same line in `new`."""
    before, after = split_lines(old), split_lines(new)
    head = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        head += 1
    tail = 0
    most = min(len(before), len(after)) - head
    while tail < most and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    shift = len(after) - len(before)
    middle = _middle(before[head : len(before) - tail], after[head : len(after) - tail], head)

    def moved(line: int) -> int | None:
        index = line - 1
        if index < head:
            return line
        if index >= len(before) - tail:
            return line + shift
        return middle.get(line)

    return moved


def _middle(before: list[str], after: list[str], head: int) -> dict[int, int]:
    if not before or not after or max(len(before), len(after)) > _MOST_COMPARED:
        return {}
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    return {
        head + block.a + at + 1: head + block.b + at + 1
        for block in matcher.get_matching_blocks()
        for at in range(block.size)
    }
