"""Budgets of a turn, a session and a day, and which request would exceed one.

Tokens are those sent and received, money is US dollars. A day is the user's local day, and counts
the usage of all sessions of all processes. Requests whose price was not known when they were made
count at today's; those without any known price count as tokens only.
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
OPTION = "budget."  # what the options of a session begin with that change its budgets
NONE = "none"
# What an answer counts as at first, where a model may give as many: see docs/budgets.md.
ANSWER_TOKENS = 8_000

NO_PRICE = "Some of these requests have no known price: they count only in token budgets."
_SAYS = {"turn": "of this turn", "session": "of this session", "day": "of today"}


class Limit(NamedTuple):
    """A budget: `most` is a number of tokens or of US dollars."""

    scope: Scope
    unit: Unit
    most: float

    def of(self, spent: Spending) -> float:
        """Return the part of the spending that counts against it."""
        return spent.tokens if self.unit == "tokens" else spent.cost

    def shown(self, amount: float) -> str:
        """An amount in its unit, in words."""
        return f"{amount:,.0f} tokens" if self.unit == "tokens" else format_dollars(amount)


class SessionBudget:
    """The budgets of one session."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._warned: set[tuple[str, ...]] | None = None
        self._warned_of_prices = False

    @property
    def limits(self) -> list[Limit]:
        """The budgets in force: those of the configuration, changed by those of the session."""
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
        """Return what was spent."""
        state = self._core.state
        match scope:
            case "turn":
                return state.spent_in_turn
            case "session":
                return state.spent
            case _:
                services = self._core.services
                # No later: the clock may have been set back.
                total = await services.store.spent_since(midnight(), midnight(days=1))
                spent = Spending(total.tokens, total.cost)
                for model_ref, usage in total.unpriced:
                    spent.add_price(services.models.cost_now(model_ref, usage))
                return spent

    @asynccontextmanager
    async def reserve(
        self, model: ModelInfo, sent: int, *, cached: bool
    ) -> AsyncIterator[str | PendingAnswer]:
        """Reserve room for a request; yields why there is none, as `refusal` does.

        Agents run concurrently. A request that fits into the budgets by itself, but perhaps not
        together with those that are pending, waits until one of them has ended. The caller reports
        to the `PendingAnswer` what was received.
        """
        session, pending = self._core.id, self._core.services.pending_requests
        more = self._estimate(model, sent, cached=cached)
        while True:
            limits, ended = self.limits, pending.ended
            so_far = await self._spent_of(limits)
            if pending.ended != ended:
                continue  # what one took that ended meanwhile may be missing
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
        """Return why no request of about `sent` tokens may be made to a model; None: one may.

        Args:
            model: the model.
            sent: the tokens that it is sent.
            cached: whether the provider may have cached some of them, as of the conversation.

        Raises:
            StoreError: what the day took could not be read.
        """
        limits = self.limits
        so_far = await self._spent_of(limits)
        return self._refused(limits, so_far, self._estimate(model, sent, cached=cached))

    def _refused(
        self, limits: Sequence[Limit], so_far: Mapping[Scope, Spending], more: Spending
    ) -> str | None:
        """Return why a request that takes at least `more` may not be made."""
        if self._warned is None:
            # What was spent before this process was warned of then, for this session at least.
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
        """Return the warnings that are due after an answer, each once.

        Raises:
            StoreError: what the day took could not be read.
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
        """Return what was spent in the scopes that have budgets."""
        return {scope: await self.spent(scope) for scope in {limit.scope for limit in limits}}

    def _due(self, limits: Sequence[Limit], so_far: Mapping[Scope, Spending]) -> list[str]:
        """Return the warnings that are due; they count as given from here on."""
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
        """Return what a request takes at least: what it is sent, less what is cached."""
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
    """Whether a budget has room for a request together with the pending ones, if there are any."""
    pending = limit.of(others[limit.scope])
    return not pending or limit.of(so_far[limit.scope]) + pending + limit.of(more) <= limit.most


def midnight(now: datetime | None = None, *, days: int = 0) -> int:
    """Return when the user's day began, or one `days` later, in milliseconds since 1970."""
    day = (now or datetime.now().astimezone()).date() + timedelta(days=days)
    # Not from the offset of now: on two days of the year midnight had another one. Where clocks
    # go forward at midnight there is none, and the day begins with what they show instead.
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
    except ValueError:  # of a newer version
        return None
