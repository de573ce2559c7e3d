"""Show a run as text for people, or as JSON lines for programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TextIO

from msgspec import Struct

from acp_agent.cli.agent_client import PermissionRequest
from acp_agent.cli.flow.journal import StepEnded
from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.output import complain, escape_controls, escape_hidden
from acp_agent.cli.permission_answers import AutomaticAnswer, flag_for, request_fields
from acp_agent.cli.run import refusals
from acp_agent.cli.screen import Paint, Screen, Style, painter, program_command
from acp_agent.extensions.workflows.types import Status, Step
from protocol.codec import typed_json
from protocol.v1 import types as acp

_STATUS_STYLES: Mapping[Status, Style] = {"completed": "good", "failed": "bad", "skipped": "dim"}


class Outcome(Struct, frozen=True, kw_only=True):
    """The result of a run: exit status, last output, and requests refused without asking."""

    run: str
    status: int
    output: str
    steps: Mapping[str, StepEnded]
    refused: Sequence[PermissionRequest] = ()


class FlowView(Protocol):
    """Shows a run. `ask` shows a question; it is None if there is nobody to ask."""

    @property
    def ask(self) -> Callable[[str, PermissionRequest], None] | None:
        """Return a function that shows a step's permission request before its answer is read."""

    def run_started(self, run: str, name: str, *, resumed: bool) -> None:
        """Show that a run started or was resumed."""

    def step_started(self, step: Step, session: str, *, concurrent: bool) -> None:
        """Show that a step started; `concurrent` means that others may run at the same time."""

    def update(self, step: str, update: acp.SessionUpdate) -> None:
        """Show an update of a step's session."""

    def show_answer(self, step: str, request: PermissionRequest, answer: AutomaticAnswer) -> None:
        """Show a permission request that was answered without asking."""

    def show_retry(self, step: str, error: str) -> None:
        """Show that a step failed and is retried."""

    def step_ended(self, end: StepEnded) -> None:
        """Show that a step ended."""

    def notice(self, text: str) -> None:
        """Show a notice to the user."""

    def show_end(self, outcome: Outcome) -> None:
        """Show the result of the run."""

    def show_failure(self, message: str) -> None:
        """Show that the run cannot continue."""


class TextView:
    """A run as text: progress on one stream, the last output on the other."""

    def __init__(self, out: TextIO, *, cwd: Path, answer: TextIO) -> None:
        self._out = out
        self._answer = answer
        self._cwd = cwd
        self._paint = painter(out)
        self._main = Screen(self._paint, cwd=cwd)
        self._concurrent_screens: dict[str, Screen] = {}
        terminal = out.isatty() and sys.stdin.isatty()
        self.ask = self._ask if terminal else None

    def run_started(self, run: str, name: str, *, resumed: bool) -> None:
        """Show the run's ID."""
        text = (
            translate("Continuing {name} ({run})", name=name, run=run)
            if resumed
            else translate("Running {name} ({run})", name=name, run=run)
        )
        self._main.say(text, "dim")

    def step_started(self, step: Step, session: str, *, concurrent: bool) -> None:
        """Show a heading."""
        del session  # recorded in the journal
        if concurrent:
            self._concurrent_screens[step.id] = Screen(
                _prefixed(self._paint, step.id), cwd=self._cwd
            )
        self._screen(step.id).say(translate("Step {step}", step=step.id), "bold")

    def update(self, step: str, update: acp.SessionUpdate) -> None:
        """Show an update."""
        self._screen(step).update(update)

    def show_answer(self, step: str, request: PermissionRequest, answer: AutomaticAnswer) -> None:
        """Show a permission request and its answer."""
        self._screen(step).show_answer(request, answer.text)

    def show_retry(self, step: str, error: str) -> None:
        """Show why a step is retried."""
        reason = translate_rendered(error)
        message = translate("{step} failed, retrying: {error}", step=step, error=reason)
        self._screen(step).say(message, "warning")

    def step_ended(self, end: StepEnded) -> None:
        """Show how a step ended."""
        screen = self._screen(end.step)
        word = {
            "completed": translate("done"),
            "failed": translate("failed"),
            "skipped": translate("skipped"),
        }[end.status]
        message = translate("Step {step}: {result}", step=end.step, result=word)
        if end.error:
            message = f"{message} ({translate_rendered(end.error)})"
        screen.say(message, _STATUS_STYLES[end.status])
        self._concurrent_screens.pop(end.step, None)

    def notice(self, text: str) -> None:
        """Show a line."""
        self._main.say(f"! {text}", "warning")

    def show_end(self, outcome: Outcome) -> None:
        """Show the output, and how to continue if something is unfinished."""
        self._main.close_line()
        # Anyone who sees the progress in the same terminal has seen the output.
        if outcome.output and not (self._answer.isatty() and self._out.isatty()):
            readable = escape_hidden if self._answer.isatty() else escape_controls
            self._answer.write(readable(outcome.output.rstrip("\n")) + "\n")
            self._answer.flush()
        if outcome.status not in {0, 4}:
            command = f"{program_command()} flow run --resume {outcome.run}"
            self._main.say(translate("Continue with: {command}", command=command), "dim")
        if outcome.refused:
            complain(refusals(outcome.refused))

    def show_failure(self, message: str) -> None:
        """Show an error."""
        self._main.close_line()
        complain(message)

    def _ask(self, step: str, request: PermissionRequest) -> None:
        self._screen(step).close_line()
        screen = Screen(self._paint, cwd=self._cwd)
        if step in self._concurrent_screens:
            screen.say(translate("Step {step}", step=step), "bold")
        screen.ask(request)

    def _screen(self, step: str) -> Screen:
        return self._concurrent_screens.get(step, self._main)


def _prefixed(paint: Paint, step: str) -> Paint:
    """Return a `paint` that writes whole lines prefixed with the step, for a shared terminal."""
    pending: list[tuple[str, Style]] = []

    def write(text: str, style: Style) -> None:
        *lines, last = text.split("\n")
        for piece in lines:
            pending.append((piece, style))
            if any(part.strip() for part, _ in pending):
                paint(f"[{step}] ", "dim")
                for part, part_style in pending:
                    paint(part, part_style)
                paint("\n", "")
            pending.clear()
        if last:
            pending.append((last, style))

    return write


class JsonView:
    """A run as one JSON object per line; docs/workflows.md describes their types."""

    ask = None

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def run_started(self, run: str, name: str, *, resumed: bool) -> None:
        """Write a `run` line."""
        self._line({"type": "run", "runId": run, "name": name, "resumed": resumed})

    def step_started(self, step: Step, session: str, *, concurrent: bool) -> None:
        """Write a `step` line."""
        del concurrent
        self._line({"type": "step", "step": step.id, "status": "running", "sessionId": session})

    def update(self, step: str, update: acp.SessionUpdate) -> None:
        """Write an `update` line."""
        self._line({"type": "update", "step": step, "update": update})

    def show_answer(self, step: str, request: PermissionRequest, answer: AutomaticAnswer) -> None:
        """Write a `permission` line."""
        value: dict[str, object] = {
            "type": "permission",
            "step": step,
            **request_fields(request),
            "answer": answer.text,
            "allowed": answer.allowed,
            "by": answer.by,
        }
        self._line(value | ({"name": answer.name} if answer.name else {}))

    def show_retry(self, step: str, error: str) -> None:
        """Write a `step` line with the error."""
        self._line({"type": "step", "step": step, "status": "retrying", "error": error})

    def step_ended(self, end: StepEnded) -> None:
        """Write a `step` line."""
        line: dict[str, object] = {"type": "step", "step": end.step, "status": end.status}
        if end.error:
            line["error"] = translate_rendered(end.error)
        self._line(line | {"output": end.output})

    def notice(self, text: str) -> None:
        """Write a `notice` line."""
        self._line({"type": "notice", "message": text})

    def show_end(self, outcome: Outcome) -> None:
        """Write the `result` line."""
        self._line(
            {
                "type": "result",
                "runId": outcome.run,
                "status": outcome.status,
                "text": outcome.output,
                "steps": {name: step_end.status for name, step_end in outcome.steps.items()},
                "refused": [
                    request_fields(request) | {"flag": flag_for(request)}
                    for request in outcome.refused
                ],
            }
        )

    def show_failure(self, message: str) -> None:
        """Write an `error` line."""
        self._line({"type": "error", "message": message})

    def _line(self, value: dict[str, object]) -> None:
        self._out.write(typed_json.encode(value).decode() + "\n")
        self._out.flush()
