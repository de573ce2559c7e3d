"""What requests to models took, kept beside the journal for all sessions together.

A fork's copied beginning is not counted twice, and what a deleted session took still counts.
"""

from __future__ import annotations

import sqlite3

from msgspec import Struct

from acp_agent.events import Usage

QUARTER = 15 * 60 * 1000  # ms; every time zone's midnight is at the beginning of one


class UsageRow(Struct, frozen=True, kw_only=True):
    """What the requests of a quarter of an hour took, of one model in one project.

    `at` is its beginning, in milliseconds since 1970 (UTC). `cost` is in US dollars and leaves out
    the requests without a known price: `unpriced` of `requests`, which took `unpriced_usage`.
    """

    at: int
    project: str
    model: str
    requests: int
    usage: Usage
    cost: float
    unpriced: int
    unpriced_usage: Usage


class SpentTotal(Struct, frozen=True, kw_only=True):
    """Tokens, US dollars, and the number of requests whose price is not known."""

    tokens: int
    cost: float
    unpriced: int


def spent_since(connection: sqlite3.Connection, at: int) -> SpentTotal:
    """What was spent from a moment on, in all sessions; the moment in ms since 1970."""
    tokens, cost, unpriced = connection.execute(
        "SELECT coalesce(sum(input + output), 0), coalesce(sum(cost), 0.0), count(*) - count(cost)"
        " FROM usage WHERE at >= ?",
        (at,),
    ).fetchone()
    return SpentTotal(tokens=tokens, cost=cost, unpriced=unpriced)


def usage_since(connection: sqlite3.Connection, at: int) -> list[UsageRow]:
    """What was used from a moment on, in order; the moment in ms since 1970."""
    counts = ("input", "output", "cache_read", "cache_write", "reasoning")
    sums = ", ".join(
        [f"sum({name})" for name in counts]
        + [f"coalesce(sum({name}) FILTER (WHERE cost IS NULL), 0)" for name in counts]
    )
    rows = connection.execute(
        f"SELECT at / ? AS quarter, cwd, model, count(*), coalesce(sum(cost), 0.0),"  # noqa: S608 - names of ours
        f" count(*) - count(cost), {sums} FROM usage WHERE at >= ?"
        " GROUP BY quarter, cwd, model ORDER BY quarter, cwd, model",
        (QUARTER, at),
    )
    return [
        UsageRow(
            at=quarter * QUARTER,
            project=cwd,
            model=model,
            requests=requests,
            cost=cost,
            unpriced=unpriced,
            usage=Usage(**dict(zip(counts, numbers[:5], strict=True))),
            unpriced_usage=Usage(**dict(zip(counts, numbers[5:], strict=True))),
        )
        for quarter, cwd, model, requests, cost, unpriced, *numbers in rows
    ]
