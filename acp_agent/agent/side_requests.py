"""Requests to a model outside the conversation, for a summary, a description or a title."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing

from acp_agent.agent.context_size import side_request_usage
from acp_agent.agent.resources import TurnResources
from acp_agent.errors import BudgetSpentError, ModelError
from acp_agent.events import ModelAnswered, Usage
from acp_agent.ids import new_message_id
from acp_agent.models.base import (
    Failed,
    Finished,
    ModelInfo,
    ModelRequest,
    Retrying,
    StreamEvent,
    TextDelta,
)
from acp_agent.models.retries import RetryPolicy, stream_with_retries

_RETRIES = 1  # the callers can continue without the answer


async def ask_side_request(
    turn: TurnResources,
    request: ModelRequest,
    *,
    show: Callable[[str], Awaitable[None]] | None = None,
    observe: Callable[[StreamEvent], None] | None = None,
) -> str:
    """Ask a model and return the text of its answer.

    `show` is called with each piece of the text, `observe` with each event of the stream.
    The usage is counted for the turn and the session, even if the request fails.

    Raises:
        BudgetSpentError: the request, or a retry, would exceed a budget.
        ModelError: the model failed, refused, or returned no text.
        StoreError: the journal could not be read or written.
    """
    model = request.model
    async with turn.budget.reserve(request) as refusal:
        if refusal is not None:
            raise BudgetSpentError(refusal.rstrip("."))
        text, finished = await _answer(turn, request, show, observe)
    if finished is None or finished.stop == "refusal" or not text:
        raise ModelError(f"{model.ref} gave no answer to that", provider=model.provider)
    return text


async def _answer(
    turn: TurnResources,
    request: ModelRequest,
    show: Callable[[str], Awaitable[None]] | None,
    observe: Callable[[StreamEvent], None] | None,
) -> tuple[str, Finished | None]:
    model, limits = request.model, turn.limits
    driver = await turn.models.driver(model)
    usage = Usage()  # what the provider has reported for the current attempt
    policy = RetryPolicy(retries=_RETRIES, first_byte=limits.first_byte, stall=limits.stall)
    pieces: list[str] = []
    finished: Finished | None = None
    try:
        async with aclosing(stream_with_retries(driver, request, policy)) as stream:
            async for batch in stream:
                text = "".join(item.text for item in batch if isinstance(item, TextDelta))
                if text:
                    pieces.append(text)
                    if show is not None:
                        await show(text)
                for item in batch:
                    if observe is not None:
                        observe(item)
                    match item:
                        case Failed():
                            raise ModelError(
                                item.message, provider=model.provider, status=item.status
                            )
                        case Retrying():
                            await _count(turn, model, usage, complete=False)
                            usage = Usage()
                            pieces.clear()
                            refusal = await turn.budget.refusal(request)
                            if refusal is not None:
                                raise BudgetSpentError(refusal.rstrip("."))
                        case Usage():
                            usage = item
                        case Finished():
                            finished, usage = item, item.usage
    finally:
        await _count(turn, model, usage, complete=finished is not None)
    return "".join(pieces).strip(), finished


async def _count(turn: TurnResources, model: ModelInfo, usage: Usage, *, complete: bool) -> None:
    """Record the usage of a request, if the provider reported any."""
    if not usage:
        return
    await turn.journal.emit(
        ModelAnswered(
            message=new_message_id(),
            model=model.ref,
            usage=usage,
            cost=model.cost(usage),
            complete=complete,
            discarded=True,
        ),
        side_request_usage(turn, model, usage),
    )
