"""Problems in files, as language servers and syntax checks report them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from acp_agent.content import printable_line
from acp_agent.workspace.file_io import display_path

Severity = Literal["error", "warning"]

_MAX_PROBLEMS = 10
_MAX_MESSAGE = 300  # characters of a message


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
