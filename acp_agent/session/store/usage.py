"""Token usage and cost of model requests, in all sessions.

Events copied by a fork are not counted twice, and deleted sessions still count.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Literal

from msgspec import Struct

from acp_agent.errors import StoreDamagedError
from acp_agent.events import AnyEvent, Usage
from acp_agent.session.store.event_codec import decode_event
from acp_agent.session.store.records import UnknownEvent
from acp_agent.session.store.write_queries import SEQ_BITS

_COUNTS = ("input", "output", "cache_read", "cache_write", "reasoning")
QUARTER = 15 * 60 * 1000  # ms; midnight in every time zone is a multiple of this
# The start of the year 9999, the last year that a calendar has in full, in milliseconds.
_END_OF_TIME = 253_370_764_800_000
_MAX_COST = 1e12  # US dollars; a higher cost is damage
_COST = f"CASE WHEN abs(cost) < {_MAX_COST:.0f} THEN cost END"

By = Literal["time", "project", "model"]


class UsageRow(Struct, frozen=True, kw_only=True):
    """The usage of one model in one project in a quarter of an hour.

    `at` is the start of the quarter, in milliseconds since 1970 (UTC), `cost` is in US dollars.
    Columns that were not requested are 0 or "", except the model of requests without a price.
    """

    at: int
    project: str
    model: str
    requests: int
    usage: Usage
    cost: float | None


class SpentTotal(Struct, frozen=True, kw_only=True):
    """Tokens, cost in US dollars, and the model and usage of each request without a known price."""

    tokens: int
    cost: float
    unpriced: tuple[tuple[str, Usage], ...] = ()


def spent_since(connection: sqlite3.Connection, at: int, until: int | None = None) -> SpentTotal:
    """Return the usage of all sessions from `at` to `until`, in ms since 1970."""
    period = at, _END_OF_TIME if until is None else until
    tokens, cost, unpriced = connection.execute(
        "SELECT coalesce(sum(input + output), 0),"  # noqa: S608 - constants
        f" coalesce(sum({_COST}), 0.0), count(*) - count({_COST})"
        " FROM usage WHERE at >= ? AND at < ?",
        period,
    ).fetchone()
    if not unpriced:
        return SpentTotal(tokens=tokens, cost=cost)
    rows = connection.execute(
        f"SELECT model, {', '.join(_COUNTS)}"  # noqa: S608 - constants
        f" FROM usage WHERE at >= ? AND at < ? AND {_COST} IS NULL",
        period,
    )
    requests = tuple((model, _usage(numbers)) for model, *numbers in rows)
    return SpentTotal(tokens=tokens, cost=cost, unpriced=requests)


def usage_since(
    connection: sqlite3.Connection,
    at: int,
    *,
    by: Collection[By] = ("time", "project", "model"),
    separate: Collection[str] | None = None,
) -> list[UsageRow]:
    """Return the usage from a moment on, in order of time, project and model.

    Args:
        at: the start, in ms since 1970.
        by: the columns to group by; fewer are faster.
        separate: the models whose requests without a price get a row each, because today's price of
            a request depends on its length; None: all models.
    """
    where = "TRUE" if separate is None else f"model IN ({', '.join('?' * len(separate))})"
    columns = (
        f"at / {QUARTER} * {QUARTER}" if "time" in by else "0",
        "cwd" if "project" in by else "''",
        "model" if "model" in by else f"CASE WHEN {_COST} IS NULL THEN model ELSE '' END",
    )
    sums = ", ".join(f"sum({name})" for name in _COUNTS)
    rows = connection.execute(
        f"SELECT {', '.join(columns)}, count(*), sum({_COST}), {sums}"  # noqa: S608 - constants
        " FROM usage WHERE at >= ? AND at < ?"
        f" GROUP BY 1, 2, 3, {_COST} IS NULL, CASE WHEN {_COST} IS NULL AND {where} THEN rowid END"
        " ORDER BY 1, 2, 3",
        (at, _END_OF_TIME, *(separate or ())),
    )
    return [
        UsageRow(
            at=began, project=cwd, model=model, requests=requests, cost=cost, usage=_usage(numbers)
        )
        for began, cwd, model, requests, cost, *numbers in rows
    ]


def decisions_since(connection: sqlite3.Connection, at: int) -> list[list[AnyEvent]]:
    """Return the events about permissions from a moment on, a list for each session.

    Events copied by a fork and events that cannot be read are left out.
    """
    rows = connection.execute(
        "SELECT key, CAST(body AS BLOB) FROM sessions JOIN events"
        " ON place > key << ?2 AND place < (key + 1) << ?2"
        " WHERE updated_at >= ?1 AND at >= max(?1, created_at)"
        """ AND (body LIKE '{"event":"permission_%' OR body LIKE '{"event":"child_worked"%'"""
        """ AND instr(body, '"did":{"event":"permission_')) ORDER BY place""",
        (at, SEQ_BITS),
    )
    sessions: dict[int, list[AnyEvent]] = {}
    for key, body in rows:
        with suppress(StoreDamagedError, TypeError, RecursionError):
            event = decode_event(body)
            if not isinstance(event, UnknownEvent):
                sessions.setdefault(key, []).append(event)
    return list(sessions.values())


def _usage(numbers: Sequence[int]) -> Usage:
    return Usage(**dict(zip(_COUNTS, numbers, strict=True)))
