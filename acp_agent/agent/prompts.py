"""The system prompt."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from acp_agent.events import SystemPromptGiven


def _text(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8").strip()


def agent_prompt(own: str) -> str:
    """Return an agent's own prompt with the rules that hold for every agent behind it."""
    return f"{own}\n\n{_text('system_rules.md')}"


def system_prompt(
    *,
    cwd: Path,
    directories: Sequence[Path],
    instructions: str,
    given: SystemPromptGiven | None = None,
) -> str:
    """The system prompt of a session; the same arguments give the same bytes.

    Args:
        cwd: the working folder.
        directories: the further folders that the editor opened.
        instructions: what AGENTS.md files say, from the most general to the most specific.
        given: what the editor gave; it stands in the place of the agent's own words where it
            overrides them, and has the last word otherwise.
    """
    if given is not None and given.mode == "override":
        template = given.text
    else:
        template = f"{_text('system.md')}\n{_text('system_rules.md')}"
    lines = [template, "", f"Operating system: {sys.platform}", f"Working folder: {cwd}"]
    if directories:
        lines.append("Further folders: " + ", ".join(str(folder) for folder in directories))
    if instructions:
        lines += ["", "# Instructions of the user and the project", "", instructions]
    if given is not None and given.mode == "append":
        lines += ["", "# Instructions of the editor", "", given.text]
    return "\n".join(lines)
