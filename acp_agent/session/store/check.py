"""Checks of the whole journal: its file, and every event of every session.

Imported only for `sessions check`, `doctor` and repairs. Each function runs in its caller's
transaction.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from acp_agent.errors import SessionNotFoundError
from acp_agent.ids import SessionId
from acp_agent.session.store.damaged_events import last_seq
from acp_agent.session.store.read_queries import get, read
from acp_agent.session.store.records import DamagedEvent, UnknownEvent
from acp_agent.session.store.recovery import is_damaged_event
from acp_agent.session.store.write_queries import SEQ_BITS, find_last_event

MAX_POSITIONS = 10


class DamagedSession(NamedTuple):
    """A session with events that cannot be read; `positions` has the numbers of the first few."""

    id: str
    title: str | None
    lost: int
    events: int
    positions: tuple[int, ...]


class CheckResult(NamedTuple):
    """The number of sessions, the damaged sessions, and the number of events without a session."""

    sessions: int
    damaged: tuple[DamagedSession, ...]
    strays: int


def check_sessions(connection: sqlite3.Connection) -> CheckResult:
    """Read every event of every session. Blocks for a long time if there are many."""
    names = [
        SessionId(bytes(row[0] or b"").decode("utf-8", "replace"))
        for row in connection.execute("SELECT CAST(id AS BLOB) FROM sessions")
    ]
    results = (_check_session(connection, name) for name in names)
    damaged = tuple(result for result in results if result is not None)
    (strays,) = connection.execute(
        "SELECT count(*) FROM events WHERE place >> ? NOT IN (SELECT key FROM sessions)",
        (SEQ_BITS,),
    ).fetchone()
    return CheckResult(len(names), damaged, strays)


def _check_session(connection: sqlite3.Connection, session: SessionId) -> DamagedSession | None:
    try:
        key, last = find_last_event(connection, session)
    except SessionNotFoundError:  # its id is damaged
        return DamagedSession(session, None, 1, 1, ())
    positions: list[int] = []
    lost, after = 0, 0
    while after < last:
        batch = read(connection, key, after, last)
        for item in batch:
            if isinstance(item.event, UnknownEvent) and is_damaged_event(item.event):
                lost += item.event.count if isinstance(item.event, DamagedEvent) else 1
                positions.append(item.seq)
        if not batch:
            lost += last - after
            positions.append(after + 1)
            break
        after = last_seq(batch[-1])
    if not lost:
        return None
    title = get(connection, session).title
    return DamagedSession(session, title, lost, last, tuple(positions[:MAX_POSITIONS]))


def check_file(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Return the damage in the file, one line each (SQLite's `quick_check`)."""
    lines = tuple(str(row[0]) for row in connection.execute("PRAGMA quick_check(20)"))
    return () if lines == ("ok",) else lines
