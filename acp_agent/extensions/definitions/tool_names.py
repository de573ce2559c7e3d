"""Map other programs' tool names, in the fields of skills and agents, to our tools."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache

from msgspec import Struct

from acp_agent.platform.data_tables import read_table

CHANGES = ("edit", "write", "apply_patch")  # tools that a read-only agent does not have

_PLUGIN_TOOL = "mcp__plugin_"
_COMMA = re.compile(r",(?![^(]*\))")  # not inside brackets: Bash(git add, git commit)
_GITHUB_SETS = frozenset({"vscode", "agent", "edit", "execute", "read", "search", "web"})


class ToolNames(Struct, frozen=True):
    """The tables of `tool_names.toml`."""

    tools: frozenset[str]
    aliases: dict[str, str]
    github: dict[str, tuple[str, ...]]


@cache
def tool_names() -> ToolNames:
    """Return the names of our tools, and those of other programs for them."""
    return read_table(__package__, "tool_names.toml", ToolNames)


def normalize_tools(names: str | Sequence[str]) -> list[str]:
    """Return tools as a list with our names; a text is split at commas.

    A tool of a plugin's server, `mcp__plugin_NAME_SERVER__tool` in other programs, has both names.
    """
    entries = _COMMA.split(names) if isinstance(names, str) else names
    stripped = (name.strip() for name in entries)
    aliases = tool_names().aliases
    tools = [aliases.get(name, name) for name in stripped if name]
    return tools + [
        name.replace(_PLUGIN_TOOL, "mcp__", 1) for name in tools if name.startswith(_PLUGIN_TOOL)
    ]


def restricted_tool(name: str) -> str | None:
    """Return the tool that a partial permission like `Bash(git *)` names; None for a whole tool."""
    tool, bracket, _ = name.partition("(")
    return tool_names().aliases.get(tool.strip(), tool.strip()) if bracket else None


def may_exist(pattern: str) -> bool:
    """Return whether a pattern names one of our tools, or may name one of a server or plugin."""
    is_added = "__" in pattern or pattern.startswith("skill_")
    return is_added or any(fnmatchcase(tool, pattern) for tool in tool_names().tools)


def github_tools(name: str) -> tuple[str, ...]:
    """Return our tools for a GitHub tool, or for a tool of an MCP server."""
    tools = tool_names().github
    first, slash, part = name.partition("/")
    if not slash:
        return tools.get(name, (name,))
    if first in _GITHUB_SETS or part in tools:
        return tools.get(part, tools.get(first, ()))
    return (f"mcp__{first.rpartition('/')[2]}__{part.rpartition('/')[2]}",)
