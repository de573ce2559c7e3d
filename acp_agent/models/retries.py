"""Retries of a model request, and the fallback to other models. The user sees each attempt.

Connection errors, timeouts, the statuses 429 and 5xx and broken streams are retried. The delay
grows exponentially, has jitter and respects the provider's Retry-After. Other errors fail at once.
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

UNAVAILABLE: frozenset[FailureKind] = frozenset(
    {"connection", "timeout", "rate_limit", "overloaded", "server"}
)


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """The number of retries, and the delays and timeouts in seconds.

    A request fails at once if the provider requests a delay longer than `longest`.
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
    random_number: Callable[[], float] = random.random,
) -> AsyncGenerator[Sequence[StreamEvent]]:
    """Stream the answer to a request. Closing the iterator closes the HTTP response at once.

    Args:
        replaceable: true if another model can be asked; an unreachable provider is then not
            retried.
        sleep: waits for a number of seconds.
        random_number: returns a random number from 0 to 1 for the jitter.

    Yields:
        Batches of events of the attempts, with a `Retrying` between two attempts.
    """
    attempts = policy.retries + 1
    for attempt in range(1, attempts + 1):
        streamed = False
        failed: Failed | None = None
        async with aclosing(_in_time(driver.stream(request), policy, request)) as batches:
            async for batch in batches:
                last = batch[-1] if batch else None
                if isinstance(last, Failed):
                    failed, batch = last, batch[:-1]  # noqa: PLW2901 - the rest is yielded first
                if batch:
                    streamed = streamed or _has_content(batch)
                    yield batch
                if failed is not None or isinstance(last, Finished):
                    break
        if failed is None:
            return
        tries = attempt if failed.unreachable and replaceable else attempts
        delay = _delay(policy, attempt, failed.retry_after, random_number())
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
    """Stream an answer, and end with a failure if it starts too late or pauses too long.

    An empty batch means that the provider is still working.
    """
    answer_started = False
    try:
        while True:
            limit = policy.stall if answer_started else policy.first_byte
            try:
                async with asyncio.timeout(limit):
                    batch = await anext(stream)
            except StopAsyncIteration:
                # The driver returned no last event, so the answer was cut off.
                yield [failures.cut(request.model.provider)]
                return
            except TimeoutError:
                yield [
                    failures.timed_out(request.model.provider, limit, answer_started=answer_started)
                ]
                return
            answer_started = answer_started or _has_content(batch)
            yield batch
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


def _has_content(batch: Sequence[StreamEvent]) -> bool:
    """Return whether a batch has events other than counts."""
    return any(not isinstance(event, Usage) for event in batch)


def _delay(policy: RetryPolicy, attempt: int, requested: float | None, jitter: float) -> float:
    """Return the seconds until the next attempt, at least those that the provider requested."""
    base = min(policy.first_delay * 2.0 ** (attempt - 1), policy.highest_delay)
    backoff = base * (0.5 + jitter / 2)
    return backoff if requested is None else requested + backoff / 10


def _reason(failed: Failed) -> str:
    """Return the message without its advice to try again."""
    short = failed.message
    for advice in (" Try again later.", " Try again."):
        short = short.removesuffix(advice)
    return short.rstrip(".")


# The fallback is for problems that another provider may not have: overload, an outage, no
# connection, a rate limit. A bad key or request must be fixed by the user. An answer that was shown
# in part is never restarted by another model.


async def stream_with_fallback(
    driver: Driver,
    request: ModelRequest,
    policy: RetryPolicy,
    *,
    fallbacks: Sequence[ModelInfo],
    load: Callable[[ModelInfo], Awaitable[Driver]],
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    random_number: Callable[[], float] = random.random,
) -> AsyncGenerator[Sequence[StreamEvent]]:
    """Stream the answer to a request. Closing the iterator closes the HTTP response at once.

    Args:
        fallbacks: the models to ask if one is unavailable, in this order.
        sleep: waits for a number of seconds.
        random_number: returns a random number from 0 to 1 for the jitter.

    Yields:
        Batches of events of `stream_with_retries`, with a `FellBack` between two models.
    """
    remaining = list(fallbacks)
    has_shown_text = False
    while True:
        failed: Failed | None = None
        replaceable = bool(remaining)
        tries = stream_with_retries(
            driver,
            request,
            policy,
            replaceable=replaceable,
            sleep=sleep,
            random_number=random_number,
        )
        async with aclosing(tries) as batches:
            async for batch in batches:
                last = batch[-1] if batch else None
                if isinstance(last, Failed) and last.kind in UNAVAILABLE and not has_shown_text:
                    failed = last
                    break
                has_shown_text = has_shown_text or any(
                    isinstance(e, (TextDelta, ThoughtDelta)) for e in batch
                )
                yield batch
        if failed is None:
            return
        fallback = await _next(remaining, load)
        if fallback is None and failed.unreachable and replaceable:
            continue  # no other model can be asked, so the selected one is retried
        if fallback is None:
            yield [failed]
            return
        model, driver = fallback
        yield [FellBack(model=model, reason=failed.message)]
        searches = model.search is not None and model.search.beside_tools
        request = structs.replace(request, model=model, web_search=request.web_search and searches)


async def _next(
    remaining: list[ModelInfo], load: Callable[[ModelInfo], Awaitable[Driver]]
) -> tuple[ModelInfo, Driver] | None:
    """Remove models from `remaining` up to the first with a driver; return both, or None."""
    while remaining:
        model = remaining.pop(0)
        try:
            return model, await load(model)
        except AcpAgentError:  # a key or a package is missing: try the next model
            continue
    return None
