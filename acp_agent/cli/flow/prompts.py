"""The prompts of steps, with the values of the run filled in, and the skills that steps can use."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from acp_agent.cli.definitions import restrict_folders
from acp_agent.cli.flow.journal import RunRecord
from acp_agent.cli.localization import translate_rendered
from acp_agent.cli.user_config import load_user_config
from acp_agent.config.types import DefinitionConfig
from acp_agent.errors import InvalidInputError
from acp_agent.extensions.definitions.bundled import read_bundled
from acp_agent.extensions.definitions.discovery import find_definitions
from acp_agent.extensions.definitions.inputs import read_inputs
from acp_agent.extensions.definitions.locations import bundled_skills
from acp_agent.extensions.definitions.types import Argument
from acp_agent.extensions.workflows.expressions import Reference
from acp_agent.extensions.workflows.find import WorkflowFile
from acp_agent.extensions.workflows.placeholders import fill_placeholders
from acp_agent.extensions.workflows.types import Step
from acp_agent.session.commands.command import COMMANDS

_LIST_MARK = re.compile(r"^\s*(?:[-*+]|\d{1,4}[.)])\s+")
_MAX_VALUE_LENGTH = 100_000  # characters of an output that are filled in
# Commands that act like a prompt. The others change settings, which is left to the user.
_PROMPT_COMMANDS = frozenset({"compact", "init"})
_SETTING_COMMANDS = frozenset(command.name for command in COMMANDS) - _PROMPT_COMMANDS
SkillInputs = Mapping[str, Sequence[Argument]]


class RunValues:
    """Values for the placeholders and conditions of a run."""

    def __init__(self, record: RunRecord, *, failed: bool, item: str = "") -> None:
        self.failed = failed
        self._item = item
        self._record = record

    def value(self, reference: Reference) -> str:
        """Return the value of a reference, or "" if it has none yet."""
        record = self._record
        match reference.path:
            case ("inputs", name):
                return record.started.inputs.get(name, "")
            case ("steps", step, "output") if step in record.steps:
                return record.steps[step].output
            case ("steps", step, "status") if step in record.steps:
                return record.steps[step].status
            case ("item",):
                return self._item
            case ("trigger", "kind"):
                return record.started.trigger
            case ("trigger", "files"):
                return "\n".join(record.started.changed)
            case _:
                return ""


def prompt_text(text: str, values: RunValues) -> str:
    """Return the prompt of a step.

    Raises:
        InvalidInputError: it is a command that only the user may give.
    """
    prompt = fill_placeholders(text, lambda reference: _short(values.value(reference)))
    if not prompt.lstrip().startswith("/"):
        return prompt
    if not text.lstrip().startswith("/"):  # an output must not become a command
        return f"This is text and no command:\n\n{prompt}"
    refuse_command(prompt)
    return prompt


def refuse_command(text: str) -> None:
    """Raise InvalidInputError if a prompt is a command that changes the session's settings."""
    name = text.split(maxsplit=1)[0].removeprefix("/")
    if name in _SETTING_COMMANDS:
        raise InvalidInputError(
            f"a step cannot use the command /{name}; use prompt, skill, agent, model or mode"
        )


def skill_arguments(step: Step, values: RunValues) -> str:
    """Return the arguments for the command of a step's skill."""

    def fill(text: str) -> str:
        return fill_placeholders(text, lambda reference: _short(values.value(reference)))

    if isinstance(step.arguments, Mapping):
        return " ".join(
            f"{name}={shlex.quote(fill(text))}" for name, text in step.arguments.items()
        )
    return fill(step.arguments)


def list_items(text: str) -> list[str]:
    """Return the non-empty lines of a text, without Markdown list markers."""
    lines = (_LIST_MARK.sub("", line).strip() for line in text.splitlines())
    return [line for line in lines if line]


def _short(value: str) -> str:
    if len(value) <= _MAX_VALUE_LENGTH:
        return value
    hidden = len(value) - _MAX_VALUE_LENGTH
    return f"{value[:_MAX_VALUE_LENGTH]}\n[{hidden:,} more characters left out]"


def skill_inputs(cwd: Path) -> SkillInputs:
    """Return the inputs of each skill of a session in a folder. Blocks: reads skill files."""
    setup = load_user_config()
    bundled = (
        read_bundled(skill.name, setup.config.skills.get(skill.name, DefinitionConfig()))
        for skill in bundled_skills(setup.config)
    )
    folders = restrict_folders("skills", setup.folders(cwd))
    definitions = find_definitions(folders, setup.config, setup.trusts)
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
