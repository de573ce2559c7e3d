"""Asks another model where the chosen one cannot be had, in sight of the user.

Only for what another provider may do better: overload, an outage, no connection, no room for more
requests. A bad key or a bad request stay the user's to mend, and an answer of which something was
shown is never begun again by somebody else.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing

from msgspec import structs

from acp_agent.errors import AcpAgentError
from acp_agent.models.base import (
    Driver,
    Failed,
    FailureKind,
    FellBack,
    ModelInfo,
    ModelRequest,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
)
from acp_agent.models.retry import RetryPolicy, retrying

UNAVAILABLE: frozenset[FailureKind] = frozenset(
    {"connection", "timeout", "rate_limit", "overloaded", "server"}
)


async def answering(
    driver: Driver,
    request: ModelRequest,
    policy: RetryPolicy,
    *,
    others: Sequence[ModelInfo],
    load: Callable[[ModelInfo], Awaitable[Driver]],
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    chance: Callable[[], float] = random.random,
) -> AsyncGenerator[Sequence[StreamEvent]]:
    """The answer to a request. Closing this closes the HTTP response at once.

    Args:
        driver: whom to ask first.
        request: what to ask, and which model.
        policy: how often to try each model again and how patiently.
        others: the models to ask, in this order, when one cannot be had.
        load: makes another model's driver.
        sleep: waits so many seconds; cancelling it cancels everything.
        chance: a number from 0 to 1 that spreads the attempts of many.

    Yields:
        Batches of events: those of `retrying`, with a `FellBack` between those of two models.
    """
    left = list(others)
    shown = False
    while True:
        failed: Failed | None = None
        replaceable = bool(left)
        tries = retrying(
            driver, request, policy, replaceable=replaceable, sleep=sleep, chance=chance
        )
        async with aclosing(tries) as batches:
            async for batch in batches:
                last = batch[-1] if batch else None
                if isinstance(last, Failed) and last.kind in UNAVAILABLE and not shown:
                    failed = last
                    break
                shown = shown or any(isinstance(e, (TextDelta, ThoughtDelta)) for e in batch)
                yield batch
        if failed is None:
            return
        found = await _next(left, load)
        if found is None and failed.unreachable and replaceable:
            continue  # none of the others can be asked: the one that was chosen is waited for
        if found is None:
            yield [failed]
            return
        model, driver = found
        yield [FellBack(model=model, reason=failed.message)]
        request = structs.replace(request, model=model)


async def _next(
    left: list[ModelInfo], load: Callable[[ModelInfo], Awaitable[Driver]]
) -> tuple[ModelInfo, Driver] | None:
    """Take the next model that can be asked at all out of those that are left."""
    while left:
        model = left.pop(0)
        try:
            return model, await load(model)
        except AcpAgentError:  # it lost its key, or lacks a package: the next one may do
            continue
    return None
