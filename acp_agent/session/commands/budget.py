"""The command `/budget`: show usage and budgets, and change the session's budgets."""

from __future__ import annotations

from acp_agent.config.amounts import format_dollars, parse_amount
from acp_agent.config.localization import Translator
from acp_agent.events import ConfigChanged
from acp_agent.session.core import SessionCore
from acp_agent.session.history.questions import QuestionCounts
from acp_agent.session.services import Spending
from acp_agent.session.turns.budget import (
    NO_PRICE,
    NONE,
    OPTION,
    SCOPES,
    UNITS,
    SessionBudget,
    Unit,
)


async def budget_command(core: SessionCore, budget: SessionBudget, arguments: str) -> str:
    """Execute `/budget` with its arguments and return the answer. Raises StoreError."""
    translate = core.translate
    scope, _, amount = arguments.strip().partition(" ")
    if not scope:
        return await _spent(core, budget)
    if scope not in SCOPES:
        unknown = translate(
            "Unknown budget {name}; the budgets are {names}.",
            name=repr(scope),
            names=", ".join(SCOPES),
        )
        return f"{unknown} {_usage_text(translate)}"
    changes = _changes(amount.strip())
    if changes is None:
        problem = translate("{amount} is not an amount.", amount=repr(amount.strip()))
        return f"{problem} {_usage_text(translate)}"
    await core.emit(
        *(
            ConfigChanged(option=f"{OPTION}{scope}_{unit}", value=value)
            for unit, value in changes.items()
        )
    )
    return await _spent(core, budget)


def _changes(amount: str) -> dict[Unit, str] | None:
    """Return the changes by unit; None if the amount is invalid."""
    if amount.lower() in {NONE, "off"}:
        return dict.fromkeys(UNITS, NONE)
    parsed = parse_amount(amount)
    if parsed is None:
        return None
    unit, number = parsed
    return {unit: f"{number:f}" if unit == "cost" else f"{number:.0f}"}


async def _spent(core: SessionCore, budget: SessionBudget) -> str:
    translate = core.translate
    names = {
        "turn": translate("The last turn"),
        "session": translate("This session"),
        "day": translate("Today, all sessions"),
    }
    limits = {(limit.scope, limit.unit): limit for limit in budget.limits}
    lines: list[str] = []
    unpriced = False
    for scope in SCOPES:
        spent = await budget.spent(scope)
        if scope == "turn" and not spent.tokens:  # commands ask no model
            spent = core.state.spent_before
        unpriced = unpriced or bool(spent.unpriced)
        amounts = [translate("{count} tokens", count=f"{spent.tokens:,}"), _money(spent)]
        for index, unit in enumerate(UNITS):
            limit = limits.get((scope, unit))
            if limit is not None:
                maximum = translate.rendered(limit.format_amount(limit.maximum))
                amounts[index] = translate("{spent} of {most}", spent=amounts[index], most=maximum)
        lines.append(
            translate("- {name}: {amounts}", name=names[scope], amounts=", ".join(amounts))
        )
    if unpriced:
        lines += ["", translate.rendered(NO_PRICE)]
    questions = QuestionCounts()
    questions.add(await core.history())
    if counted := questions.describe(translate):
        lines.append(f"- {counted}")
    return "\n".join([*lines, "", _usage_text(translate)])


def _money(spent: Spending) -> str:
    """Return the amount in US dollars, with a question mark if some prices are unknown."""
    if not spent.unpriced:
        return format_dollars(spent.cost)
    return f"{format_dollars(spent.cost)} +?" if spent.cost else "?"


def _usage_text(translate: Translator) -> str:
    return translate(
        "To change a budget of this session, use for example `/budget turn $2`, `/budget "
        "session 500k` (tokens) or `/budget day none`. For all sessions, set `[budget]` in the "
        "configuration."
    )
