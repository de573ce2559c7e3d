"""Lowers the limit of an answer's length to what the provider says that it takes.

A model that the catalog does not know is asked for more than many can give. The refusal names the
model's own limit; the request is made again with that, and later ones begin with it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing

from msgspec import structs

from acp_agent.models.base import RESERVED_OUTPUT, Failed, ModelRequest, StreamEvent

_ABOUT_LIMIT = re.compile(r"max_(?:\w+_)?tokens|completion tokens|output tokens", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.-])\d[\d,]{2,}(?![\w-])")
_LEAST = 256  # tokens; a smaller number is no limit of a model


Ask = Callable[[ModelRequest], AsyncGenerator[Sequence[StreamEvent]]]


def within_limit(
    limits: dict[str, int], request: ModelRequest, ask: Ask
) -> AsyncIterator[Sequence[StreamEvent]]:
    """Ask a model, once more if it takes a lower limit than it was asked for.

    Args:
        limits: the limits that were found, by the model's id; added to.
        request: what to ask.
        ask: sends a request.
    """
    if request.model.limit_known:
        return ask(request)
    known = limits.get(request.model.id)
    return _lowered(limits, request, ask) if known is None else ask(_limited(request, known))


async def _lowered(
    limits: dict[str, int], request: ModelRequest, ask: Ask
) -> AsyncGenerator[Sequence[StreamEvent]]:
    async with aclosing(ask(request)) as batches:
        async for batch in batches:
            found = lower_limit(batch, request)
            if found is not None:
                limits[request.model.id] = found
                break
            yield batch
        else:
            return
    async with aclosing(ask(_limited(request, limits[request.model.id]))) as batches:
        async for batch in batches:
            yield batch


def lower_limit(batch: Sequence[StreamEvent], request: ModelRequest) -> int | None:
    """Return the limit, in tokens, that a refusal names; None where it is no such refusal."""
    failed = batch[-1] if batch else None
    if not isinstance(failed, Failed) or failed.kind != "bad_request":
        return None
    if not _ABOUT_LIMIT.search(failed.message):
        return None
    asked = request.model.output_limit or RESERVED_OUTPUT
    named = [int(number.replace(",", "")) for number in _NUMBER.findall(failed.message)]
    return max((number for number in named if _LEAST <= number < asked), default=None)


def _limited(request: ModelRequest, limit: int) -> ModelRequest:
    limit = min(limit, request.model.max_output)
    model = structs.replace(request.model, max_output=limit, limit_known=True)
    return structs.replace(request, model=model)
