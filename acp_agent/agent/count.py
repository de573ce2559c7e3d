"""How full the context is, and how full it may get.

What a provider counted of the last request is exact. What came since is estimated, and the estimate
is corrected by the ratio of the two in this session. Before anything was counted the estimate alone
holds, which is higher than what most texts take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from acp_agent.agent.context import Context
from acp_agent.agent.tokens import Counted, tool_tokens
from acp_agent.config.types import ContextConfig
from acp_agent.events import Usage, UsageReported
from acp_agent.models.base import ModelInfo

if TYPE_CHECKING:
    from acp_agent.agent.resources import Journal, Tools, TurnResources

_LONGEST_ANSWER = 64_000  # tokens; what requests ask for at most
# Outside of these a provider's count is no count of what was sent: a stub's, or of another unit.
_LEAST_RATIO, _HIGHEST_RATIO = 0.2, 4.0
_MARGIN = 1.05  # for what is estimated by the ratio alone


class Room(Struct, frozen=True, kw_only=True):
    """How full the context may get, in tokens.

    `most` is where it is too much. `target` is what it is brought down to then: far below, so that
    this happens in large steps, for each of them costs the provider's cache. `recent` is how much
    of the end is left as it is.
    """

    most: int
    target: int
    recent: int


def room_of(model: ModelInfo, settings: ContextConfig, refused: int | None = None) -> Room:
    """The room that a model leaves for a conversation.

    Args:
        model: the model.
        settings: the fraction of its window, and the tokens that stay free for the answer.
        refused: a number of tokens that it refused as too many, where it did.
    """
    window = model.window if refused is None else min(model.window, refused)
    reserved = settings.reserved_tokens
    if reserved is None:
        reserved = min(model.max_output, _LONGEST_ANSWER, window // 4)
    most = max(min(int(window * settings.threshold), window - reserved), window // 10)
    return Room(most=most, target=most * 6 // 10, recent=most // 4)


def ratio(context: Context, model: ModelInfo, offered: int) -> float:
    """What the estimate is to be multiplied by; never below 1 for a model that counted nothing.

    `offered` is the estimate for the tools.
    """
    counted = _plausible(context, offered)
    if counted is None:
        return 1.0
    found = counted.input / max(1, counted.asked + offered)
    return found if counted.model == model.ref else max(found, 1.0)


def used_tokens(context: Context, model: ModelInfo, offered: int) -> int:
    """The tokens of the next request to a model, as far as they can be known before it.

    `offered` is the estimate for the tools.
    """
    counted = _plausible(context, offered)
    if counted is None:
        return context.tokens + offered
    factor = ratio(context, model, offered)
    if counted.model == model.ref and counted.changes == context.view.changes:
        since = context.tokens - counted.after
        return counted.input + counted.output + int(since * factor)
    return int((context.tokens + offered) * factor * _MARGIN)


def next_request(journal: Journal, tools: Tools, model: ModelInfo) -> int:
    """The tokens of what a model would be sent now; see `used_tokens`."""
    return used_tokens(journal.context, model, tools.toolset.measured(tool_tokens))


def took(turn: TurnResources, model: ModelInfo, usage: Usage) -> UsageReported:
    """What the session costs with a request that fills the context no further, to be written."""
    return UsageReported(
        used=next_request(turn.journal, turn.tools, turn.models.current),
        size=turn.models.current.window,
        cost=turn.budget.charge(model, usage),
    )


def _plausible(context: Context, offered: int) -> Counted | None:
    counted = context.counted
    if counted is None:
        return None
    estimate = max(1, counted.asked + offered)
    return counted if _LEAST_RATIO <= counted.input / estimate <= _HIGHEST_RATIO else None
