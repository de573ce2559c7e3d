"""What requests to models took, kept beside the journal for all sessions together.

A fork's copied beginning is not counted twice, and what a deleted session took still counts.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from msgspec import Struct

from acp_agent.events import Usage

_COUNTS = ("input", "output", "cache_read", "cache_write", "reasoning")
QUARTER = 15 * 60 * 1000  # ms; every time zone's midnight is at the beginning of one


class UsageRow(Struct, frozen=True, kw_only=True):
    """What the requests of a quarter of an hour took, of one model in one project.

    `at` is its beginning, in milliseconds since 1970 (UTC). `cost` is in US dollars. A request
    without a price is a row of its own: what it would cost today may depend on its length.
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


def spent_since(connection: sqlite3.Connection, at: int) -> SpentTotal:
    """What was spent from a moment on, in all sessions; the moment in ms since 1970."""
    tokens, cost, unpriced = connection.execute(
        "SELECT coalesce(sum(input + output), 0), coalesce(sum(cost), 0.0), count(*) - count(cost)"
        " FROM usage WHERE at >= ?",
        (at,),
    ).fetchone()
    if not unpriced:
        return SpentTotal(tokens=tokens, cost=cost)
    rows = connection.execute(
        f"SELECT model, {', '.join(_COUNTS)} FROM usage WHERE at >= ? AND cost IS NULL",  # noqa: S608 - names of ours
        (at,),
    )
    each = tuple((model, _usage(numbers)) for model, *numbers in rows)
    return SpentTotal(tokens=tokens, cost=cost, unpriced=each)


def usage_since(connection: sqlite3.Connection, at: int) -> list[UsageRow]:
    """What was used from a moment on, in order; the moment in ms since 1970."""
    sums = ", ".join(f"sum({name})" for name in _COUNTS)
    rows = connection.execute(
        f"SELECT at / ? AS quarter, cwd, model, count(*), sum(cost), {sums}"  # noqa: S608 - names of ours
        " FROM usage WHERE at >= ?"
        " GROUP BY quarter, cwd, model, CASE WHEN cost IS NULL THEN rowid END"
        " ORDER BY quarter, cwd, model",
        (QUARTER, at),
    )
    return [
        UsageRow(
            at=quarter * QUARTER,
            project=cwd,
            model=model,
            requests=requests,
            cost=cost,
            usage=_usage(numbers),
        )
        for quarter, cwd, model, requests, cost, *numbers in rows
    ]


def _usage(numbers: Sequence[int]) -> Usage:
    return Usage(**dict(zip(_COUNTS, numbers, strict=True)))
