"""Token usage and cost of model requests, in all sessions.

The copied beginning of a fork is not counted twice, and a deleted session still counts.
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
QUARTER = 15 * 60 * 1000  # ms; every time zone's midnight is at the beginning of one
_LAST = 253_370_764_800_000  # ms; the year 9999 begins, the last that a calendar has whole
_MOST = 1e12  # US dollars; what costs more is damage
_COST = f"CASE WHEN abs(cost) < {_MOST:.0f} THEN cost END"

By = Literal["time", "project", "model"]


class UsageRow(Struct, frozen=True, kw_only=True):
    """What the requests of a quarter of an hour took, of one model in one project.

    `at` is its beginning, in milliseconds since 1970 (UTC), `cost` in US dollars. What was not
    asked for is 0 or "", but for the model of requests without a price.
    """

    at: int
    project: str
    model: str
    requests: int
    usage: Usage
    cost: float | None


class SpentTotal(Struct, frozen=True, kw_only=True):
    """Tokens, US dollars, and the requests whose price was not known: model and usage of each."""

    tokens: int
    cost: float
    unpriced: tuple[tuple[str, Usage], ...] = ()


def spent_since(connection: sqlite3.Connection, at: int, until: int | None = None) -> SpentTotal:
    """What was spent from a moment on, in all sessions; the moments in ms since 1970."""
    period = at, _LAST if until is None else until
    tokens, cost, unpriced = connection.execute(
        "SELECT coalesce(sum(input + output), 0),"  # noqa: S608 - names of ours
        f" coalesce(sum({_COST}), 0.0), count(*) - count({_COST})"
        " FROM usage WHERE at >= ? AND at < ?",
        period,
    ).fetchone()
    if not unpriced:
        return SpentTotal(tokens=tokens, cost=cost)
    rows = connection.execute(
        f"SELECT model, {', '.join(_COUNTS)}"  # noqa: S608 - names of ours
        f" FROM usage WHERE at >= ? AND at < ? AND {_COST} IS NULL",
        period,
    )
    each = tuple((model, _usage(numbers)) for model, *numbers in rows)
    return SpentTotal(tokens=tokens, cost=cost, unpriced=each)


def usage_since(
    connection: sqlite3.Connection,
    at: int,
    *,
    by: Collection[By] = ("time", "project", "model"),
    apart: Collection[str] | None = None,
) -> list[UsageRow]:
    """What was used from a moment on, in order.

    Args:
        connection: to the journal.
        at: the moment, in ms since 1970.
        by: what to tell apart; the less, the faster.
        apart: the models whose requests without a price are a row each, for what they would cost
            today depends on the length of each; None: any model.
    """
    alone = "TRUE" if apart is None else f"model IN ({', '.join('?' * len(apart))})"
    columns = (
        f"at / {QUARTER} * {QUARTER}" if "time" in by else "0",
        "cwd" if "project" in by else "''",
        "model" if "model" in by else f"CASE WHEN {_COST} IS NULL THEN model ELSE '' END",
    )
    sums = ", ".join(f"sum({name})" for name in _COUNTS)
    rows = connection.execute(
        f"SELECT {', '.join(columns)}, count(*), sum({_COST}), {sums}"  # noqa: S608 - ours alone
        " FROM usage WHERE at >= ? AND at < ?"
        f" GROUP BY 1, 2, 3, {_COST} IS NULL, CASE WHEN {_COST} IS NULL AND {alone} THEN rowid END"
        " ORDER BY 1, 2, 3",
        (at, _LAST, *(apart or ())),
    )
    return [
        UsageRow(
            at=began,
            project=cwd,
            model=model,
            requests=requests,
            cost=cost,
            usage=_usage(numbers),
        )
        for began, cwd, model, requests, cost, *numbers in rows
    ]


def decisions_since(connection: sqlite3.Connection, at: int) -> list[list[AnyEvent]]:
    """Return the events about permissions from a moment on, a list for each session.

    What a fork copied is left out, and so is what cannot be read.
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
