"""A workflow as it is run: its inputs, its triggers and its steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

from acp_agent.extensions.workflows.cron import CronLine
from acp_agent.extensions.workflows.expressions import Expression

StepMode = Literal["plan", "draft", "ask", "accept-edits", "full"]
Status = Literal["completed", "failed", "skipped"]


class WorkflowInput(Struct, frozen=True, kw_only=True):
    """A value that a workflow is given; `default` is None where there is none."""

    name: str
    description: str = ""
    default: str | None = None
    required: bool = False


class Triggers(Struct, frozen=True, kw_only=True):
    """What `acp-agent watch` starts a workflow on.

    Attributes:
        files: patterns of files whose changes start it; those that begin with `!` exclude.
        every: seconds between two starts.
        cron: schedules in local time.
    """

    files: tuple[str, ...] = ()
    every: float | None = None
    cron: tuple[CronLine, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything starts it."""
        return bool(self.files or self.every or self.cron)


class Step(Struct, frozen=True, kw_only=True):
    """A step of a workflow: one of `prompt`, `skill` and `parallel` is set.

    Attributes:
        id: names it in the file.
        line: where it begins in the file.
        prompt: the text for the agent, with placeholders.
        skill: the name of a skill.
        arguments: what the skill is given, with placeholders; a text as it is.
        parallel: steps that run at the same time.
        for_each: items that it runs for: texts, or a text with placeholders and an item a line.
        item: what it runs for; set in the copies that are made for the items.
        condition: whether it runs; None: if nothing failed before.
        agent: the agent that it runs as.
        model: "provider/name".
        mode: the permission mode.
        own_session: whether it has a session of its own.
        retry: how often it is tried again when it fails.
        timeout: seconds that one attempt may take.
        continue_on_error: whether the run goes on when it fails.
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
    own_session: bool = False
    retry: int = 0
    timeout: float | None = None
    continue_on_error: bool = False


class Workflow(Struct, frozen=True, kw_only=True):
    """A workflow as its file has it; see `Step` for agent, model and mode."""

    name: str
    description: str = ""
    inputs: tuple[WorkflowInput, ...] = ()
    triggers: Triggers = Triggers()
    agent: str | None = None
    model: str | None = None
    mode: StepMode | None = None
    steps: tuple[Step, ...]

    def every_step(self) -> Iterator[Step]:
        """All steps in the order of the file, each group before the steps in it."""
        for step in self.steps:
            yield step
            yield from step.parallel
