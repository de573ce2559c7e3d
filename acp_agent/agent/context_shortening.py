"""Shorten a context that is too long before the model is asked.

First, old results are cut, which is cheapest. If that is not enough, the older part is summarised.
If that fails, the older part is left out.
"""

from __future__ import annotations

from acp_agent.agent.compaction import compact
from acp_agent.agent.context_size import (
    ContextLimits,
    context_limits,
    estimate_ratio,
    next_request_tokens,
    usage_report,
)
from acp_agent.agent.context_view import ContextView
from acp_agent.agent.resources import TurnResources
from acp_agent.agent.token_count import tool_tokens
from acp_agent.events import ContextTrimmed, NoticeShown
from acp_agent.models.base import ModelInfo, UserSide

OMITTED_TITLE = "The oldest turns are no longer sent to the model, to fit its context window."
TOO_LONG_TITLE = "The conversation was too long for the model; trying again with less of it."
_OVERFLOW_SHARE = 0.5  # the share of a refused context that is kept
_RETRY_AFTER_OVERFLOW = 2 / 3  # the largest share of a refused context that is sent again
_MIN_COMPACTED = 500  # tokens; fewer are not worth a summary
_SHORTER_RESULTS = (600, 200)  # characters, if the configured limit is too high


async def shorten_if_needed(turn: TurnResources, model: ModelInfo) -> None:
    """Shorten the context if the next request would be too long, or if the user asked for it."""
    await turn.journal.flush()
    context, settings = turn.journal.context, turn.limits.context
    if settings.max_turns is not None:
        trimmed = limit_turns(context.view, settings.max_turns)
        if trimmed is not None:
            await turn.journal.emit(trimmed)
    focus = turn.user.take_compaction_request()
    limits = context_limits(model, settings, context.refused.get(model.ref))
    if focus is not None:
        await compact_now(turn, model, focus)
    if next_request_tokens(turn.journal, turn.tools, model) > limits.maximum:
        await _shorten(turn, model, limits)


async def shorten_after_overflow(turn: TurnResources, model: ModelInfo) -> bool:
    """Shorten the context after a model refused it as too long; return False if that fails.

    Raises:
        StoreError: the journal could not be written.
    """
    view = turn.journal.context.view
    before, used = _estimate(turn), next_request_tokens(turn.journal, turn.tools, model)
    limit = view.result_limit(turn.limits.context.max_result_characters)
    await turn.journal.emit(trim_after_overflow(view, model.ref, used, limit))
    maximum = before * _RETRY_AFTER_OVERFLOW
    cut = cut_all_results(
        view, used=_estimate(turn), maximum=maximum, ratio=1, limit=limit, min_saving=1
    )
    if cut is not None and _estimate(turn) > maximum:
        await turn.journal.emit(cut)
    # Shortening may not help: the note about the parts left out takes tokens too.
    if _estimate(turn) >= before:
        return False
    await turn.journal.emit(NoticeShown(severity="warning", title=TOO_LONG_TITLE))
    await turn.journal.emit(usage_report(turn, model))
    return True


async def compact_now(turn: TurnResources, model: ModelInfo, focus: str) -> str | None:
    """Summarise the conversation at the user's request; return None, or why it failed."""
    view = turn.journal.context.view
    limits = context_limits(model, turn.limits.context, turn.journal.context.refused.get(model.ref))
    index = len(view.entries)
    if turn.journal.context.awaits_answer:
        index = start_to_keep(view, 0)
    tokens = sum(entry.tokens for entry in view.entries[view.first : index])
    if tokens < _MIN_COMPACTED:
        return "there is too little to summarise"
    why = await compact(
        turn,
        before=index,
        max_tokens=min(limits.maximum // 4, tokens),
        focus=focus,
        models=_models(turn, model),
    )
    await turn.journal.emit(usage_report(turn, model))
    return why


async def _shorten(turn: TurnResources, model: ModelInfo, limits: ContextLimits) -> None:
    context, settings = turn.journal.context, turn.limits.context
    view = context.view
    if not view.entries:
        return
    limit = view.result_limit(settings.max_result_characters)
    ratio = estimate_ratio(context, model, tool_tokens(turn.tools.toolset.specs()))
    used = next_request_tokens(turn.journal, turn.tools, model)
    before = cut_old_results(view, limits, used, ratio, limit)
    if before is not None:
        await turn.journal.emit(
            ContextTrimmed(results_before=view.entries[before].id, result_limit=limit)
        )
        await turn.journal.emit(usage_report(turn, model))
        return
    index = start_to_keep(view, int(limits.recent / ratio))
    tokens = sum(entry.tokens for entry in view.entries[view.first : index])
    compacted, changes = False, view.changes
    if settings.compaction and tokens * ratio >= max(_MIN_COMPACTED, 2 * _min_saving(limits)):
        why = await compact(
            turn,
            before=index,
            max_tokens=int(min(limits.maximum / 4 / ratio, tokens)),
            models=_models(turn, model),
        )
        compacted = why is None
    used = next_request_tokens(turn.journal, turn.tools, model)
    if not compacted or used > limits.maximum:
        trimmed = leave_out(view, limits, used, ratio, limit)
        if trimmed is not None:
            await turn.journal.emit(NoticeShown(severity="info", title=OMITTED_TITLE), trimmed)
            used = next_request_tokens(turn.journal, turn.tools, model)
    if used > limits.maximum:
        cut = cut_all_results(
            view,
            used=used,
            maximum=limits.maximum,
            ratio=ratio,
            limit=limit,
            min_saving=_min_saving(limits),
        )
        if cut is not None:
            await turn.journal.emit(cut)
    if view.changes > changes:
        await turn.journal.emit(usage_report(turn, model))


def _estimate(turn: TurnResources) -> int:
    """Return the estimate for the next request, without correction by the provider's counts."""
    return turn.journal.context.tokens + tool_tokens(turn.tools.toolset.specs())


def _models(turn: TurnResources, model: ModelInfo) -> list[ModelInfo]:
    small = turn.models.small
    return [small] if small.ref == model.ref else [small, model]


# The functions below do not change the view. They return the event, or an index, for a change.


def limit_turns(view: ContextView, max_turns: int) -> ContextTrimmed | None:
    """Return the event that leaves out old turns if there are more than `max_turns`, else None.

    A quarter of the turns is left out at once, to keep the provider's cache valid for longer.
    """
    if not view.entries:
        return None
    last = view.entries[-1].turn
    visible = view.entries[view.first :]
    if not visible or last - visible[0].turn < max_turns:
        return None
    first = last - max(1, max_turns * 3 // 4) + 1
    first_entry = next((entry for entry in visible if entry.opens and entry.turn >= first), None)
    return None if first_entry is None else ContextTrimmed(keep_from=first_entry.id)


def cut_old_results(
    view: ContextView, limits: ContextLimits, used: int, ratio: float, limit: int
) -> int | None:
    """Return the index before which to cut results, or None if the target is not reached.

    Args:
        ratio: the provider's tokens per estimated token.
        limit: characters to keep of each result.
    """
    before = _index_with_id(view, recent_start(view, int(limits.recent / ratio)))
    saved = view.cut_tokens(before, limit) * ratio
    return before if saved and used - saved <= limits.target else None


def leave_out(
    view: ContextView, limits: ContextLimits, used: int, ratio: float, limit: int
) -> ContextTrimmed | None:
    """Return the event that leaves out the oldest turns and cuts old results.

    Return None if that saves too little.

    Args:
        ratio: the provider's tokens per estimated token.
        limit: characters to keep of each result.
    """
    fixed = used - view.tokens * ratio
    index = start_to_keep(view, max(0, int((limits.target - fixed) / ratio)))
    if index <= view.first:
        return None
    before = max(index, _index_with_id(view, recent_start(view, int(limits.recent / ratio))))
    saved = sum(entry.tokens for entry in view.entries[view.first : index])
    if (saved + view.cut_tokens(before, limit)) * ratio < _min_saving(limits):
        return None
    return ContextTrimmed(
        keep_from=view.entries[index].id,
        results_before=view.entries[before].id,
        result_limit=limit,
    )


def cut_all_results(
    view: ContextView, *, used: float, maximum: float, ratio: float, limit: int, min_saving: float
) -> ContextTrimmed | None:
    """Return the event that cuts all results, including the newest ones, as a last resort.

    Return None if that saves too little.

    Args:
        maximum: the tokens that it may take; results are cut shorter if `limit` is not enough.
        ratio: the provider's tokens per estimated token.
        limit: characters to keep of each result.
        min_saving: the tokens that must be saved.
    """
    saved = 0.0
    for shorter in (limit, *(length for length in _SHORTER_RESULTS if length < limit)):
        saved, limit = view.cut_tokens(len(view.entries), shorter) * ratio, shorter
        if used - saved <= maximum:
            break
    return ContextTrimmed(results_before=None, result_limit=limit) if saved >= min_saving else None


def trim_after_overflow(view: ContextView, model: str, used: int, limit: int) -> ContextTrimmed:
    """Return the event that leaves out half of a context that was too long, and cuts all results.

    Args:
        used: the tokens that the model refused.
        limit: characters to keep of each result.
    """
    index = start_to_keep(view, int(view.tokens * _OVERFLOW_SHARE))
    return ContextTrimmed(
        keep_from=view.entries[index].id if index > view.first else None,
        results_before=None,
        result_limit=limit,
        model=model,
        overflow=used,
    )


def start_to_keep(view: ContextView, tokens: int) -> int:
    """Return the index at which to start so that the kept messages take at most `tokens`.

    The kept part starts with a turn if possible, else with an answer of the model. Unanswered
    messages are always kept, so the part may take more tokens.
    """
    unanswered = _unanswered(view)
    fitting = [
        index
        for index in range(min(recent_start(view, tokens), unanswered), unanswered + 1)
        if view.entries[index].id is not None
    ]
    turns = [index for index in fitting if view.entries[index].opens]
    return next(iter(turns or fitting), view.first)


def recent_start(view: ContextView, tokens: int) -> int:
    """Return the lowest index from which the messages take at most `tokens` by our estimate."""
    index = len(view.entries)
    while index > view.first:
        tokens -= view.entries[index - 1].tokens
        if tokens < 0:
            break
        index -= 1
    return index


def _min_saving(limits: ContextLimits) -> int:
    """Return the tokens that a change must save to be worth it.

    A system prompt that fills the window would otherwise cause a change in every request.
    """
    return limits.maximum // 20


def _unanswered(view: ContextView) -> int:
    """Return the index of the first unanswered message, or of the answer whose results follow.

    Unanswered messages of earlier turns do not count. One of them may be the message that is too
    long, and it must be possible to leave it out.
    """
    index = len(view.entries)
    while index > view.first and isinstance(view.entries[index - 1].message, UserSide):
        index -= 1
        if view.entries[index].opens:
            break
    if index < len(view.entries) and view.entries[index].id is None:
        index -= 1
    return max(view.first, min(index, len(view.entries) - 1))


def _index_with_id(view: ContextView, index: int) -> int:
    """Return the nearest index whose message has an id, preferably a later one."""
    last = len(view.entries) - 1
    while index < last and view.entries[index].id is None:
        index += 1
    while index > 0 and (index > last or view.entries[index].id is None):
        index -= 1
    return max(index, 0)
