"""Retries of a model request, and the fallback to other models; the user sees each attempt.

Connection errors, timeouts, 429, 5xx and broken streams are retried after an exponential delay with
jitter that respects the provider's Retry-After. Everything else fails at once.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing

from msgspec import Struct, structs

from acp_agent.errors import AcpAgentError
from acp_agent.events import Usage
from acp_agent.models import failures
from acp_agent.models.base import (
    Driver,
    Failed,
    FailureKind,
    FellBack,
    Finished,
    ModelInfo,
    ModelRequest,
    Retrying,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
)


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """How often to retry, and the timeouts, in seconds.

    A request fails at once if the provider asks to wait longer than `longest`.
    """

    retries: int = 4
    first_byte: float = 120.0
    stall: float = 60.0
    first_delay: float = 1.0
    highest_delay: float = 30.0
    longest: float = 180.0


async def stream_with_retries(
    driver: Driver,
    request: ModelRequest,
    policy: RetryPolicy,
    *,
    replaceable: bool = False,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    chance: Callable[[], float] = random.random,
) -> AsyncGenerator[Sequence[StreamEvent]]:
    """Stream the answer to a request. Closing the iterator closes the HTTP response at once.

    Args:
        driver: whom to ask.
        request: what to ask.
        policy: how often to try again and how patiently.
        replaceable: whether somebody else can be asked, so that a provider that no connection can
            be made to is not waited for.
        sleep: waits so many seconds; cancelling it cancels everything.
        chance: a number from 0 to 1 that spreads the attempts of many.

    Yields:
        Batches of events: those of the attempts, with a `Retrying` between two of them.
    """
    attempts = policy.retries + 1
    for attempt in range(1, attempts + 1):
        streamed = False
        failed: Failed | None = None
        async with aclosing(_in_time(driver.stream(request), policy, request)) as batches:
            async for batch in batches:
                last = batch[-1] if batch else None
                if isinstance(last, Failed):
                    failed, batch = last, batch[:-1]  # noqa: PLW2901 - the rest of it is told first
                if batch:
                    streamed = streamed or _tells(batch)
                    yield batch
                if failed is not None or isinstance(last, Finished):
                    break
        if failed is None:
            return
        tries = attempt if failed.unreachable and replaceable else attempts
        delay = _delay(policy, attempt, failed.retry_after, chance())
        if failed.kind not in failures.RETRYABLE or attempt == tries or delay > policy.longest:
            yield [failed]
            return
        yield [
            Retrying(
                attempt=attempt,
                attempts=tries,
                delay=delay,
                reason=_reason(failed),
                discard=streamed,
            )
        ]
        await sleep(delay)


async def _in_time(
    stream: AsyncIterator[Sequence[StreamEvent]], policy: RetryPolicy, request: ModelRequest
) -> AsyncGenerator[Sequence[StreamEvent]]:
    """Stream, and end with a failure if the answer begins too late or pauses too long.

    An empty batch means that the provider is still at work.
    """
    begun = False
    try:
        while True:
            limit = policy.stall if begun else policy.first_byte
            try:
                async with asyncio.timeout(limit):
                    batch = await anext(stream)
            except StopAsyncIteration:
                # A driver never ends without a last event; one that does has been cut off.
                yield [failures.cut(request.model.provider)]
                return
            except TimeoutError:
                yield [failures.timed_out(request.model.provider, limit, begun=begun)]
                return
            begun = begun or _tells(batch)
            yield batch
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


def _tells(batch: Sequence[StreamEvent]) -> bool:
    """Return whether a batch has more than counts."""
    return any(not isinstance(event, Usage) for event in batch)


def _delay(policy: RetryPolicy, attempt: int, asked: float | None, chance: float) -> float:
    """Return the seconds before the next attempt, at least what the provider asked for."""
    doubled = min(policy.first_delay * 2.0 ** (attempt - 1), policy.highest_delay)
    own = doubled * (0.5 + chance / 2)
    return own if asked is None else asked + own / 10


def _reason(failed: Failed) -> str:
    """Return the message without its advice to try again."""
    short = failed.message
    for advice in (" Try again later.", " Try again."):
        short = short.removesuffix(advice)
    return short.rstrip(".")


# The fallback is for what another provider may do better: overload, an outage, no connection, a
# rate limit. A bad key or request is the user's to fix, and an answer that was shown in part is
# never restarted by another model.

UNAVAILABLE: frozenset[FailureKind] = frozenset(
    {"connection", "timeout", "rate_limit", "overloaded", "server"}
)


async def stream_with_fallback(
    driver: Driver,
    request: ModelRequest,
    policy: RetryPolicy,
    *,
    others: Sequence[ModelInfo],
    load: Callable[[ModelInfo], Awaitable[Driver]],
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    chance: Callable[[], float] = random.random,
) -> AsyncGenerator[Sequence[StreamEvent]]:
    """Stream the answer to a request. Closing the iterator closes the HTTP response at once.

    Args:
        driver: whom to ask first.
        request: what to ask, and which model.
        policy: how often to try each model again and how patiently.
        others: the models to ask, in this order, when one cannot be had.
        load: makes another model's driver.
        sleep: waits so many seconds; cancelling it cancels everything.
        chance: a number from 0 to 1 that spreads the attempts of many.

    Yields:
        Batches of events of `stream_with_retries`, with a `FellBack` between two models.
    """
    left = list(others)
    shown = False
    while True:
        failed: Failed | None = None
        replaceable = bool(left)
        tries = stream_with_retries(
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
        searches = model.search is not None and model.search.beside_tools
        request = structs.replace(request, model=model, web_search=request.web_search and searches)


async def _next(
    left: list[ModelInfo], load: Callable[[ModelInfo], Awaitable[Driver]]
) -> tuple[ModelInfo, Driver] | None:
    """Remove models from `left` up to the first whose driver can be made; return both."""
    while left:
        model = left.pop(0)
        try:
            return model, await load(model)
        except AcpAgentError:  # it lost its key, or lacks a package: the next one may do
            continue
    return None
