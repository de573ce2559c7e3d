"""Show a run as text for people, or as JSON lines for programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TextIO

from msgspec import Struct

from acp_agent.cli.agent_client import Asked
from acp_agent.cli.flow.journal import StepEnded
from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.output import complain, escape_controls, escape_hidden
from acp_agent.cli.permission_answers import Given, flag_for
from acp_agent.cli.run import refusals
from acp_agent.cli.screen import Paint, Screen, Style, own_command, painter
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
    refused: Sequence[Asked] = ()


class FlowView(Protocol):
    """Shows a run. `ask` shows a question; it is None if there is nobody to ask."""

    @property
    def ask(self) -> Callable[[str, Asked], None] | None:
        """Return a function that shows a step's permission request before its answer is read."""
        ...

    def run_started(self, run: str, name: str, *, resumed: bool) -> None:
        """Show that a run started or was resumed."""
        ...

    def step_started(self, step: Step, session: str, *, beside: bool) -> None:
        """Show that a step started; `beside` means that others may run concurrently."""
        ...

    def update(self, step: str, update: acp.SessionUpdate) -> None:
        """Show an update of a step's session."""
        ...

    def answered(self, step: str, asked: Asked, given: Given) -> None:
        """Show a permission request that was answered without asking."""
        ...

    def retrying(self, step: str, error: str) -> None:
        """Show that a step failed and is retried."""
        ...

    def step_ended(self, ended: StepEnded) -> None:
        """Show that a step ended."""
        ...

    def notice(self, text: str) -> None:
        """Show a notice to the user."""
        ...

    def ended(self, outcome: Outcome) -> None:
        """Show the result of the run."""
        ...

    def failed(self, message: str) -> None:
        """Show that the run cannot continue."""
        ...


class TextView:
    """A run as text: progress on one stream, the last output on the other.

    Args:
        out: the stream for progress.
        cwd: the folder that paths are shown relative to.
        answer: the stream for the output.
    """

    def __init__(self, out: TextIO, *, cwd: Path, answer: TextIO) -> None:
        self._out = out
        self._answer = answer
        self._cwd = cwd
        self._paint = painter(out)
        self._main = Screen(self._paint, cwd=cwd)
        self._beside: dict[str, Screen] = {}
        terminal = out.isatty() and sys.stdin is not None and sys.stdin.isatty()
        self.ask = self._ask if terminal else None

    def run_started(self, run: str, name: str, *, resumed: bool) -> None:
        """Show the run's ID."""
        text = (
            translate("Continuing {name} ({run})", name=name, run=run)
            if resumed
            else translate("Running {name} ({run})", name=name, run=run)
        )
        self._main.say(text, "dim")

    def step_started(self, step: Step, session: str, *, beside: bool) -> None:
        """Show a heading."""
        del session  # recorded in the journal
        if beside:
            self._beside[step.id] = Screen(_prefixed(self._paint, step.id), cwd=self._cwd)
        self._screen(step.id).say(translate("Step {step}", step=step.id), "bold")

    def update(self, step: str, update: acp.SessionUpdate) -> None:
        """Show an update."""
        self._screen(step).update(update)

    def answered(self, step: str, asked: Asked, given: Given) -> None:
        """Show a permission request and its answer."""
        self._screen(step).answered(asked, given.text)

    def retrying(self, step: str, error: str) -> None:
        """Show why a step is retried."""
        why = translate_rendered(error)
        said = translate("{step} failed, retrying: {error}", step=step, error=why)
        self._screen(step).say(said, "warning")

    def step_ended(self, ended: StepEnded) -> None:
        """Show how a step ended."""
        screen = self._screen(ended.step)
        word = {
            "completed": translate("done"),
            "failed": translate("failed"),
            "skipped": translate("skipped"),
        }[ended.status]
        said = translate("Step {step}: {result}", step=ended.step, result=word)
        if ended.error:
            said = f"{said} ({translate_rendered(ended.error)})"
        screen.say(said, _STATUS_STYLES[ended.status])
        self._beside.pop(ended.step, None)

    def notice(self, text: str) -> None:
        """Show a line."""
        self._main.say(f"! {text}", "warning")

    def ended(self, outcome: Outcome) -> None:
        """Show the output, and how to continue if something is unfinished."""
        self._main.close_line()
        # Anyone who sees the progress in the same terminal has seen the output.
        if outcome.output and not (self._answer.isatty() and self._out.isatty()):
            readable = escape_hidden if self._answer.isatty() else escape_controls
            self._answer.write(readable(outcome.output.rstrip("\n")) + "\n")
            self._answer.flush()
        if outcome.status not in {0, 4}:
            again = f"{own_command()} flow run --resume {outcome.run}"
            self._main.say(translate("Continue with: {command}", command=again), "dim")
        if outcome.refused:
            complain(refusals(outcome.refused))

    def failed(self, message: str) -> None:
        """Show an error."""
        self._main.close_line()
        complain(message)

    def _ask(self, step: str, asked: Asked) -> None:
        self._screen(step).close_line()
        screen = Screen(self._paint, cwd=self._cwd)
        if step in self._beside:
            screen.say(translate("Step {step}", step=step), "bold")
        screen.ask(asked)

    def _screen(self, step: str) -> Screen:
        return self._beside.get(step, self._main)


def _prefixed(paint: Paint, step: str) -> Paint:
    """Return a `paint` that writes whole lines prefixed with the step, for a shared terminal."""
    pending: list[tuple[str, Style]] = []

    def write(text: str, style: Style) -> None:
        *whole, last = text.split("\n")
        for piece in whole:
            pending.append((piece, style))
            if any(part.strip() for part, _ in pending):
                paint(f"[{step}] ", "dim")
                for part, of in pending:
                    paint(part, of)
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

    def step_started(self, step: Step, session: str, *, beside: bool) -> None:
        """Write a `step` line."""
        del beside
        self._line({"type": "step", "step": step.id, "status": "running", "sessionId": session})

    def update(self, step: str, update: acp.SessionUpdate) -> None:
        """Write an `update` line."""
        self._line({"type": "update", "step": step, "update": update})

    def answered(self, step: str, asked: Asked, given: Given) -> None:
        """Write a `permission` line."""
        value: dict[str, object] = {
            "type": "permission",
            "step": step,
            **_named(asked),
            "answer": given.text,
            "allowed": given.allowed,
            "by": given.by,
        }
        self._line(value | ({"name": given.name} if given.name else {}))

    def retrying(self, step: str, error: str) -> None:
        """Write a `step` line with the error."""
        self._line({"type": "step", "step": step, "status": "retrying", "error": error})

    def step_ended(self, ended: StepEnded) -> None:
        """Write a `step` line."""
        line: dict[str, object] = {"type": "step", "step": ended.step, "status": ended.status}
        if ended.error:
            line["error"] = translate_rendered(ended.error)
        self._line(line | {"output": ended.output})

    def notice(self, text: str) -> None:
        """Write a `notice` line."""
        self._line({"type": "notice", "message": text})

    def ended(self, outcome: Outcome) -> None:
        """Write the `result` line."""
        self._line(
            {
                "type": "result",
                "runId": outcome.run,
                "status": outcome.status,
                "text": outcome.output,
                "steps": {name: one.status for name, one in outcome.steps.items()},
                "refused": [_named(one) | {"flag": flag_for(one)} for one in outcome.refused],
            }
        )

    def failed(self, message: str) -> None:
        """Write an `error` line."""
        self._line({"type": "error", "message": message})

    def _line(self, value: dict[str, object]) -> None:
        self._out.write(typed_json.encode(value).decode() + "\n")
        self._out.flush()


def _named(asked: Asked) -> dict[str, object]:
    return {"toolCallId": asked.request.tool_call.tool_call_id, "title": asked.title}
