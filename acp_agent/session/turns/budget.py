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
_PERIODS = {"turn": "of this turn", "session": "of this session", "day": "of today"}


class Limit(NamedTuple):
    """A budget. `maximum` is in tokens or US dollars."""

    scope: Scope
    unit: Unit
    maximum: float

    def amount_in(self, spent: Spending) -> float:
        """Return the part of a spending that counts against the budget."""
        return spent.tokens if self.unit == "tokens" else spent.cost

    def format_amount(self, amount: float) -> str:
        """Return an amount with its unit, as text."""
        return f"{amount:,.0f} tokens" if self.unit == "tokens" else format_dollars(amount)


class SessionBudget:
    """The budgets of one session."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._given_warnings: set[tuple[str, ...]] | None = None
        self._warned_of_prices = False

    @property
    def limits(self) -> list[Limit]:
        """The budgets in force: those of the configuration, overridden by the session's."""
        config, overrides = self._core.services.config.budget, self._core.state.budget
        limits: list[Limit] = []
        for scope in SCOPES:
            for unit in UNITS:
                name = f"{scope}_{unit}"
                override = overrides.get(f"{OPTION}{name}")
                amount: float | None = (
                    getattr(config, name) if override is None else _amount(override)
                )
                if amount is not None:
                    limits.append(Limit(scope, unit, amount))
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
        self, model: ModelInfo, sent_tokens: int, *, cached: bool
    ) -> AsyncIterator[str | PendingAnswer]:
        """Reserve budget for a request; yield a `PendingAnswer`, or the reason for a refusal.

        Agents run concurrently. A request that fits into the budgets alone, but perhaps not
        together with the pending ones, waits until one of them ends. The caller reports received
        tokens to the `PendingAnswer`.
        """
        session, pending = self._core.id, self._core.services.pending_requests
        request = self._estimate(model, sent_tokens, cached=cached)
        while True:
            limits, ended = self.limits, pending.ended
            so_far = await self._spending_by_scope(limits)
            if pending.ended != ended:
                continue  # a request ended in between, and may not be counted
            why = self._find_refusal(limits, so_far, request)
            if why is not None:
                yield why
                return
            pending_spending = {
                scope: pending.total(None if scope == "day" else session) for scope in so_far
            }
            if all(_fits(limit, so_far, pending_spending, request) for limit in limits):
                break
            await pending.wait_for_end()
        expected_output = min(model.max_output, ANSWER_TOKENS)
        price = (model.cost(Usage(input=sent_tokens, output=1)) or 0.0) - (
            model.cost(Usage(input=sent_tokens)) or 0.0
        )
        answer = PendingAnswer(request, expected_output, price)
        with pending.track(session, answer):
            yield answer

    async def refusal(self, model: ModelInfo, sent_tokens: int, *, cached: bool) -> str | None:
        """Return why a request must not be made; None if it may be made.

        Args:
            sent_tokens: the approximate number of tokens that are sent.
            cached: whether the provider may have cached some of them, as with the conversation.

        Raises:
            StoreError: the day's spending could not be read.
        """
        limits = self.limits
        so_far = await self._spending_by_scope(limits)
        return self._find_refusal(limits, so_far, self._estimate(model, sent_tokens, cached=cached))

    def _find_refusal(
        self, limits: Sequence[Limit], so_far: Mapping[Scope, Spending], request: Spending
    ) -> str | None:
        """Return why a request that spends at least `request` must not be made; None if it may."""
        if self._given_warnings is None:
            # An earlier process gave the session's warnings for its spending so far.
            self._given_warnings = set()
            self._new_warnings([limit for limit in limits if limit.scope == "session"], so_far)
        for limit in limits:
            spent, needed = limit.amount_in(so_far[limit.scope]), limit.amount_in(request)
            scope_name = _PERIODS[limit.scope]
            usage = f"{limit.format_amount(spent)} of {limit.format_amount(limit.maximum)}"
            if spent >= limit.maximum:
                why = f"The budget {scope_name} is used up: {usage}."
            elif spent + needed > limit.maximum:
                why = (
                    f"The next request would exceed the budget {scope_name}: it needs about "
                    f"{limit.format_amount(needed)}; {usage} used."
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
        so_far = await self._spending_by_scope(limits)
        warnings = self._new_warnings(limits, so_far)
        for limit in limits:
            unpriced = limit.unit == "cost" and so_far[limit.scope].unpriced
            if unpriced and not self._warned_of_prices:
                self._warned_of_prices = True
                warnings.append(NO_PRICE)
        return warnings

    async def _spending_by_scope(self, limits: list[Limit]) -> dict[Scope, Spending]:
        """Return the spending in the scopes of `limits`."""
        return {scope: await self.spent(scope) for scope in {limit.scope for limit in limits}}

    def _new_warnings(self, limits: Sequence[Limit], so_far: Mapping[Scope, Spending]) -> list[str]:
        """Return the warnings that are due, and mark them as given."""
        if self._given_warnings is None:
            self._given_warnings = set()
        share = self._core.services.config.budget.warn_at
        warnings: list[str] = []
        for limit in limits:
            spent = limit.amount_in(so_far[limit.scope])
            period = {"turn": str(self._core.state.turns), "day": date.today().isoformat()}  # noqa: DTZ011 - the user's own day
            key = (limit.scope, limit.unit, str(limit.maximum), period.get(limit.scope, ""))
            if limit.maximum and spent >= share * limit.maximum and key not in self._given_warnings:
                self._given_warnings.add(key)
                warnings.append(
                    f"{spent / limit.maximum:.0%} of the budget {_PERIODS[limit.scope]} is used: "
                    f"{limit.format_amount(spent)} of {limit.format_amount(limit.maximum)}."
                )
        return warnings

    def _estimate(self, model: ModelInfo, sent_tokens: int, *, cached: bool) -> Spending:
        """Return the minimum spending of a request: the tokens sent, with cached ones cheaper."""
        last = self._core.state.last_usage
        cached_tokens = 0
        if last is not None and last.cache_read and cached:
            cached_tokens = min(sent_tokens, last.input)
        usage = Usage(input=sent_tokens, cache_read=cached_tokens)
        return Spending(tokens=sent_tokens, cost=model.cost(usage) or 0.0)


def _fits(
    limit: Limit,
    so_far: Mapping[Scope, Spending],
    pending: Mapping[Scope, Spending],
    request: Spending,
) -> bool:
    """Return whether a request and the pending ones fit into a budget; true if none is pending."""
    waiting = limit.amount_in(pending[limit.scope])
    total = limit.amount_in(so_far[limit.scope]) + waiting + limit.amount_in(request)
    return not waiting or total <= limit.maximum


def midnight(now: datetime | None = None, *, days: int = 0) -> int:
    """Return the start of the user's day, plus `days`, in milliseconds since 1970."""
    day = (now or datetime.now().astimezone()).date() + timedelta(days=days)
    # Not with the current UTC offset: on two days of the year midnight has another one. If clocks
    # go forward at midnight, the day begins with the time that they show instead.
    return int(datetime.combine(day, time.min).timestamp() * 1000)


def _amount(value: str) -> float | None:
    try:
        return None if value == NONE else float(value)
    except ValueError:  # written by a newer version
        return None
