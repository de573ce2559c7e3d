"""Compute how many tokens the context takes, and how many it may take.

The provider's count of the last request is exact. Messages added since are estimated, and the
estimate is multiplied by the ratio of count to estimate in this session. Before the first count,
the estimate is used alone; it is too high for most texts.
"""

from __future__ import annotations

from msgspec import Struct

from acp_agent.agent.context import Context
from acp_agent.agent.resources import Journal, Tools, TurnResources
from acp_agent.agent.token_count import MeasuredTokens, tool_tokens
from acp_agent.config.types import ContextConfig
from acp_agent.events import Usage, UsageReported
from acp_agent.models.base import ModelInfo

_MAX_ANSWER = 64_000  # the most tokens that a request asks for
# Outside this range a provider's count is wrong: it comes from a stub, or has another unit.
_MIN_RATIO, _MAX_RATIO = 0.2, 4.0
_MARGIN = 1.05  # factor for estimates that use only the ratio


class ContextLimits(Struct, frozen=True, kw_only=True):
    """Limits for the tokens of the context.

    A context above `maximum` is shortened to `target`. The target is far lower, because each change
    invalidates the provider's cache: changes should be few and large. The last `recent` tokens are
    not shortened.
    """

    maximum: int
    target: int
    recent: int


def context_limits(
    model: ModelInfo, settings: ContextConfig, refused: int | None = None
) -> ContextLimits:
    """Return the limits of a conversation with a model.

    Args:
        settings: the fraction of the window to use, and the tokens to reserve for the answer.
        refused: the lowest number of tokens that the model refused as too many, if any.
    """
    window = model.window if refused is None else min(model.window, refused)
    reserved = settings.reserved_tokens
    if reserved is None:
        reserved = min(model.max_output, _MAX_ANSWER, window // 4)
    maximum = max(min(int(window * settings.threshold), window - reserved), window // 10)
    return ContextLimits(maximum=maximum, target=maximum * 6 // 10, recent=maximum // 4)


def estimate_ratio(context: Context, model: ModelInfo, tools: int) -> float:
    """Return the provider's tokens per estimated token; at least 1 for an unmeasured model."""
    measured = _plausible_measure(context, tools)
    if measured is None:
        return 1.0
    ratio = measured.input / max(1, measured.estimated + tools)
    return ratio if measured.model == model.ref else max(ratio, 1.0)


def used_tokens(context: Context, model: ModelInfo, tools: int) -> int:
    """Return the best estimate of the tokens of the next request to a model."""
    measured = _plausible_measure(context, tools)
    if measured is None:
        return context.tokens + tools
    ratio = estimate_ratio(context, model, tools)
    if measured.model == model.ref and measured.changes == context.view.changes:
        since = context.tokens - measured.after
        return measured.input + measured.output + int(since * ratio)
    return int((context.tokens + tools) * ratio * _MARGIN)


def next_request_tokens(journal: Journal, tools: Tools, model: ModelInfo) -> int:
    """Return `used_tokens` for the next request of a session, including its tools."""
    return used_tokens(journal.context, model, tool_tokens(tools.toolset.specs()))


def usage_report(turn: TurnResources, model: ModelInfo) -> UsageReported:
    """Return an event with the size of the context for a model, and the cost so far."""
    used = next_request_tokens(turn.journal, turn.tools, model)
    return UsageReported(used=used, size=model.window, cost=turn.budget.cost)


def side_request_usage(turn: TurnResources, model: ModelInfo, usage: Usage) -> UsageReported:
    """Charge a side request; return an event with the new cost and the unchanged context size."""
    turn.budget.charge(model, usage)
    return usage_report(turn, turn.models.current)


def _plausible_measure(context: Context, tools: int) -> MeasuredTokens | None:
    measured = context.measured
    if measured is None:
        return None
    ratio = measured.input / max(1, measured.estimated + tools)
    return measured if _MIN_RATIO <= ratio <= _MAX_RATIO else None
