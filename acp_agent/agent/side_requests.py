"""Requests to a model beside the conversation: for a summary, a description, a title."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing

from acp_agent.agent.count import took
from acp_agent.agent.resources import TurnResources
from acp_agent.errors import BudgetSpentError, ModelError
from acp_agent.events import ModelAnswered, Usage
from acp_agent.ids import new_message_id
from acp_agent.models.base import Failed, Finished, ModelInfo, ModelRequest, Retrying, TextDelta
from acp_agent.models.catalog import cost
from acp_agent.models.retries import RetryPolicy, retrying

_RETRIES = 1  # something else can be done where it fails


async def ask_aside(
    turn: TurnResources,
    request: ModelRequest,
    *,
    show: Callable[[str], Awaitable[None]] | None = None,
) -> str:
    """Ask a model something; `show` gets the text as it comes.

    What it took is counted in the turn's usage and in the session's cost, also where the answer is
    of no use.

    Raises:
        BudgetSpentError: it would exceed a budget, and was not made, or not again.
        ModelError: it failed, refused, or said nothing.
        StoreError: what was spent could not be read, or what it took not be written.
    """
    model = request.model
    async with turn.budget.reserve(request) as refused:
        if refused is not None:
            raise BudgetSpentError(refused.rstrip("."))
        text, finished = await _answer(turn, request, show)
    if finished is None or finished.stop == "refusal" or not text:
        raise ModelError(f"{model.ref} gave no answer to that", provider=model.provider)
    return text


async def _answer(
    turn: TurnResources, request: ModelRequest, show: Callable[[str], Awaitable[None]] | None
) -> tuple[str, Finished | None]:
    model, limits = request.model, turn.limits
    driver = await turn.models.driver(model)
    counted = Usage()  # by the provider so far, of the attempt that is being made
    policy = RetryPolicy(retries=_RETRIES, first_byte=limits.first_byte, stall=limits.stall)
    pieces: list[str] = []
    finished: Finished | None = None
    try:
        async with aclosing(retrying(driver, request, policy)) as stream:
            async for batch in stream:
                text = "".join(item.text for item in batch if isinstance(item, TextDelta))
                if text:
                    pieces.append(text)
                    if show is not None:
                        await show(text)
                for item in batch:
                    match item:
                        case Failed():
                            raise ModelError(
                                item.message, provider=model.provider, status=item.status
                            )
                        case Retrying():
                            await _count(turn, model, counted, complete=False)
                            counted = Usage()
                            pieces.clear()
                            refused = await turn.budget.refusal(request)
                            if refused is not None:
                                raise BudgetSpentError(refused.rstrip("."))
                        case Usage():
                            counted = item
                        case Finished():
                            finished, counted = item, item.usage
                        case _:
                            pass
    finally:
        await _count(turn, model, counted, complete=finished is not None)
    return "".join(pieces).strip(), finished


async def _count(turn: TurnResources, model: ModelInfo, usage: Usage, *, complete: bool) -> None:
    """Count what a request took, as far as anybody said."""
    if not usage:
        return
    await turn.journal.emit(
        ModelAnswered(
            message=new_message_id(),
            model=model.ref,
            usage=usage,
            cost=cost(model, usage),
            complete=complete,
            discarded=True,
        ),
        took(turn, model, usage),
    )
