"""Use a skill."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from acp_agent.content import JsonObject
from acp_agent.errors import ToolError
from acp_agent.events import ToolKind
from acp_agent.permissions.access import NoAccess
from acp_agent.tools.base import NOTHING, Outcome, Prepared, Progress, Tool, ToolParams, Touches
from acp_agent.tools.quoting import described_list, first_line, joined_names
from acp_agent.workspace.workspace import Workspace

_MAX_TITLE = 100  # characters

UseSkill = Callable[[str, str, Progress], Awaitable[Outcome]]


class SkillParams(ToolParams):
    """The skill tool's parameters."""

    skill: Annotated[str, Field(min_length=1, description="Which skill.")]
    request: Annotated[str, Field(description="What it is to be used for, in full.")] = ""


class SkillTool(Tool[SkillParams]):
    """Returns the instructions of a skill, or the result of an agent that follows them.

    Args:
        skills: the names and descriptions of the skills that the model may choose.
        unlisted: the names of skills that only the user may choose, or that are offered with
            certain files.
    """

    name: ClassVar[str] = "skill"
    kind: ClassVar[ToolKind] = "other"
    effect: ClassVar[Literal["reads", "writes"]] = "writes"
    params: ClassVar[type[SkillParams]] = SkillParams
    # Each call made by a skill is checked separately.
    touched: ClassVar[Touches | None] = NOTHING

    def __init__(
        self,
        workspace: Workspace,
        skills: Sequence[tuple[str, str]],
        unlisted: Sequence[str],
        use: UseSkill,
    ) -> None:
        super().__init__(workspace)
        self._skills = dict(skills)
        self._names = {*self._skills, *unlisted}
        self._use = use

    def description(self) -> str:
        """Return the description of the tool and of the skills."""
        if not self._skills:
            return f"{super().description()}\n\nAt the moment no skill is listed."
        return "\n".join([super().description(), "", "The skills:", *described_list(self._skills)])

    def title(self, arguments: JsonObject) -> str:
        """Return a title such as "Use the skill review"."""
        skill = arguments.get("skill")
        return (
            f"Use the skill {first_line(skill, _MAX_TITLE)}"
            if isinstance(skill, str)
            else self.name
        )

    async def prepare(self, params: SkillParams) -> Prepared:
        """Find the skill. Raises ToolError if there is no such skill."""
        if params.skill not in self._names:
            raise ToolError(
                f"there is no skill {first_line(params.skill, _MAX_TITLE)!r}",
                advice=f"the skills are {joined_names(self._skills)}",
            )
        return Prepared(
            title=self.title(params.model_dump()),
            run=functools.partial(self._run, params),
            access=NoAccess("skill", params.skill),
        )

    async def _run(self, params: SkillParams, progress: Progress) -> Outcome:
        return await self._use(params.skill, params.request, progress)
