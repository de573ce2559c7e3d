"""A skill as a tool of another skill, which lists it as `skill_NAME` among its tools."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import ClassVar, Literal

from msgspec import Struct

from acp_agent.content import JsonObject
from acp_agent.errors import InvalidInputError, ToolError
from acp_agent.events import ToolKind
from acp_agent.extensions.definitions.inputs import SkillInputs, check_input
from acp_agent.extensions.definitions.types import COMPOSED, Argument
from acp_agent.tools.base import (
    NOTHING,
    Outcome,
    Prepared,
    Progress,
    SchemaArguments,
    SchemaTool,
    Touches,
)
from acp_agent.tools.quoting import first_line
from acp_agent.workspace.workspace import Workspace

_MAX_TITLE = 100  # characters
REQUEST = "request"
_TYPES = {"integer": "integer", "int": "integer", "number": "number", "boolean": "boolean"}


class ComposedSkill(Struct, frozen=True, kw_only=True):
    """The skill's name, description and inputs, for the tool."""

    name: str
    description: str
    inputs: tuple[Argument, ...] = ()


UseSkill = Callable[[str, SkillInputs, Progress], Awaitable[Outcome]]


class ComposedSkillTool(SchemaTool):
    """Runs a skill in a separate agent. One class per skill: a tool's name is its class's."""

    kind: ClassVar[ToolKind] = "other"
    effect: ClassVar[Literal["reads", "writes"]] = "writes"
    # The skill's own calls are checked one by one.
    touched: ClassVar[Touches | None] = NOTHING
    skill: ClassVar[ComposedSkill]

    def __init__(self, workspace: Workspace, use: UseSkill) -> None:
        super().__init__(workspace)
        self._use = use

    def description(self) -> str:
        """Return the skill's description."""
        return f"{self.skill.description} An agent of its own does it and answers once."

    def parameters(self) -> JsonObject:
        """Return the schema of the skill's inputs and of a request in words."""
        input_schemas = {argument.name: _schema(argument) for argument in self.skill.inputs}
        required = [argument.name for argument in self.skill.inputs if argument.required]
        request = {"type": "string", "description": "What it is to be used for, in full."}
        return {
            "type": "object",
            "properties": {**input_schemas, REQUEST: request},
            "required": required if input_schemas else [REQUEST],
            "additionalProperties": False,
        }

    def own_names(self, arguments: JsonObject) -> JsonObject:
        """Return the arguments: the names of inputs are valid for every model."""
        return arguments

    def mistakes(self, arguments: JsonObject) -> list[str]:
        """Return errors: inputs that are missing, unknown or of a wrong type."""
        schema = self.parameters()
        properties, required = schema["properties"], schema["required"]
        assert isinstance(properties, dict)
        assert isinstance(required, Sequence)
        return [
            *(f"{name}: it is missing" for name in required if name not in arguments),
            *(f"{name}: there is no such input" for name in arguments if name not in properties),
            *(
                f"{name}: expected a text or a number"
                for name, value in arguments.items()
                if not isinstance(value, str | int | float)
            ),
        ]

    def title(self, arguments: JsonObject) -> str:
        """Return a title such as "Use the skill analyze"."""
        del arguments
        return f"Use the skill {first_line(self.skill.name, _MAX_TITLE)}"

    async def prepare(self, params: SchemaArguments) -> Prepared:
        """Check the inputs, and prepare the call.

        Raises:
            ToolError: an input has the wrong type.
        """
        skill_inputs = _skill_inputs(self.skill.inputs, params.values)
        for argument in self.skill.inputs:
            try:
                if argument.name in skill_inputs.values:
                    check_input(argument, skill_inputs.values[argument.name], self.workspace.cwd)
            except InvalidInputError as error:
                raise ToolError(str(error)) from error
        return Prepared(
            title=self.title(params.values),
            run=functools.partial(self._use, self.skill.name, skill_inputs),
        )


def composed_tool(workspace: Workspace, skill: ComposedSkill, use: UseSkill) -> ComposedSkillTool:
    """Return the tool of a skill.

    Args:
        use: runs a skill by its name, with the given inputs.
    """
    values = {"name": COMPOSED + skill.name, "skill": skill}
    kind: type[ComposedSkillTool] = type(f"Skill_{skill.name}", (ComposedSkillTool,), values)
    return kind(workspace, use)


def _schema(argument: Argument) -> JsonObject:
    kind = _TYPES.get(argument.type.strip().lower(), "string")
    description = argument.description or argument.type
    return {"type": kind, **({"description": description} if description else {})}


def _skill_inputs(inputs: Sequence[Argument], arguments: Mapping[str, object]) -> SkillInputs:
    defaults = {
        argument.name: argument.default for argument in inputs if argument.default is not None
    }
    values = {**defaults, **arguments}
    request = str(values.pop(REQUEST, ""))
    texts = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in values.items()
    }
    return SkillInputs(values=texts, missing=(), remainder=request)
