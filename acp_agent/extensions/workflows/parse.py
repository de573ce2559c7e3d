"""Parse a workflow file and find every error in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import get_args

from acp_agent.errors import ConfigError
from acp_agent.extensions.workflows.cron import CronLine, parse_cron
from acp_agent.extensions.workflows.expressions import (
    Expression,
    Reference,
    parse_expression,
    references,
)
from acp_agent.extensions.workflows.fields import Mistake, Mistakes, Table
from acp_agent.extensions.workflows.patterns import FilePatterns
from acp_agent.extensions.workflows.placeholders import placeholders
from acp_agent.extensions.workflows.types import Step, StepMode, Triggers, Workflow, WorkflowInput
from acp_agent.extensions.workflows.yaml_tree import Entry, read_tree

MAX_STEPS = 100
MAX_PARALLEL_STEPS = 8  # steps of one group
MAX_RETRIES = 10
MIN_INTERVAL = 1.0  # seconds
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_MODEL = re.compile(r"[^/\s]+/\S+")
_MODES: tuple[StepMode, ...] = get_args(StepMode)
SETTINGS = ("agent", "model", "mode")
FIELDS = ("name", "description", "on", "inputs", "steps", *SETTINGS)
STEP_FIELDS = (
    "id", "prompt", "skill", "with", "parallel", "for-each", "if", "session", "retry", "timeout",
    "continue-on-error", *SETTINGS,
)  # fmt: skip
_STEP_KINDS = ("prompt", "skill", "parallel")


def parse_workflow(text: str, name: str) -> tuple[Workflow | None, list[Mistake]]:
    """Return a workflow, or the errors in its file."""
    try:
        tree = read_tree(text)
    except ConfigError as error:
        line, why = _split_line(str(error))
        return None, [Mistake(line, why)]
    mistakes = Mistakes()
    workflow = _Reader(mistakes).workflow(tree, name)
    return (None, mistakes.sorted()) if mistakes else (workflow, [])


def _split_line(error: str) -> tuple[int, str]:
    """Return the line that an error text begins with, and the rest of the text."""
    match = re.match(r"line (\d+)(?:: | (?=is|has))", error)
    return (
        (int(match[1]), error[match.end() :] if match[0].endswith(": ") else error)
        if match
        else (0, error)
    )


class _Reader:
    def __init__(self, mistakes: Mistakes) -> None:
        self._mistakes = mistakes
        self._inputs: set[str] = set()
        self._ids: dict[str, int] = {}  # the line of each step
        self._previous_ids: set[str] = set()  # steps before the current one
        self._has_item = False  # the current step has `for-each`

    def workflow(self, tree: Entry, name: str) -> Workflow:
        table = Table(tree, self._mistakes, FIELDS)
        inputs = tuple(self._read_inputs(table))
        self._inputs = {input_.name for input_ in inputs}
        entries = table.items("steps")
        if not entries and isinstance(tree.value, Mapping):
            self._mistakes.add(
                table.field_line("steps"),
                ConfigError("steps: there are none; add - id: and prompt:"),
            )
        steps = tuple(self._steps(entries, inside=False))
        if len(self._ids) > MAX_STEPS:
            self._mistakes.add(
                table.field_line("steps"),
                ConfigError(f"steps: there are more than {MAX_STEPS}; split the file"),
            )
        return Workflow(
            name=table.text("name") or name,
            description=table.text("description") or "",
            inputs=inputs,
            triggers=self._triggers(table.entry("on")),
            agent=table.text("agent"),
            model=self._model(table),
            mode=table.choice("mode", _MODES),
            steps=steps,
        )

    def _read_inputs(self, table: Table) -> Iterator[WorkflowInput]:
        for name, entry in table.mapping("inputs").items():
            if _NAME.fullmatch(name) is None:
                self._mistakes.add(
                    entry.line,
                    ConfigError(f"inputs: {name[:40]} is no name; use letters, digits, - and _"),
                )
            elif isinstance(entry.value, Mapping):
                fields = Table(
                    entry, self._mistakes, ("description", "default", "required", "type")
                )
                yield WorkflowInput(
                    name=name,
                    description=fields.text("description") or "",
                    default=fields.scalar("default"),
                    required=fields.flag("required"),
                )
            else:
                yield WorkflowInput(
                    name=name,
                    default=None if entry.value is None else table.scalar_text(name, entry),
                )

    def _triggers(self, entry: Entry | None) -> Triggers:
        if entry is None:
            return Triggers()
        table = Table(entry, self._mistakes, ("files", "every", "cron"))
        files = []
        for item in table.texts("files"):
            pattern = str(item.value).strip()
            try:
                _check_pattern(pattern)
            except ConfigError as error:
                self._mistakes.add(item.line, error)
            files.append(pattern)
        if files and all(item.startswith("!") for item in files):
            self._mistakes.add(
                table.field_line("files"),
                ConfigError("files: all patterns exclude; add one without !"),
            )
        lines: list[CronLine] = []
        for item in table.texts("cron"):
            try:
                lines.append(parse_cron(str(item.value)))
            except ConfigError as error:
                self._mistakes.add(item.line, error)
        return Triggers(
            files=tuple(files),
            every=table.duration("every", shortest=MIN_INTERVAL),
            cron=tuple(lines),
        )

    def _steps(self, entries: Iterable[Entry], *, inside: bool) -> Iterator[Step]:
        """Yield steps; those of a group (`inside`) cannot refer to each other."""
        group_ids: list[str] = []
        for entry in entries:
            table = Table(entry, self._mistakes, STEP_FIELDS)
            if not isinstance(entry.value, Mapping):
                continue
            step = self._step(table, inside=inside)
            yield step
            if inside:
                group_ids.append(step.id)
            else:
                self._previous_ids.add(step.id)
        self._previous_ids.update(group_ids)

    def _step(self, table: Table, *, inside: bool) -> Step:
        id_ = self._id(table)
        kinds = [kind for kind in _STEP_KINDS if kind in table]
        if len(kinds) != 1:
            self._mistakes.add(
                table.line, ConfigError("a step has one of prompt, skill and parallel; name one")
            )
        parallel: tuple[Step, ...] = ()
        if "parallel" in table:
            parallel = self._group(table, inside=inside)
        self._has_item = False
        for_each = self._items(table, inside=inside)
        self._has_item = for_each is not None
        prompt = table.text("prompt")
        if prompt is not None:
            self._check_text(table.field_line("prompt"), "prompt", prompt)
            if not prompt.strip():
                self._mistakes.add(
                    table.field_line("prompt"), ConfigError("prompt: it is empty; write what to do")
                )
        if "with" in table and "skill" not in table:
            self._mistakes.add(
                table.field_line("with"), ConfigError("with: only a skill has it; take it out")
            )
        agent = table.text("agent")
        session = table.choice("session", ("new", "shared"))
        return Step(
            id=id_,
            line=table.line,
            prompt=prompt,
            skill=self._skill(table),
            arguments=self._arguments(table),
            parallel=parallel,
            for_each=for_each,
            condition=self._condition(table),
            agent=agent,
            model=self._model(table),
            mode=table.choice("mode", _MODES),
            separate_session=inside or agent is not None or session == "new",
            retry=table.number("retry", 0, MAX_RETRIES) or 0,
            timeout=table.duration("timeout"),
            continue_on_error=table.flag("continue-on-error"),
        )

    def _group(self, table: Table, *, inside: bool) -> tuple[Step, ...]:
        line = table.field_line("parallel")
        if inside:
            self._mistakes.add(
                line,
                ConfigError("parallel: it is inside another one; put its steps beside the others"),
            )
            return ()
        for name in (*SETTINGS, "for-each", "retry", "timeout", "session"):
            if name in table:
                self._mistakes.add(
                    table.field_line(name),
                    ConfigError(f"{name}: a group has none; give it to the steps in it"),
                )
        entries = table.items("parallel")
        if not 1 <= len(entries) <= MAX_PARALLEL_STEPS:
            self._mistakes.add(
                line, ConfigError(f"parallel: expected a list of 1 to {MAX_PARALLEL_STEPS} steps")
            )
            return ()
        return tuple(self._steps(entries, inside=True))

    def _items(self, table: Table, *, inside: bool) -> tuple[str, ...] | str | None:
        """Return the items that a step runs for: a list, or a text with one item per line."""
        entry = table.entry("for-each")
        if entry is None or "parallel" in table:
            return None
        if inside:
            self._mistakes.add(
                entry.line, ConfigError("for-each: a step of a group has none; put it outside")
            )
        if isinstance(entry.value, str):
            self._check_text(entry.line, "for-each", entry.value)
            return entry.value
        items = (table.scalar_text("for-each", value) for value in table.items("for-each"))
        return tuple(item for item in items if item is not None)

    def _id(self, table: Table) -> str:
        id_ = table.text("id")
        if id_ is None:
            if "id" not in table:
                self._mistakes.add(
                    table.line, ConfigError("id: it is missing; give the step a name")
                )
            return f"line-{table.line}"
        line = table.field_line("id")
        if _NAME.fullmatch(id_) is None:
            self._mistakes.add(
                line, ConfigError(f"id: {id_[:40]} is no name; use letters, digits, - and _")
            )
        elif id_ in self._ids:
            self._mistakes.add(
                line,
                ConfigError(f"id: the step on line {self._ids[id_]} is {id_}, too; rename one"),
            )
        self._ids.setdefault(id_, line)
        return id_

    def _skill(self, table: Table) -> str | None:
        name = table.text("skill")
        if name is not None and re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", name) is None:
            self._mistakes.add(
                table.field_line("skill"),
                ConfigError(f"skill: {name[:40]} is no skill's name; see acp-agent skills"),
            )
        return name

    def _arguments(self, table: Table) -> Mapping[str, str] | str:
        entry = table.entry("with")
        if entry is None:
            return ""
        if isinstance(entry.value, str):
            self._check_text(entry.line, "with", entry.value)
            return entry.value
        arguments = {}
        for name, value in table.mapping("with").items():
            text = table.scalar_text(name, value)
            if text is not None:
                self._check_text(value.line, name, text)
                arguments[name] = text
        return arguments

    def _model(self, table: Table) -> str | None:
        model = table.text("model")
        if model is not None and _MODEL.fullmatch(model) is None:
            self._mistakes.add(
                table.field_line("model"),
                ConfigError(f"model: {model[:40]} is no model; write it as provider/name"),
            )
        return model

    def _condition(self, table: Table) -> Expression | None:
        entry = table.entry("if")
        if entry is None:
            return None
        text = table.scalar("if")
        if text is None:
            return None
        try:
            condition = parse_expression(text)
        except ConfigError as error:
            self._mistakes.add(entry.line, error)
            return None
        for reference in references(condition):
            self._check_reference(entry.line, "if", reference)
        return condition

    def _check_text(self, line: int, field: str, text: str) -> None:
        for reference in placeholders(text):
            self._check_reference(line, field, reference)

    def _check_reference(self, line: int, field: str, reference: Reference) -> None:
        try:
            self._check_target(reference)
        except ConfigError as error:
            self._mistakes.add(line, ConfigError(f"{field}: {error}"))

    def _check_target(self, reference: Reference) -> None:
        """Raise ConfigError if a reference has no target."""
        match reference.path:
            case ("inputs", name):
                if name not in self._inputs:
                    raise ConfigError(f"there is no input {name[:40]}; add it to inputs")
            case ("steps", step, ("output" | "status")):
                if step not in self._previous_ids:
                    raise ConfigError(
                        f"no step before this one is called {step[:40]}; name an earlier one"
                    )
            case ("trigger", ("kind" | "files")):
                pass
            case ("item",):
                if not self._has_item:
                    raise ConfigError("only a step with for-each has an item; add for-each")
            case _:
                raise ConfigError(
                    f"{str(reference)[:60]} is not known; use inputs.NAME, steps.ID.output, "
                    "steps.ID.status, trigger.kind or trigger.files"
                )


def _check_pattern(pattern: str) -> None:
    """Raise ConfigError if a file pattern is invalid, or leads out of the folder."""
    bare = pattern.removeprefix("!")
    if not bare.strip("/") or bare.startswith("/") or ".." in bare.split("/"):
        raise ConfigError(
            f"files: {pattern[:40]} is not inside the folder; write it like src/**/*.py"
        )
    FilePatterns([pattern])
