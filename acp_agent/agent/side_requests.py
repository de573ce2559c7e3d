"""Requests to a model beside the conversation: for a summary, a description, a title."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing

from acp_agent.agent.count import next_request
from acp_agent.agent.host import TurnHost
from acp_agent.errors import BudgetSpentError, ModelError
from acp_agent.events import ModelAnswered, Usage, UsageReported
from acp_agent.ids import new_message_id
from acp_agent.models.base import Failed, Finished, ModelInfo, ModelRequest, TextDelta
from acp_agent.models.catalog import cost
from acp_agent.models.retry import RetryPolicy, retrying

_RETRIES = 1  # something else can be done where it fails


async def ask_aside(
    host: TurnHost, request: ModelRequest, *, show: Callable[[str], Awaitable[None]] | None = None
) -> str:
    """Ask a model something; `show` gets the text as it comes.

    What it took is counted in the turn's usage and in the session's cost, also where the answer is
    of no use.

    Raises:
        BudgetSpentError: it would exceed a budget, and was not made.
        ModelError: it failed, refused, or said nothing.
        StoreError: what was spent could not be read, or what it took not be written.
    """
    model = request.model
    async with host.within_budget(request) as refused:
        if refused is not None:
            raise BudgetSpentError(refused.rstrip("."))
        text, finished = await _answer(host, request, show)
        if finished is not None and finished.usage:
            await _count(host, model, finished.usage)
    if finished is None or finished.stop == "refusal" or not text:
        raise ModelError(f"{model.ref} gave no answer to that", provider=model.provider)
    return text


async def _answer(
    host: TurnHost, request: ModelRequest, show: Callable[[str], Awaitable[None]] | None
) -> tuple[str, Finished | None]:
    model, limits = request.model, host.limits
    driver = await host.driver(model)
    policy = RetryPolicy(retries=_RETRIES, first_byte=limits.first_byte, stall=limits.stall)
    pieces: list[str] = []
    finished: Finished | None = None
    async with aclosing(retrying(driver, request, policy)) as stream:
        async for batch in stream:
            text = "".join(item.text for item in batch if isinstance(item, TextDelta))
            if text:
                pieces.append(text)
                if show is not None:
                    await show(text)
            for item in batch:
                if isinstance(item, Failed):
                    raise ModelError(item.message, provider=model.provider, status=item.status)
                if isinstance(item, Finished):
                    finished = item
    return "".join(pieces).strip(), finished


async def _count(host: TurnHost, model: ModelInfo, usage: Usage) -> None:
    """Count what a request took; how full the context is is told along with the cost."""
    await host.emit(
        ModelAnswered(
            message=new_message_id(),
            model=model.ref,
            usage=usage,
            cost=cost(model, usage),
            discarded=True,
        ),
        UsageReported(
            used=next_request(host, host.model),
            size=host.model.window,
            cost=host.charge(model, usage),
        ),
    )
