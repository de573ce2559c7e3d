"""Arguments of a call that may be incomplete or wrong, as its title shows them."""

from __future__ import annotations

from pathlib import Path

from acp_agent.content import JsonObject
from acp_agent.tools.base import AnyTool
from acp_agent.workspace.names import display_name, display_path

_LIMIT = 120  # characters of one argument in a title


def text_argument(arguments: JsonObject, name: str) -> str:
    """A text argument on one line; "" where it is missing or no text."""
    value = arguments.get(name)
    if not isinstance(value, str):
        return ""
    line = display_name(value.encode("utf-8", "replace").decode())
    return line if len(line) <= _LIMIT else line[: _LIMIT - 1] + "…"


def number_argument(arguments: JsonObject, name: str) -> int | None:
    """A whole number; None where it is missing or something else."""
    value = arguments.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def path_argument(tool: AnyTool, arguments: JsonObject, name: str = "path") -> str:
    """A path, relative to the working folder where it lies below it; "" where there is none."""
    path = text_argument(arguments, name)
    for root in (tool.workspace.cwd, tool.workspace.files.roots[0]):
        if Path(path).is_relative_to(root):
            return display_path(path, root)
    return path
