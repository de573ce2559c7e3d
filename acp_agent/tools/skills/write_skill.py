"""The tool that writes a new skill."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.resources import files as package_files
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import yaml
from msgspec import Struct
from pydantic import Field

from acp_agent.config.types import DefinitionConfig
from acp_agent.content import DiffPart, JsonObject, Location
from acp_agent.errors import ConfigError, ToolError, WorkspaceError
from acp_agent.events import ToolKind
from acp_agent.extensions.definitions.build import DefinitionFile, build_skill
from acp_agent.extensions.definitions.fields import SkillFields, parse_fields
from acp_agent.extensions.definitions.front_matter import read_front_matter
from acp_agent.extensions.definitions.skill_files import FILE_NAME
from acp_agent.permissions.access import WriteAccess
from acp_agent.tools.base import Outcome, Prepared, Progress, Tool, ToolParams, text_argument
from acp_agent.tools.editing.replace import EditResult
from acp_agent.tools.file_changes import Change, apply_change, prepare_change
from acp_agent.tools.quoting import joined_names
from acp_agent.workspace.file_io import replace_file
from acp_agent.workspace.workspace import Workspace

_PROJECT_FOLDER = Path(".agents", "skills")


class WriteSkillParams(ToolParams):
    """The skill."""

    name: Annotated[str, Field(description="Lowercase letters, digits and hyphens.")]
    description: Annotated[str, Field(min_length=1, max_length=1_024)]
    text: Annotated[str, Field(min_length=1)]
    place: Literal["project", "user"] = "project"
    argument_hint: Annotated[str, Field(description="What may follow its command.")] = ""
    tools: tuple[str, ...] = ()


class SkillContext(Struct, frozen=True, kw_only=True):
    """The folders of skills, and the names that skills can refer to."""

    user: Path
    existing_skills: Callable[[], Mapping[str, Path]]
    tool_names: Callable[[], Sequence[str]]


class WriteSkillTool(Tool[WriteSkillParams]):
    """Writes a SKILL.md, like the write tool writes a file.

    Args:
        context: the folders of skills, and existing names.
    """

    name: ClassVar[str] = "write_skill"
    kind: ClassVar[ToolKind] = "edit"
    effect: ClassVar[Literal["reads", "writes"]] = "writes"
    params: ClassVar[type[WriteSkillParams]] = WriteSkillParams

    def __init__(self, workspace: Workspace, context: SkillContext) -> None:
        super().__init__(workspace)
        self._context = context

    def description(self) -> str:
        """Return the description for the model."""
        return (package_files(__package__) / "write_skill.md").read_text("utf-8").strip()

    def title(self, arguments: JsonObject) -> str:
        """Return a title such as "Write the skill release-notes"."""
        return f"Write the skill {text_argument(arguments, 'name')}".strip()

    async def prepare(self, params: WriteSkillParams) -> Prepared:
        """Check the skill as it is checked when read, and show its file.

        Raises:
            ToolError: it is invalid, or already exists.
        """
        text = self._render(params)
        title = self.title(params.model_dump())
        if params.place == "project":
            requested_path = str(_PROJECT_FOLDER / params.name / FILE_NAME)
            path = self.workspace.files.resolve(requested_path)
            await self._refuse_existing(params.name, path)
            return self._project_file(params.name, requested_path, path, text, title)
        path = self._context.user / params.name / FILE_NAME
        await self._refuse_existing(params.name, path)

        async def run(_: Progress) -> Outcome:
            await self._refuse_existing(params.name, path)
            data = text.encode("utf-8", "replace")
            try:
                await asyncio.to_thread(replace_file, path, data, label=str(path))
            except WorkspaceError as error:
                raise ToolError(str(error)) from error
            return Outcome(text=_result_text(params.name, path))

        return Prepared(
            title=title,
            run=run,
            # This folder instructs agents, so the user is asked in every mode.
            access=WriteAccess(
                paths=(await asyncio.to_thread(os.path.realpath, path),),
                requested_names=(str(path),),
            ),
            locations=(Location(path=str(path), line=1),),
            content=(DiffPart(path=str(path), old_text=None, new_text=text),),
        )

    def _project_file(
        self, name: str, requested_path: str, path: Path, text: str, title: str
    ) -> Prepared:
        files = self.workspace.files
        change = Change(
            requested_path=requested_path,
            path=path,
            editor_path=files.editor_path(path),
            display_path=requested_path,
            before=None,
            result=EditResult(text, 1, ()),
        )

        async def run(_: Progress) -> Outcome:
            return await apply_change(change, files, lambda _: _result_text(name, path))

        return prepare_change(change, title=title, run=run)

    def _render(self, params: WriteSkillParams) -> str:
        """Return the text of the file, after checking it."""
        fields: dict[str, object] = {"name": params.name, "description": params.description}
        if params.argument_hint:
            fields["argument-hint"] = params.argument_hint
        if params.tools:
            fields["tools"] = list(params.tools)
        front_matter = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=1_000)
        text = f"---\n{front_matter}---\n\n{params.text.strip()}\n"
        try:
            front_fields, body = read_front_matter(text)
            checked = parse_fields(front_fields, SkillFields)
            file = DefinitionFile(path=Path(), source="user", fields=checked, text=body)
            skill = build_skill(file, DefinitionConfig())
        except ConfigError as error:
            raise ToolError(str(error)) from error
        tool_names = self._context.tool_names()
        unknown = [
            tool
            for tool in skill.uses.tools or ()
            if not tool.startswith("mcp__")
            and not any(fnmatchcase(pattern, tool) for pattern in tool_names)
        ]
        if unknown:
            raise ToolError(
                f"there is no tool {joined_names(unknown)}",
                advice=f"the tools are {', '.join(tool_names)}",
            )
        return text

    async def _refuse_existing(self, name: str, path: Path) -> None:
        """Raise ToolError if a skill of this name exists: nothing is replaced silently."""
        existing = self._context.existing_skills().get(name)
        if existing is None and await asyncio.to_thread(os.path.lexists, path):
            existing = path
        if existing is not None:
            raise ToolError(
                f"there is a skill {name} already: {existing}",
                advice="choose another name, or edit that file if the user wants it changed",
            )


def _result_text(name: str, path: Path) -> str:
    return (
        f"The skill {name} is written to {path}. The user chooses it with /skill:{name}; in a "
        "project it has to be trusted first, for which the user is asked."
    )
