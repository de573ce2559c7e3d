"""Problems in files, and which of them are new after a change that may have moved their lines."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from acp_agent.content import printable_line
from acp_agent.language_servers.wire import split_lines
from acp_agent.workspace.file_io import display_path

Severity = Literal["error", "warning"]

_MAX_PROBLEMS = 10
_MAX_MESSAGE = 300  # characters of a message
_NUMBER = re.compile(r"\d+")
CHANGED_LINE = 0  # in place of a line that was changed
_MAX_COMPARED_LINES = 500  # changed lines that are compared one by one
Key = tuple[str, str, str, str, str]


class Problem(Struct, frozen=True, kw_only=True):
    """A problem in a file.

    `line` and `column` count from 1, the column in characters; `path` is absolute. `source` is who
    reports it: a language server, or the program that checked the syntax.
    """

    path: str
    line: int
    column: int = 1
    severity: Severity = "error"
    message: str
    code: str = ""
    source: str = ""


def describe_problems(problems: Sequence[Problem], root: Path) -> str:
    """Return problems as lines for the model and the user, errors first; "" if there are none.

    Args:
        problems: the problems, those of the most important files first.
    """
    ordered = sorted(problems, key=lambda entry: entry.severity != "error")
    rows = [_row(problem, root) for problem in ordered[:_MAX_PROBLEMS]]
    omitted = len(ordered) - len(rows)
    if omitted:
        rows.append(f"and {omitted} more")
    return "\n".join(rows)


def _row(problem: Problem, root: Path) -> str:
    location = f"{display_path(problem.path, root)}:{problem.line}:{problem.column}"
    origin = " ".join(filter(None, (problem.source, problem.code)))
    # What follows the first paragraph is background, such as all searched places.
    message = printable_line(problem.message.partition("\n\n")[0], _MAX_MESSAGE)
    return f"{location}: {problem.severity}: {message}" + (f" [{origin}]" if origin else "")


def problem_key(problem: Problem) -> Key:
    """Return a key that stays the same if a problem only moves.

    Messages name lines at times, which move as well, so numbers do not count.
    """
    message = _NUMBER.sub("#", problem.message)
    return (problem.path, problem.severity, problem.source, problem.code, message)


def moved_problems(
    problems: Sequence[Problem], new_line: Callable[[int], int | None]
) -> tuple[Problem, ...]:
    """Return the problems of a file at the lines where they are after a change.

    Args:
        problems: as they were before it.
        new_line: returns where a line is now; None for a changed one.
    """
    return tuple(
        msgspec.structs.replace(problem, line=new_line(problem.line) or CHANGED_LINE)
        for problem in problems
    )


def new_problems(before: Sequence[Problem], after: Sequence[Problem]) -> list[Problem]:
    """Return the problems of one file that were not there before a change.

    Args:
        before: its problems then, at their lines now; see `moved_problems`.
        after: its problems now.
    """
    old_lines: dict[Key, list[int]] = defaultdict(list)
    for problem in before:
        old_lines[problem_key(problem)].append(problem.line)
    remaining = after
    for in_changed_line in (False, True):  # one in a changed line is the same as one of such a line
        unmatched: list[Problem] = []
        for problem in remaining:
            lines = old_lines.get(problem_key(problem), [])
            line = CHANGED_LINE if in_changed_line else problem.line
            if line in lines:
                lines.remove(line)
            else:
                unmatched.append(problem)
        remaining = unmatched
    return list(remaining)


def line_moves(old: str, new: str) -> Callable[[int], int | None]:
    """Return a function from a line of `old`, from 1, to the same line in `new`."""
    before, after = split_lines(old), split_lines(new)
    head_length = 0
    for old_line, new_line in zip(before, after, strict=False):
        if old_line != new_line:
            break
        head_length += 1
    tail_length = 0
    max_tail = min(len(before), len(after)) - head_length
    while tail_length < max_tail and before[-1 - tail_length] == after[-1 - tail_length]:
        tail_length += 1
    shift = len(after) - len(before)
    middle_lines = _match_middle(
        before[head_length : len(before) - tail_length],
        after[head_length : len(after) - tail_length],
        head_length,
    )

    def move_line(line: int) -> int | None:
        index = line - 1
        if index < head_length:
            return line
        if index >= len(before) - tail_length:
            return line + shift
        return middle_lines.get(line)

    return move_line


def changed_lines(old: str, new: str, new_line: Callable[[int], int | None]) -> set[int]:
    """Return the lines of `new`, from 1, that `old` does not have; see `line_moves`."""
    unchanged = {new_line(line) for line in range(1, len(split_lines(old)) + 1)}
    return set(range(1, len(split_lines(new)) + 1)).difference(unchanged)


def _match_middle(before: list[str], after: list[str], head: int) -> dict[int, int]:
    if not before or not after or max(len(before), len(after)) > _MAX_COMPARED_LINES:
        return {}
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    return {
        head + block.a + offset + 1: head + block.b + offset + 1
        for block in matcher.get_matching_blocks()
        for offset in range(block.size)
    }
