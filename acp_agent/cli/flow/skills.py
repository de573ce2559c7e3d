"""The skills that steps can use, and checks of their inputs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from acp_agent.cli.definitions import restrict_folders, session_folders
from acp_agent.cli.flow.locate import trust_store
from acp_agent.cli.flow.prompts import refuse_command
from acp_agent.cli.localization import translate_rendered
from acp_agent.config.load import load_config
from acp_agent.config.paths import find_paths
from acp_agent.config.types import DefinitionConfig
from acp_agent.errors import InvalidInputError
from acp_agent.extensions.definitions.bundled import read_bundled
from acp_agent.extensions.definitions.discovery import find_definitions
from acp_agent.extensions.definitions.inputs import read_inputs
from acp_agent.extensions.definitions.locations import bundled_skills
from acp_agent.extensions.definitions.types import Argument
from acp_agent.extensions.workflows.find import WorkflowFile
from acp_agent.extensions.workflows.types import Step

SkillInputs = Mapping[str, Sequence[Argument]]


def skill_inputs(cwd: Path) -> SkillInputs:
    """Return the inputs of each skill of a session in a folder. Blocks: reads skill files."""
    config = load_config(find_paths(os.environ).config_file, os.environ)
    bundled = (
        read_bundled(skill.name, config.skills.get(skill.name, DefinitionConfig()))
        for skill in bundled_skills(config)
    )
    definitions = find_definitions(
        restrict_folders("skills", session_folders(cwd)), config, trust_store().trusts
    )
    return {skill.name: skill.inputs for skill in (*bundled, *definitions.skills)}


def step_mistakes(file: WorkflowFile, cwd: Path) -> list[str]:
    """Return an error line for each step that cannot work here. Blocks: reads skill files."""
    return [
        f"{file.path}:{line}: {translate_rendered(reason)}"
        for line, reason in _find_mistakes(file, cwd)
    ]


def _find_mistakes(file: WorkflowFile, cwd: Path) -> Iterator[tuple[int, str]]:
    inputs_by_skill: SkillInputs | None = None
    for step in () if file.workflow is None else file.workflow.every_step():
        try:
            if step.prompt is not None and step.prompt.lstrip().startswith("/"):
                refuse_command(step.prompt.lstrip())
            if step.skill is not None:
                inputs_by_skill = skill_inputs(cwd) if inputs_by_skill is None else inputs_by_skill
                _check_skill(step, step.skill, inputs_by_skill)
        except InvalidInputError as error:
            yield step.line, str(error)


def _check_skill(step: Step, skill: str, inputs_by_skill: SkillInputs) -> None:
    """Raise InvalidInputError if the skill does not exist, or has other inputs."""
    if skill not in inputs_by_skill:
        raise InvalidInputError(
            f"skill: there is no skill {skill} here that you trust; see acp-agent skills"
        )
    inputs = {definition.name: definition for definition in inputs_by_skill[skill]}
    if not inputs or not isinstance(step.arguments, Mapping):
        return
    for name in step.arguments.keys() - inputs.keys():
        suggestions = get_close_matches(name, inputs, n=1) or sorted(inputs)
        raise InvalidInputError(
            f"with: the skill {skill} has no input {name}; did you mean {suggestions[0]}?"
        )
    for definition in inputs.values():
        if (
            definition.required
            and definition.default is None
            and definition.name not in step.arguments
        ):
            raise InvalidInputError(f"with: the skill {skill} needs {definition.name}; add it")


def check_arguments(skill: str, inputs: Sequence[Argument], arguments: str, cwd: Path) -> None:
    """Check a skill's arguments as its session does. Blocks: checks files.

    A session asks the user for missing inputs; a step fails instead.

    Raises:
        InvalidInputError: an input is missing or has the wrong type.
    """
    parsed = read_inputs(inputs, arguments, cwd)
    if parsed.missing:
        raise InvalidInputError(f"with: the skill {skill} needs {parsed.missing[0].name}; add it")
