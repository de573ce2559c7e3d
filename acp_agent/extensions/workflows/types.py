"""The types of a workflow: its inputs, its triggers and its steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

from acp_agent.extensions.workflows.cron import CronLine
from acp_agent.extensions.workflows.expressions import Expression

StepMode = Literal["plan", "draft", "ask", "accept-edits", "full"]
Status = Literal["completed", "failed", "skipped"]


class WorkflowInput(Struct, frozen=True, kw_only=True):
    """An input of a workflow; `default` is None if there is none."""

    name: str
    description: str = ""
    default: str | None = None
    required: bool = False


class Triggers(Struct, frozen=True, kw_only=True):
    """The events on which `acp-agent watch` starts a workflow.

    Attributes:
        files: patterns of files whose changes start it; those that begin with `!` exclude files.
        every: seconds between two starts.
        cron: schedules in local time.
    """

    files: tuple[str, ...] = ()
    every: float | None = None
    cron: tuple[CronLine, ...] = ()

    def __bool__(self) -> bool:
        """Return whether there is any trigger."""
        return bool(self.files or self.every or self.cron)


class Step(Struct, frozen=True, kw_only=True):
    """A step of a workflow: exactly one of `prompt`, `skill` and `parallel` is set.

    Attributes:
        id: its name in the file.
        line: its first line in the file.
        arguments: the skill's inputs by name, or its input as one text; both with placeholders.
        for_each: items that it runs for: texts, or a text with placeholders and one item per line.
        item: the current item; set in the copies that are made for the items.
        condition: whether it runs; None: only if no earlier step failed.
        model: "provider/name".
        retry: how often it is retried after a failure.
        timeout: seconds that one attempt may take.
        continue_on_error: whether the run continues if it fails.
    """

    id: str
    line: int
    prompt: str | None = None
    skill: str | None = None
    arguments: Mapping[str, str] | str = ""
    parallel: tuple[Step, ...] = ()
    for_each: tuple[str, ...] | str | None = None
    item: str = ""
    condition: Expression | None = None
    agent: str | None = None
    model: str | None = None
    mode: StepMode | None = None
    separate_session: bool = False
    retry: int = 0
    timeout: float | None = None
    continue_on_error: bool = False


class Workflow(Struct, frozen=True, kw_only=True):
    """A workflow as defined by its file; see `Step` for agent, model and mode."""

    name: str
    description: str = ""
    inputs: tuple[WorkflowInput, ...] = ()
    triggers: Triggers = Triggers()
    agent: str | None = None
    model: str | None = None
    mode: StepMode | None = None
    steps: tuple[Step, ...]

    def every_step(self) -> Iterator[Step]:
        """Yield all steps in the order of the file, each group before its steps."""
        for step in self.steps:
            yield step
            yield from step.parallel
