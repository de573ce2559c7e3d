"""Problems in files, as language servers and syntax checks report them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from acp_agent.content import printable_line
from acp_agent.workspace.file_io import display_path

Severity = Literal["error", "warning"]

_MOST_SHOWN = 10
_LONGEST = 300  # characters of a message


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
        root: the folder that paths are shown from.
    """
    ordered = sorted(problems, key=lambda one: one.severity != "error")
    rows = [_row(problem, root) for problem in ordered[:_MOST_SHOWN]]
    left = len(ordered) - len(rows)
    if left:
        rows.append(f"and {left} more")
    return "\n".join(rows)


def _row(problem: Problem, root: Path) -> str:
    place = f"{display_path(problem.path, root)}:{problem.line}:{problem.column}"
    by = " ".join(filter(None, (problem.source, problem.code)))
    # What follows the first paragraph is background, such as all searched places.
    message = printable_line(problem.message.partition("\n\n")[0], _LONGEST)
    return f"{place}: {problem.severity}: {message}" + (f" [{by}]" if by else "")
