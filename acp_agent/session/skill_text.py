"""What the model is told when a skill is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acp_agent.extensions.definitions.types import Skill


def skill_text(skill: Skill, request: str = "") -> str:
    """A skill's instructions, where its files are, and what it is to be used for."""
    lines = [
        f"Follow the skill {skill.name}. Paths in it are relative to {skill.path.parent}.",
        "",
        skill.text.strip(),
    ]
    if request.strip():
        lines += ["", f"Use it for this: {request.strip()}"]
    return "\n".join(lines)
