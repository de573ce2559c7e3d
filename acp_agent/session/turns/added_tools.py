"""Tools that a turn has only under a condition, built when it is met."""

from __future__ import annotations

from collections.abc import Sequence

from acp_agent.session.core import SessionCore
from acp_agent.session.extensions import Definitions
from acp_agent.session.turns.parts import TurnTools
from acp_agent.tools.base import AnyTool


def code_tools(tools: TurnTools) -> Sequence[AnyTool]:
    """Return the tool that asks language servers about symbols."""
    from acp_agent.tools.code import CodeTool  # noqa: PLC0415 - only if a server runs

    return [CodeTool(tools.workspace, lambda: tools.edit_checks.servers)]


def write_skill_tools(
    core: SessionCore, definitions: Definitions, tools: TurnTools
) -> Sequence[AnyTool]:
    """Return the tool that writes skills."""
    from acp_agent.tools.skills.write_skill import (  # noqa: PLC0415 - rarely needed
        SkillContext,
        WriteSkillTool,
    )

    context = SkillContext(
        user=core.services.home / ".agents" / "skills",
        existing_skills=lambda: {skill.name: skill.path for skill in definitions.skills},
        tool_names=lambda: [spec.name for spec in tools.toolset.specs()],
    )
    return [WriteSkillTool(tools.workspace, context)]
