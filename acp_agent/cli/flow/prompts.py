"""The prompts of steps, with the values of the run filled in."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from acp_agent.cli.flow.journal import RunRecord
from acp_agent.errors import InvalidInputError
from acp_agent.extensions.workflows.expressions import Reference
from acp_agent.extensions.workflows.placeholders import fill_placeholders
from acp_agent.extensions.workflows.types import Step
from acp_agent.session.commands.command import COMMANDS

_LIST_MARK = re.compile(r"^\s*(?:[-*+]|\d{1,4}[.)])\s+")
_MAX_VALUE_LENGTH = 100_000  # characters of an output that are filled in
# Commands that act like a prompt. The others change settings, which is left to the user.
_PROMPT_COMMANDS = frozenset({"compact", "init"})
_SETTING_COMMANDS = frozenset(command.name for command in COMMANDS) - _PROMPT_COMMANDS


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
