"""Budgets of a turn, a session and a day.

They limit tokens sent and received, or the cost in US dollars. A day is the user's local day, and
counts the usage of all sessions of all processes. A request whose price was not known when it was
made counts at today's price; without a known price it counts only in token budgets.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import date, datetime, time, timedelta
from typing import Literal, NamedTuple

from acp_agent.config.amounts import format_dollars
from acp_agent.config.types import BudgetConfig
from acp_agent.events import Usage
from acp_agent.models.base import ModelInfo
from acp_agent.session.core import SessionCore
from acp_agent.session.services import PendingAnswer, Spending

Scope = Literal["turn", "session", "day"]
Unit = Literal["tokens", "cost"]
SCOPES: tuple[Scope, ...] = ("turn", "session", "day")
UNITS: tuple[Unit, ...] = ("tokens", "cost")
OPTION = "budget."  # prefix of the session options that change budgets
NONE = "none"
# The tokens that a pending answer counts as at first, at most; see docs/budgets.md.
ANSWER_TOKENS = 8_000

NO_PRICE = "Some of these requests have no known price: they count only in token budgets."
_SAYS = {"turn": "of this turn", "session": "of this session", "day": "of today"}


class Limit(NamedTuple):
    """A budget. `most` is in tokens or US dollars."""

    scope: Scope
    unit: Unit
    most: float

    def of(self, spent: Spending) -> float:
        """Return the part of a spending that counts against the budget."""
        return spent.tokens if self.unit == "tokens" else spent.cost

    def shown(self, amount: float) -> str:
        """Return an amount with its unit, as text."""
        return f"{amount:,.0f} tokens" if self.unit == "tokens" else format_dollars(amount)


class SessionBudget:
    """The budgets of one session."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._warned: set[tuple[str, ...]] | None = None
        self._warned_of_prices = False

    @property
    def limits(self) -> list[Limit]:
        """The budgets in force: those of the configuration, overridden by the session's."""
        config, changed = self._core.services.config.budget, self._core.state.budget
        limits: list[Limit] = []
        for scope in SCOPES:
            for unit in UNITS:
                own = changed.get(f"{OPTION}{scope}_{unit}")
                most = _configured(config, scope, unit) if own is None else _amount(own)
                if most is not None:
                    limits.append(Limit(scope, unit, most))
        return limits

    async def spent(self, scope: Scope) -> Spending:
        """Return the spending in a scope."""
        state = self._core.state
        match scope:
            case "turn":
                return state.spent_in_turn
            case "session":
                return state.spent
            case _:
                services = self._core.services
                # The upper bound matters if the clock has been set back.
                total = await services.store.spent_since(midnight(), midnight(days=1))
                spent = Spending(total.tokens, total.cost)
                for model_ref, usage in total.unpriced:
                    spent.add_price(services.models.cost_now(model_ref, usage))
                return spent

    @asynccontextmanager
    async def reserve(
        self, model: ModelInfo, sent: int, *, cached: bool
    ) -> AsyncIterator[str | PendingAnswer]:
        """Reserve budget for a request; yield a `PendingAnswer`, or the reason for a refusal.

        Agents run concurrently. A request that fits into the budgets alone, but perhaps not
        together with the pending ones, waits until one of them ends. The caller reports received
        tokens to the `PendingAnswer`.
        """
        session, pending = self._core.id, self._core.services.pending_requests
        more = self._estimate(model, sent, cached=cached)
        while True:
            limits, ended = self.limits, pending.ended
            so_far = await self._spent_of(limits)
            if pending.ended != ended:
                continue  # a request ended in between, and may not be counted
            why = self._refused(limits, so_far, more)
            if why is not None:
                yield why
                return
            others = {scope: pending.total(None if scope == "day" else session) for scope in so_far}
            if all(_fits(limit, so_far, others, more) for limit in limits):
                break
            await pending.wait_for_end()
        answered = min(model.max_output, ANSWER_TOKENS)
        price = (model.cost(Usage(input=sent, output=1)) or 0.0) - (
            model.cost(Usage(input=sent)) or 0.0
        )
        answer = PendingAnswer(more, answered, price)
        with pending.track(session, answer):
            yield answer

    async def refusal(self, model: ModelInfo, sent: int, *, cached: bool) -> str | None:
        """Return why a request must not be made; None if it may be made.

        Args:
            model: the model.
            sent: the approximate number of tokens that are sent.
            cached: whether the provider may have cached some of them, as with the conversation.

        Raises:
            StoreError: the day's spending could not be read.
        """
        limits = self.limits
        so_far = await self._spent_of(limits)
        return self._refused(limits, so_far, self._estimate(model, sent, cached=cached))

    def _refused(
        self, limits: Sequence[Limit], so_far: Mapping[Scope, Spending], more: Spending
    ) -> str | None:
        """Return why a request that spends at least `more` must not be made; None if it may."""
        if self._warned is None:
            # An earlier process gave the session's warnings for its spending so far.
            self._warned = set()
            self._due([limit for limit in limits if limit.scope == "session"], so_far)
        for limit in limits:
            spent, asked = limit.of(so_far[limit.scope]), limit.of(more)
            of = _SAYS[limit.scope]
            share = f"{limit.shown(spent)} of {limit.shown(limit.most)}"
            if spent >= limit.most:
                why = f"The budget {of} is used up: {share}."
            elif spent + asked > limit.most:
                why = (
                    f"The next request would exceed the budget {of}: it needs about "
                    f"{limit.shown(asked)}; {share} used."
                )
            else:
                continue
            return f"{why} No further model requests are sent. `/budget` shows and changes this."
        return None

    async def warnings(self) -> list[str]:
        """Return the warnings that are due after an answer. Each is returned once.

        Raises:
            StoreError: the day's spending could not be read.
        """
        limits = self.limits
        so_far = await self._spent_of(limits)
        warnings = self._due(limits, so_far)
        for limit in limits:
            unseen = limit.unit == "cost" and so_far[limit.scope].unpriced
            if unseen and not self._warned_of_prices:
                self._warned_of_prices = True
                warnings.append(NO_PRICE)
        return warnings

    async def _spent_of(self, limits: list[Limit]) -> dict[Scope, Spending]:
        """Return the spending in the scopes of `limits`."""
        return {scope: await self.spent(scope) for scope in {limit.scope for limit in limits}}

    def _due(self, limits: Sequence[Limit], so_far: Mapping[Scope, Spending]) -> list[str]:
        """Return the warnings that are due, and mark them as given."""
        if self._warned is None:
            self._warned = set()
        part = self._core.services.config.budget.warn_at
        due: list[str] = []
        for limit in limits:
            spent = limit.of(so_far[limit.scope])
            period = {"turn": str(self._core.state.turns), "day": date.today().isoformat()}  # noqa: DTZ011 - the user's own day
            key = (limit.scope, limit.unit, str(limit.most), period.get(limit.scope, ""))
            if limit.most and spent >= part * limit.most and key not in self._warned:
                self._warned.add(key)
                due.append(
                    f"{spent / limit.most:.0%} of the budget {_SAYS[limit.scope]} is used: "
                    f"{limit.shown(spent)} of {limit.shown(limit.most)}."
                )
        return due

    def _estimate(self, model: ModelInfo, sent: int, *, cached: bool) -> Spending:
        """Return the minimum spending of a request: the tokens sent, with cached ones cheaper."""
        last = self._core.state.last_usage
        read = 0
        if last is not None and last.cache_read and cached:
            read = min(sent, last.input)
        usage = Usage(input=sent, cache_read=read)
        return Spending(tokens=sent, cost=model.cost(usage) or 0.0)


def _fits(
    limit: Limit,
    so_far: Mapping[Scope, Spending],
    others: Mapping[Scope, Spending],
    more: Spending,
) -> bool:
    """Return whether a request and the pending ones fit into a budget; true if none is pending."""
    pending = limit.of(others[limit.scope])
    return not pending or limit.of(so_far[limit.scope]) + pending + limit.of(more) <= limit.most


def midnight(now: datetime | None = None, *, days: int = 0) -> int:
    """Return the start of the user's day, plus `days`, in milliseconds since 1970."""
    day = (now or datetime.now().astimezone()).date() + timedelta(days=days)
    # Not with the current UTC offset: on two days of the year midnight has another one. If clocks
    # go forward at midnight, the day begins with the time that they show instead.
    return int(datetime.combine(day, time.min).timestamp() * 1000)


def _configured(config: BudgetConfig, scope: Scope, unit: Unit) -> float | None:
    match scope, unit:
        case "turn", "tokens":
            return config.turn_tokens
        case "turn", "cost":
            return config.turn_cost
        case "session", "tokens":
            return config.session_tokens
        case "session", "cost":
            return config.session_cost
        case "day", "tokens":
            return config.day_tokens
        case _:
            return config.day_cost


def _amount(value: str) -> float | None:
    try:
        return None if value == NONE else float(value)
    except ValueError:  # written by a newer version
        return None
