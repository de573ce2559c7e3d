"""The line at the bottom: mode, model, plan, context and cost, as far as there is room."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

from acp_agent.cli.chat.state import SessionState
from acp_agent.cli.localization import translate
from acp_agent.cli.output import one_line
from acp_agent.config.amounts import decimal


def toolbar(state: SessionState, width: int, *, waiting: int) -> str:
    """The facts of a session in one line; what matters least goes first where it is narrow.

    Args:
        state: the session.
        width: the columns there are.
        waiting: prompts that wait.
    """
    facts: list[tuple[int, str]] = []  # how much it matters, and what it says
    if state.mode:
        facts.append((9, one_line(state.mode, 20)))
    if waiting:
        facts.append((8, translate("{count} waiting", count=waiting)))
    facts += _plan(state)
    usage = state.usage
    if usage is not None:
        if usage.size:
            share = f"{min(usage.used / usage.size, 9.99):.0%}"
            facts.append((7, translate("context {share}", share=share)))
        if usage.cost is not None:
            facts.append((6, f"{decimal(usage.cost.amount, 2)} {one_line(usage.cost.currency, 5)}"))
    if state.model:
        facts.append((4, one_line(state.model, 40)))
    if state.title:
        facts.append((1, one_line(state.title, 60)))
    while len(facts) > 1 and cell_len(_joined(facts)) > width:
        facts.remove(min(facts))
    return set_cell_size(_joined(facts), width)


def _plan(state: SessionState) -> list[tuple[int, str]]:
    if not state.plan:
        return []
    done = sum(entry.status == "completed" for entry in state.plan)
    short = translate("plan {done}/{count}", done=done, count=len(state.plan))
    now = next((entry.content for entry in state.plan if entry.status == "in_progress"), "")
    return [(5, short), *([(2, one_line(now, 40))] if now else [])]


def _joined(facts: list[tuple[int, str]]) -> str:
    return f" {' | '.join(text for _, text in facts)} "
