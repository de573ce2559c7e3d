"""The journal's statements. Each function runs inside the transaction of its caller."""

from __future__ import annotations

import sqlite3

import msgspec

from acp_agent.errors import SessionError, SessionNotFoundError, StoreDamagedError
from acp_agent.ids import SessionId
from acp_agent.session.store_codec import decode_event
from acp_agent.session.store_entry import Entry
from acp_agent.session.store_records import (
    ArchiveFilter,
    SessionRecord,
    StoredEvent,
)

SEQ_BITS = 32  # an event's place is its session's key, shifted by these, and its number there

BATCH_EVENTS = 1000
BATCH_BYTES = 1 << 20  # a batch ends with the event that reaches it

_RECORD = "id, cwd, directories, title, created_at, updated_at, turns, archived"
_ARCHIVED: dict[ArchiveFilter, str] = {
    "exclude": " AND NOT archived",
    "include": "",
    "only": " AND archived",
}


def create(connection: sqlite3.Connection, session_id: SessionId, entry: Entry) -> None:
    """A new session with its first events.

    Raises:
        SessionError: there is a session with this id.
    """
    key = _new_session(connection, session_id, entry, len(entry.bodies))
    _insert(connection, key, 0, entry)


def fork(
    connection: sqlite3.Connection,
    session_id: SessionId,
    source: SessionId,
    last: int,
    entry: Entry,
) -> None:
    """A new session: the events of `source` up to place `last`, as they are, then `entry`'s.

    Raises:
        SessionNotFoundError: there is no such source.
        SessionError: there is a session with the new id.
        StoreDamagedError: an event of the source is missing.
    """
    first = extent(connection, source)[0] << SEQ_BITS
    key = _new_session(connection, session_id, entry, last + len(entry.bodies))
    copied = connection.execute(
        "INSERT INTO events (place, at, body)"
        " SELECT place - ? + ?, at, body FROM events WHERE place > ? AND place <= ?",
        (first, key << SEQ_BITS, first, first + last),
    ).rowcount
    if copied != last:
        raise StoreDamagedError(f"{last - copied} events of the session {source} are missing")
    _insert(connection, key, last, entry)


def _new_session(
    connection: sqlite3.Connection, session_id: SessionId, entry: Entry, last: int
) -> int:
    try:
        key = connection.execute(
            "INSERT INTO sessions (id, cwd, directories, title, created_at, updated_at, turns,"
            " last_seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                session_id,
                entry.cwd,
                entry.directories,
                entry.title,
                entry.at,
                entry.at,
                entry.turns,
                last,
            ),
        ).lastrowid
    except sqlite3.IntegrityError as error:
        raise SessionError(f"a session with the id {session_id} exists already") from error
    assert key is not None
    return key


def append(connection: sqlite3.Connection, session_id: SessionId, entry: Entry) -> None:
    """Further events of a session.

    Raises:
        SessionNotFoundError: there is no such session.
    """
    row = connection.execute(
        "SELECT key, last_seq FROM sessions WHERE id = ?", (session_id,)
    ).fetchone()
    if row is None:
        raise SessionNotFoundError(session_id)
    key, last = row
    _insert(connection, key, last, entry)
    connection.execute(
        "UPDATE sessions SET last_seq = ?, updated_at = max(updated_at, ?), turns = turns + ?,"
        " cwd = coalesce(?, cwd), directories = coalesce(?, directories),"
        " title = coalesce(?, title) WHERE key = ?",
        (
            last + len(entry.bodies),
            entry.at,
            entry.turns,
            entry.cwd,
            entry.directories,
            entry.title,
            key,
        ),
    )


def _insert(connection: sqlite3.Connection, key: int, last: int, entry: Entry) -> None:
    at = entry.at
    place = (key << SEQ_BITS) + last
    connection.executemany(
        # The bytes are UTF-8 already; as text they stay readable to SQLite's own JSON functions.
        "INSERT INTO events (place, at, body) VALUES (?, ?, CAST(? AS TEXT))",
        [(place + number, at, body) for number, body in enumerate(entry.bodies, 1)],
    )
    if entry.usage:
        connection.executemany(
            "INSERT INTO usage SELECT ?, id, cwd, ?, ?, ?, ?, ?, ?, ? FROM sessions WHERE key = ?",
            [(at, *row, key) for row in entry.usage],
        )


def delete(connection: sqlite3.Connection, session_id: SessionId) -> bool:
    """Remove a session and its events; false when there is none."""
    row = connection.execute("SELECT key FROM sessions WHERE id = ?", (session_id,)).fetchone()
    if row is None:
        return False
    first = row[0] << SEQ_BITS
    connection.execute(
        "DELETE FROM events WHERE place > ? AND place < ?", (first, first + (1 << SEQ_BITS))
    )
    connection.execute("DELETE FROM sessions WHERE key = ?", row)
    # What was spent stays spent; in which conversation, and where, is forgotten with it.
    connection.execute("UPDATE usage SET session = '', cwd = '' WHERE session = ?", (session_id,))
    return True


def extent(connection: sqlite3.Connection, session_id: SessionId) -> tuple[int, int]:
    """The session's key, and the place of its last event.

    Raises:
        SessionNotFoundError: there is no such session.
    """
    row = connection.execute(
        "SELECT key, last_seq FROM sessions WHERE id = ?", (session_id,)
    ).fetchone()
    if row is None:
        raise SessionNotFoundError(session_id)
    return row[0], row[1]


def read(connection: sqlite3.Connection, key: int, after: int, last: int) -> list[StoredEvent]:
    """A batch of events, those that follow place `after`, up to place `last`.

    Raises:
        StoreDamagedError: a place is missing, or what stands there is not an event.
    """
    events: list[StoredEvent] = []
    size = 0
    first = key << SEQ_BITS
    rows = connection.execute(
        "SELECT place, at, CAST(body AS BLOB) FROM events WHERE place > ? AND place <= ?"
        " ORDER BY place LIMIT ?",
        (first + after, first + last, BATCH_EVENTS),
    )
    for place, at, body in rows:
        seq = place - first
        after += 1
        if seq != after:
            raise StoreDamagedError(f"event {after} of a session is missing")
        events.append(StoredEvent(seq, at, decode_event(body)))
        size += len(body)
        if size >= BATCH_BYTES:
            rows.close()
            break
    return events


def get(connection: sqlite3.Connection, session_id: SessionId) -> SessionRecord:
    """What is known of a session.

    Raises:
        SessionNotFoundError: there is no such session.
    """
    row = connection.execute(
        f"SELECT {_RECORD} FROM sessions WHERE id = ?",  # noqa: S608 - a constant of this module
        (session_id,),
    ).fetchone()
    if row is None:
        raise SessionNotFoundError(session_id)
    return _record(row)


def archive(connection: sqlite3.Connection, session_id: SessionId, *, archived: bool) -> None:
    """Leave a session out of lists, or put it into them again.

    Raises:
        SessionNotFoundError: there is no such session.
    """
    changed = connection.execute(
        "UPDATE sessions SET archived = ? WHERE id = ?", (int(archived), session_id)
    ).rowcount
    if not changed:
        raise SessionNotFoundError(session_id)


def page(
    connection: sqlite3.Connection,
    *,
    cwd: str | None,
    before: tuple[int, str],
    limit: int,
    min_turns: int,
    archived: ArchiveFilter,
) -> list[SessionRecord]:
    """Up to `limit` sessions, newest first, that come after `before` (`updated_at`, id)."""
    rows = connection.execute(
        f"SELECT {_RECORD} FROM sessions"  # noqa: S608 - constants of this module
        " WHERE (updated_at, id) < (?, ?) AND turns >= ? AND (? IS NULL OR cwd = ?)"
        f"{_ARCHIVED[archived]} ORDER BY updated_at DESC, id DESC LIMIT ?",
        (*before, min_turns, cwd, cwd, limit),
    )
    return [_record(row) for row in rows]


def _record(row: tuple[str, str, str, str | None, int, int, int, int]) -> SessionRecord:
    session_id, cwd, directories, title, created_at, updated_at, turns, archived = row
    return SessionRecord(
        id=SessionId(session_id),
        cwd=cwd,
        directories=msgspec.json.decode(directories, type=tuple[str, ...]),
        title=title,
        created_at=created_at,
        updated_at=updated_at,
        turns=turns,
        archived=bool(archived),
    )


def check(connection: sqlite3.Connection) -> tuple[str, ...]:
    """What is broken in the file, one line each (https://sqlite.org/pragma.html, quick_check)."""
    found = tuple(str(row[0]) for row in connection.execute("PRAGMA quick_check(20)"))
    if found != ("ok",):
        return found
    return tuple(
        f"session {session_id}: {stored} of {last} events are there"
        for session_id, last, stored in connection.execute(
            "SELECT id, last_seq, (SELECT count(*) FROM events"
            " WHERE place > key << ? AND place < (key + 1) << ?) AS stored"
            " FROM sessions WHERE stored <> last_seq LIMIT 20",
            (SEQ_BITS, SEQ_BITS),
        )
    )
