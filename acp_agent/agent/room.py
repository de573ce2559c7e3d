"""Makes room in a context that has become too full, before the model is asked.

The cheapest comes first: old results are cut. Where that does not help, what is old is summed up;
where that cannot be done, it is left out.
"""

from __future__ import annotations

from acp_agent.agent import trimming
from acp_agent.agent.compaction import compact
from acp_agent.agent.count import Room, next_request, ratio, room_of
from acp_agent.agent.host import TurnHost
from acp_agent.agent.tokens import tool_tokens
from acp_agent.events import ContextTrimmed, NoticeShown, UsageReported
from acp_agent.models.base import ModelInfo

LEFT_OUT_TITLE = "The oldest turns are no longer sent to the model, for lack of room."
TOO_LONG_TITLE = "The conversation was too long for the model; trying again with less of it."
_TRIED_AGAIN = 2 / 3  # of what a provider refused, the part that may be tried again
_WORTH = 500  # tokens; less is not worth being summed up


async def make_room(host: TurnHost, model: ModelInfo) -> None:
    """See to it that the next request to a model is not too long for it.

    Raises:
        StoreError: the journal could not be written.
    """
    await host.settled()
    context, settings = host.context, host.context_settings
    if settings.max_turns is not None:
        beyond = trimming.beyond_count(context.view, settings.max_turns)
        if beyond is not None:
            await host.emit(beyond)
    wish = host.take_compaction_wish()
    room = room_of(model, settings, context.refused.get(model.ref))
    if wish is None and next_request(host, model) <= room.most:
        return
    if wish is not None:
        await compact_now(host, model, wish)
        if next_request(host, model) <= room.most:
            return
    await _shorten(host, model, room)


async def make_room_after_overflow(host: TurnHost, model: ModelInfo) -> bool:
    """Leave out so much that a request that was too long may be made again; whether there was any.

    Raises:
        StoreError: the journal could not be written.
    """
    view = host.context.view
    before, used = _estimate(host), next_request(host, model)
    limit = view.limit(host.context_settings.max_result_characters)
    await host.emit(trimming.after_overflow(view, model.ref, used, limit))
    cut = trimming.cut_all_results(
        view, used=_estimate(host), most=before * _TRIED_AGAIN, ratio=1, limit=limit, least=1
    )
    if cut is not None and _estimate(host) > before * _TRIED_AGAIN:
        await host.emit(cut)
    # What says that something is left out, and how to find it, takes room itself.
    if _estimate(host) >= before:
        return False
    await host.emit(NoticeShown(severity="warning", title=TOO_LONG_TITLE))
    await report(host, model)
    return True


async def compact_now(host: TurnHost, model: ModelInfo, focus: str) -> str | None:
    """Sum up what there is, because the user wants it; None where that worked, else why not."""
    view = host.context.view
    room = room_of(model, host.context_settings, host.context.refused.get(model.ref))
    place = len(view.entries)
    if host.context.awaits_answer:
        place = trimming.start_of_kept(view, 0)
    worth = sum(entry.tokens for entry in view.entries[view.first : place])
    if worth < _WORTH:
        return "there is hardly anything to sum up"
    why = await compact(
        host,
        place=place,
        room=min(room.most // 4, worth),
        focus=focus,
        models=_models(host, model),
    )
    await report(host, model)
    return why


async def report(host: TurnHost, model: ModelInfo) -> None:
    """Tell how full the context is now."""
    await host.emit(
        UsageReported(used=next_request(host, model), size=model.window, cost=host.cost)
    )


def _estimate(host: TurnHost) -> int:
    """Our own estimate for the next request, which changes with nothing but its length."""
    return host.context.tokens + host.toolset.measured(tool_tokens)


async def _shorten(host: TurnHost, model: ModelInfo, room: Room) -> None:
    context, settings = host.context, host.context_settings
    view = context.view
    if not view.entries:
        return
    limit = view.limit(settings.max_result_characters)
    factor = ratio(context, model, host.toolset.measured(tool_tokens))
    used = next_request(host, model)
    before = trimming.cut_old_results(view, room, used, factor, limit)
    if before is not None:
        await host.emit(ContextTrimmed(results_before=view.entries[before].id, result_limit=limit))
        await report(host, model)
        return
    place = trimming.start_of_kept(view, int(room.recent / factor))
    worth = sum(entry.tokens for entry in view.entries[view.first : place])
    done, changes = False, view.changes
    if settings.compaction and worth * factor >= max(_WORTH, 2 * trimming.worth(room)):
        why = await compact(
            host,
            place=place,
            room=int(min(room.most / 4 / factor, worth)),
            models=_models(host, model),
        )
        done = why is None
    if not done or next_request(host, model) > room.most:
        left_out = trimming.leave_out(view, room, next_request(host, model), factor, limit)
        if left_out is not None:
            await host.emit(NoticeShown(severity="info", title=LEFT_OUT_TITLE), left_out)
    if (used := next_request(host, model)) > room.most:
        cut = trimming.cut_all_results(
            view,
            used=used,
            most=room.most,
            ratio=factor,
            limit=limit,
            least=trimming.worth(room),
        )
        if cut is not None:
            await host.emit(cut)
    if view.changes > changes:
        await report(host, model)


def _models(host: TurnHost, model: ModelInfo) -> list[ModelInfo]:
    small = host.small_model
    return [small] if small.ref == model.ref else [small, model]
