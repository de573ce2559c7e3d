"""An agent and a skill of a project, and the calls by which a model uses them."""

from __future__ import annotations

from pathlib import Path

from tests.support.model_server import Call

EXPLORE = """---
name: explore
description: Finds its way in code that nobody knows.
{more}
---
You look around and say where things are.
"""
TASK = Call("task", {"agent": "explore", "title": "Find the port", "task": "Which port is used?"})
REVIEW = """---
name: review
description: Reviews a change.
argument-hint: what to review
{more}
---
Look at the diff first. See `scripts/lines.sh`.
"""
USE = Call("skill", {"skill": "review", "request": "the parser"})


def write_agent(folder: Path, more: str = "", name: str = "explore") -> Path:
    agents = folder / ".agents" / "agents"
    agents.mkdir(parents=True, exist_ok=True)
    text = EXPLORE.format(more=more).replace("name: explore", f"name: {name}")
    (agents / f"{name}.md").write_text(text)
    return agents / f"{name}.md"


def make_the_users(folder: Path, user: Path) -> None:
    """Let what was written for the project in a folder be the user's own."""
    for kind in (folder / ".agents").iterdir():
        kind.rename(user / kind.name)


def write_skill(folder: Path, more: str = "") -> Path:
    skill = folder / ".agents" / "skills" / "review"
    skill.mkdir(parents=True, exist_ok=True)
    (skill / "SKILL.md").write_text(REVIEW.format(more=more))
    return skill
