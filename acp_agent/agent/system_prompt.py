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
    """Return an agent definition's own prompt, followed by the rules for every agent."""
    return f"{own}\n\n{_text('system_rules.md')}"


def system_prompt(
    *,
    cwd: Path,
    directories: Sequence[Path],
    instructions: str,
    given: SystemPromptGiven | None = None,
) -> str:
    """Return the system prompt of a session; the same arguments give the same bytes.

    Args:
        cwd: the working directory.
        directories: the further directories that the editor opened.
        instructions: what AGENTS.md files say, from the most general to the most specific.
        given: the editor's prompt; it overrides the agent's own prompt or is appended to it.
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
