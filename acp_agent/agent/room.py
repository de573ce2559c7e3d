"""Makes room in a context that has become too full, before the model is asked.

The cheapest comes first: old results are cut. Where that does not help, what is old is summed up;
where that cannot be done, it is left out.
"""

from __future__ import annotations

from acp_agent.agent import trimming
from acp_agent.agent.compaction import compact
from acp_agent.agent.count import Room, next_request, ratio, room_of
from acp_agent.agent.resources import TurnResources
from acp_agent.agent.tokens import tool_tokens
from acp_agent.events import ContextTrimmed, NoticeShown, UsageReported
from acp_agent.models.base import ModelInfo

LEFT_OUT_TITLE = "The oldest turns are no longer sent to the model, for lack of room."
TOO_LONG_TITLE = "The conversation was too long for the model; trying again with less of it."
_TRIED_AGAIN = 2 / 3  # of what a provider refused, the part that may be tried again
_WORTH = 500  # tokens; less is not worth being summed up


async def make_room(turn: TurnResources, model: ModelInfo) -> None:
    """See to it that the next request to a model is not too long for it.

    Raises:
        StoreError: the journal could not be written.
    """
    await turn.journal.settled()
    context, settings = turn.journal.context, turn.limits.context
    if settings.max_turns is not None:
        beyond = trimming.beyond_count(context.view, settings.max_turns)
        if beyond is not None:
            await turn.journal.emit(beyond)
    wish = turn.user.take_compaction_request()
    room = room_of(model, settings, context.refused.get(model.ref))
    if wish is None and next_request(turn.journal, turn.tools, model) <= room.most:
        return
    if wish is not None:
        await compact_now(turn, model, wish)
        if next_request(turn.journal, turn.tools, model) <= room.most:
            return
    await _shorten(turn, model, room)


async def make_room_after_overflow(turn: TurnResources, model: ModelInfo) -> bool:
    """Leave out so much that a request that was too long may be made again; whether there was any.

    Raises:
        StoreError: the journal could not be written.
    """
    view = turn.journal.context.view
    before, used = _estimate(turn), next_request(turn.journal, turn.tools, model)
    limit = view.limit(turn.limits.context.max_result_characters)
    await turn.journal.emit(trimming.after_overflow(view, model.ref, used, limit))
    cut = trimming.cut_all_results(
        view, used=_estimate(turn), most=before * _TRIED_AGAIN, ratio=1, limit=limit, least=1
    )
    if cut is not None and _estimate(turn) > before * _TRIED_AGAIN:
        await turn.journal.emit(cut)
    # What says that something is left out, and how to find it, takes room itself.
    if _estimate(turn) >= before:
        return False
    await turn.journal.emit(NoticeShown(severity="warning", title=TOO_LONG_TITLE))
    await report(turn, model)
    return True


async def compact_now(turn: TurnResources, model: ModelInfo, focus: str) -> str | None:
    """Sum up what there is, because the user wants it; None where that worked, else why not."""
    view = turn.journal.context.view
    room = room_of(model, turn.limits.context, turn.journal.context.refused.get(model.ref))
    place = len(view.entries)
    if turn.journal.context.awaits_answer:
        place = trimming.start_of_kept(view, 0)
    worth = sum(entry.tokens for entry in view.entries[view.first : place])
    if worth < _WORTH:
        return "there is hardly anything to sum up"
    why = await compact(
        turn,
        place=place,
        room=min(room.most // 4, worth),
        focus=focus,
        models=_models(turn, model),
    )
    await report(turn, model)
    return why


async def report(turn: TurnResources, model: ModelInfo) -> None:
    """Tell how full the context is now."""
    await turn.journal.emit(
        UsageReported(
            used=next_request(turn.journal, turn.tools, model),
            size=model.window,
            cost=turn.budget.cost,
        )
    )


def _estimate(turn: TurnResources) -> int:
    """Our own estimate for the next request, which changes with nothing but its length."""
    return turn.journal.context.tokens + turn.tools.toolset.measured(tool_tokens)


async def _shorten(turn: TurnResources, model: ModelInfo, room: Room) -> None:
    context, settings = turn.journal.context, turn.limits.context
    view = context.view
    if not view.entries:
        return
    limit = view.limit(settings.max_result_characters)
    factor = ratio(context, model, turn.tools.toolset.measured(tool_tokens))
    used = next_request(turn.journal, turn.tools, model)
    before = trimming.cut_old_results(view, room, used, factor, limit)
    if before is not None:
        await turn.journal.emit(
            ContextTrimmed(results_before=view.entries[before].id, result_limit=limit)
        )
        await report(turn, model)
        return
    place = trimming.start_of_kept(view, int(room.recent / factor))
    worth = sum(entry.tokens for entry in view.entries[view.first : place])
    done, changes = False, view.changes
    if settings.compaction and worth * factor >= max(_WORTH, 2 * trimming.worth(room)):
        why = await compact(
            turn,
            place=place,
            room=int(min(room.most / 4 / factor, worth)),
            models=_models(turn, model),
        )
        done = why is None
    if not done or next_request(turn.journal, turn.tools, model) > room.most:
        left_out = trimming.leave_out(
            view, room, next_request(turn.journal, turn.tools, model), factor, limit
        )
        if left_out is not None:
            await turn.journal.emit(NoticeShown(severity="info", title=LEFT_OUT_TITLE), left_out)
    if (used := next_request(turn.journal, turn.tools, model)) > room.most:
        cut = trimming.cut_all_results(
            view,
            used=used,
            most=room.most,
            ratio=factor,
            limit=limit,
            least=trimming.worth(room),
        )
        if cut is not None:
            await turn.journal.emit(cut)
    if view.changes > changes:
        await report(turn, model)


def _models(turn: TurnResources, model: ModelInfo) -> list[ModelInfo]:
    small = turn.models.small
    return [small] if small.ref == model.ref else [small, model]
