"""Steps of the demo model: what one of its answers consists of."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from acp_agent.content import JsonObject


class DemoCall(Struct, frozen=True):
    """A tool call that a step makes."""

    tool: str
    arguments: JsonObject


class PlanState(Struct, frozen=True):
    """How far the tour's plan is: the index of the active step."""

    active: int


class Step(Struct, frozen=True, kw_only=True):
    """One answer: reasoning, text and calls. `plan` marks the active step of the tour's plan."""

    text: str = ""
    thought: str = ""
    calls: tuple[DemoCall, ...] = ()
    plan: PlanState | None = None


def call(tool: str, **arguments: object) -> DemoCall:
    """A call of `tool` with these arguments."""
    return DemoCall(tool, arguments)


def todo(steps: Sequence[str], active: int) -> DemoCall:
    """The plan with everything before step `active` done."""
    todos = [
        {
            "content": step,
            "status": "completed" if at < active else "in_progress" if at == active else "pending",
        }
        for at, step in enumerate(steps)
    ]
    return call("todo", todos=todos)
