"""What to leave away when the context has become too full: the cheapest first.

These functions only look and propose an event; see `acp_agent.agent.room` for when.
"""

from __future__ import annotations

from acp_agent.agent.count import Room
from acp_agent.agent.view import View
from acp_agent.events import ContextTrimmed
from acp_agent.ids import MessageId
from acp_agent.models.base import UserSide

_EMERGENCY = 0.5  # of what was too much, the part that is kept
_SHORTER = (600, 200)  # characters of a result, where as many as are asked for are too many


def cut_old_results(view: View, room: Room, used: int, ratio: float, limit: int) -> int | None:
    """The place before which results are to be cut; None where that does not help enough.

    Args:
        view: the conversation.
        room: how full it may get.
        used: how full it is, in tokens.
        ratio: tokens for one of our estimate.
        limit: characters that are kept of a result.
    """
    before = _named(view, recent_from(view, int(room.recent / ratio)))
    saved = view.cut_tokens(before, limit) * ratio
    return before if saved and used - saved <= room.target else None


def start_of_kept(view: View, tokens: int) -> int:
    """The place from which a part of at most so many tokens of our estimate can stand alone.

    It begins with a turn where one begins in it, else with an answer of the model's. What the model
    has not answered yet is always kept, and so the part may be larger.
    """
    return _start(view, recent_from(view, tokens))


def leave_out(view: View, room: Room, used: int, ratio: float, limit: int) -> ContextTrimmed | None:
    """Leave the oldest turns out, and cut the old results of the others.

    None where that would help too little to be worth the provider's cache.
    """
    fixed = used - view.tokens * ratio
    place = start_of_kept(view, max(0, int((room.target - fixed) / ratio)))
    if place <= view.first:
        return None
    before = max(place, _named(view, recent_from(view, int(room.recent / ratio))))
    saved = sum(entry.tokens for entry in view.entries[view.first : place])
    if (saved + view.cut_tokens(before, limit)) * ratio < worth(room):
        return None
    return ContextTrimmed(
        keep_from=view.entries[place].id,
        results_before=view.entries[before].id,
        result_limit=limit,
    )


def cut_all_results(
    view: View, *, used: float, most: float, ratio: float, limit: int, least: float
) -> ContextTrimmed | None:
    """Cut every result so far, the newest too: the last resort. None: it is worth nothing.

    Args:
        view: the conversation.
        used: how full it is, in tokens.
        most: how full it may get. Where `limit` does not bring it there, results are cut shorter.
        ratio: tokens for one of our estimate.
        limit: characters that are kept of a result.
        least: how many tokens must be saved for it to be done at all.
    """
    saved = 0.0
    for shorter in (limit, *(one for one in _SHORTER if one < limit)):
        saved, limit = view.cut_tokens(len(view.entries), shorter) * ratio, shorter
        if used - saved <= most:
            break
    return ContextTrimmed(results_before=None, result_limit=limit) if saved >= least else None


def worth(room: Room) -> int:
    """How many tokens a change must save. What is not the conversation's may fill a window, too."""
    return room.most // 20


def after_overflow(view: View, model: str, used: int, limit: int) -> ContextTrimmed:
    """Leave at least a third out, since a provider said that `used` tokens are too many."""
    place = start_of_kept(view, int(view.tokens * _EMERGENCY))
    keep_from: MessageId | None = view.entries[place].id if place > view.first else None
    return ContextTrimmed(
        keep_from=keep_from,
        results_before=None,
        result_limit=limit,
        model=model,
        overflow=used,
    )


def beyond_count(view: View, most: int) -> ContextTrimmed | None:
    """Leave turns out where there are more than `most`; a quarter more, not to do so each time."""
    if not view.entries:
        return None
    last = view.entries[-1].turn
    seen = view.entries[view.first :]
    if not seen or last - seen[0].turn < most:
        return None
    first = last - max(1, most * 3 // 4) + 1
    kept = next((entry for entry in seen if entry.opens and entry.turn >= first), None)
    return None if kept is None else ContextTrimmed(keep_from=kept.id)


def recent_from(view: View, tokens: int) -> int:
    """The place from which the newest messages take at most so many tokens of our estimate."""
    place = len(view.entries)
    while place > view.first:
        tokens -= view.entries[place - 1].tokens
        if tokens < 0:
            break
        place -= 1
    return place


def _start(view: View, place: int) -> int:
    unanswered = _unanswered(view)
    fitting = [
        at
        for at in range(min(place, unanswered), unanswered + 1)
        if view.entries[at].id is not None
    ]
    turns = [at for at in fitting if view.entries[at].opens]
    return next(iter(turns or fitting), view.first)


def _unanswered(view: View) -> int:
    """Where what the model has not answered begins, with the calls whose results are among it.

    What an earlier turn left unanswered is none of it: that may be the very message that is too
    long, and would then be in the way for good.
    """
    place = len(view.entries)
    while place > view.first and isinstance(view.entries[place - 1].message, UserSide):
        place -= 1
        if view.entries[place].opens:
            break
    if place < len(view.entries) and view.entries[place].id is None:
        place -= 1
    return max(view.first, min(place, len(view.entries) - 1))


def _named(view: View, place: int) -> int:
    """The next place that an event can name; results have no name of their own."""
    last = len(view.entries) - 1
    while place < last and view.entries[place].id is None:
        place += 1
    while place > 0 and (place > last or view.entries[place].id is None):
        place -= 1
    return max(place, 0)
