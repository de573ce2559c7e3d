"""What files that were written for other programs say in words of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

# Fields by which others mean one of ours.
FIELDS: Mapping[str, str] = {
    "effort": "thought-level",
    "disallowedTools": "disallowed-tools",
    "exclude_tools": "disallowed-tools",
    "maxTurns": "max-requests",
    "max_turns": "max-requests",
    "system_prompt_args": "system-prompt-args",
}

# Tools by which others mean one of ours.
TOOLS: Mapping[str, str] = {
    "Agent": "task",
    "AskUserQuestion": "ask_user",
    "Bash": "shell",
    "BashOutput": "background",
    "Edit": "edit",
    "Glob": "glob",
    "Grep": "grep",
    "KillShell": "background",
    "LS": "list",
    "MultiEdit": "edit",
    "Read": "read",
    "Skill": "skill",
    "Task": "task",
    "TodoWrite": "todo",
    "WebFetch": "web_fetch",
    "Write": "write",
}
_COMMA = re.compile(r",(?![^(]*\))")  # not between brackets: Bash(git add, git commit)


def our_fields(front_matter: Mapping[str, object]) -> dict[str, object]:
    """A front matter in which others' fields have the names of ours, which go first."""
    meant = {FIELDS.get(name, name): value for name, value in front_matter.items()}
    return meant | {name: value for name, value in front_matter.items() if name not in FIELDS}


def our_tools(names: str | Sequence[str]) -> list[str]:
    """Tools as a list, by the names that they have here; a text has commas between them."""
    several = _COMMA.split(names) if isinstance(names, str) else names
    named = (name.strip() for name in several)
    return [TOOLS.get(name, name) for name in named if name]


def part_of_a_tool(name: str) -> str | None:
    """The tool of which others allow or refuse a part so: `Bash(git *)`. None for a whole tool."""
    tool, bracket, _ = name.partition("(")
    return TOOLS.get(tool.strip(), tool.strip()) if bracket else None
