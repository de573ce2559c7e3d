"""Statements that change the journal, and the entries that they write.

Each function runs inside the transaction of its caller. Errors are those of `Store`'s methods.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from acp_agent.errors import SessionError, SessionNotFoundError, StoreDamagedError
from acp_agent.events import (
    AnyEvent,
    ConfigChanged,
    DirectoriesChanged,
    ModelAnswered,
    SessionStarted,
    TitleChanged,
    TurnStarted,
    Usage,
    UserMessage,
    unwrap_child_event,
)
from acp_agent.ids import SessionId
from acp_agent.session.store.event_codec import encode_event, replace_surrogates
from acp_agent.session.store.records import UnknownEvent
from acp_agent.session.store.sqlite_errors import is_damage

SEQ_BITS = 32  # an event's place is its session's key, shifted by this, plus its number
MAX_KEY = 1 << 30  # far more than anybody has sessions; a larger key is damaged
MAX_SEQ = (1 << SEQ_BITS) - (1 << 20)  # likewise; leaves room for appended events


class JournalEntry:
    """Events to write: their encoded bodies, and the changes to the session's row."""

    __slots__ = ("at", "bodies", "configured", "cwd", "directories", "title", "turns", "usage")

    def __init__(
        self,
        events: Sequence[AnyEvent | UnknownEvent],
        at: int,
        *,
        earlier: Sequence[AnyEvent | UnknownEvent] = (),
    ) -> None:
        """Encode `events` with the time `at` (ms since 1970).

        Args:
            earlier: earlier events that are in the journal already, if the session's row is derived
                from both.
        """
        self.at = at
        self.bodies = [encode_event(event) for event in events]
        self.cwd: str | None = None
        self.directories: str | None = None
        self.title: str | None = None
        self.turns = 0
        self.configured = False
        self.usage = [
            (replace_surrogates(event.model), *_counts(event.usage), event.cost)
            for event in map(unwrap_child_event, events)
            if isinstance(event, ModelAnswered) and (event.usage or event.cost)
        ]
        for event in (*earlier, *events):
            if isinstance(event, SessionStarted | DirectoriesChanged):
                self.cwd = replace_surrogates(event.cwd)
                folders = [replace_surrogates(folder) for folder in event.directories]
                self.directories = msgspec.json.encode(folders).decode()
            elif isinstance(event, TitleChanged):
                self.title = replace_surrogates(event.title)
            elif isinstance(event, ConfigChanged):
                self.configured = True
            elif isinstance(event, TurnStarted):
                self.turns += 1
            elif isinstance(event, UserMessage) and event.local and not event.steering:
                self.turns -= 1  # a command that the agent answers itself is not a conversation


def _counts(usage: Usage) -> tuple[int, ...]:
    return usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning


def create(connection: sqlite3.Connection, session_id: SessionId, entry: JournalEntry) -> None:
    """Create a session with its first events."""
    key = _new_session(connection, session_id, entry, len(entry.bodies))
    try:
        _insert(connection, key, 0, entry)
    except sqlite3.IntegrityError:
        # The sessions table lost its last rows, but their events are still there.
        last_key = connection.execute("SELECT max(place) >> ? FROM events", (SEQ_BITS,)).fetchone()
        key = _move(connection, key, last_key[0] + 1)
        _insert(connection, key, 0, entry)


def fork(
    connection: sqlite3.Connection,
    session_id: SessionId,
    source: SessionId,
    last: int,
    entry: JournalEntry,
) -> None:
    """Create a session: the events of `source` up to number `last`, then those of `entry`."""
    first = find_last_event(connection, source)[0] << SEQ_BITS
    key = _new_session(connection, session_id, entry, last + len(entry.bodies))
    connection.execute(
        # Damaged events are copied unchanged; missing ones are missing in the copy too.
        "INSERT INTO events (place, at, body)"
        " SELECT place - ? + ?, at, body FROM events WHERE place > ? AND place <= ?",
        (first, key << SEQ_BITS, first, first + last),
    )
    _insert(connection, key, last, entry)


def _new_session(
    connection: sqlite3.Connection, session_id: SessionId, entry: JournalEntry, last: int
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
    if key >= MAX_KEY:  # the previous key is damaged
        sound = connection.execute("SELECT max(key) FROM sessions WHERE key < ?", (MAX_KEY,))
        return _move(connection, key, (sound.fetchone()[0] or 0) + 1)
    return key


def _move(connection: sqlite3.Connection, key: int, free: int) -> int:
    """Change the key of a session that has no events yet."""
    connection.execute("UPDATE sessions SET key = ? WHERE key = ?", (free, key))
    return free


def append(connection: sqlite3.Connection, session_id: SessionId, entry: JournalEntry) -> None:
    """Append events to a session."""
    key, last = find_session(connection, session_id)
    if type(last) is not int or not 0 <= last < MAX_SEQ:
        last = _last_seq(connection, key)
    changes = connection.total_changes
    try:
        _insert(connection, key, last, entry)
    except sqlite3.IntegrityError:
        # `last_seq` is damaged: events follow it. Delete the rows just inserted and retry.
        position = (key << SEQ_BITS) + last
        inserted = min(connection.total_changes - changes, len(entry.bodies))
        connection.execute(
            "DELETE FROM events WHERE place > ? AND place <= ?", (position, position + inserted)
        )
        last = _last_seq(connection, key)
        _insert(connection, key, last, entry)
    connection.execute(
        "UPDATE sessions SET last_seq = ?, updated_at = max(updated_at, ?), turns = turns + ?,"
        " cwd = coalesce(?, cwd), directories = coalesce(?, directories),"
        " title = coalesce(?, title), configured = max(configured, ?) WHERE key = ?",
        (
            last + len(entry.bodies),
            entry.at,
            entry.turns,
            entry.cwd,
            entry.directories,
            entry.title,
            entry.configured,
            key,
        ),
    )


def _insert(connection: sqlite3.Connection, key: int, last: int, entry: JournalEntry) -> None:
    at = entry.at
    position = (key << SEQ_BITS) + last
    connection.executemany(
        # The bytes are UTF-8 already; stored as text, SQLite's JSON functions can read them.
        "INSERT INTO events (place, at, body) VALUES (?, ?, CAST(? AS TEXT))",
        [(position + number, at, body) for number, body in enumerate(entry.bodies, 1)],
    )
    if entry.usage:
        connection.executemany(
            "INSERT INTO usage (at, session, cwd, model, input, output, cache_read, cache_write,"
            " reasoning, cost) SELECT ?, id, coalesce(cwd, ''), ?, ?, ?, ?, ?, ?, ?"
            " FROM sessions WHERE key = ?",
            [(at, *row, key) for row in entry.usage],
        )


def delete(connection: sqlite3.Connection, session_id: SessionId) -> bool:
    """Delete a session and its events; return false if there is none."""
    try:
        key, _ = find_session(connection, session_id)
    except SessionNotFoundError:
        return False
    first = key << SEQ_BITS
    connection.execute(
        "DELETE FROM events WHERE place > ? AND place < ?", (first, first + (1 << SEQ_BITS))
    )
    connection.execute("DELETE FROM sessions WHERE key = ?", (key,))
    # The usage still counts, but no longer says in which session and folder.
    connection.execute("UPDATE usage SET session = '', cwd = '' WHERE session = ?", (session_id,))
    return True


def find_last_event(connection: sqlite3.Connection, session_id: SessionId) -> tuple[int, int]:
    """Return the session's key and the number of its last event."""
    key, last = find_session(connection, session_id)
    try:
        stored = _last_seq(connection, key)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        stored = 0
    is_valid = type(last) is int and 0 <= last < MAX_SEQ
    return key, max(stored, last) if is_valid else stored


def find_session(connection: sqlite3.Connection, session_id: SessionId) -> tuple[int, int]:
    """Return the session's key and the number of its last event according to its row."""
    row: tuple[int, int] | None = connection.execute(
        "SELECT key, last_seq FROM sessions WHERE id = ?", (session_id,)
    ).fetchone()
    if row is not None and type(row[0]) is int:
        return row
    # The index may be damaged, or the id may not be text; lists show such an id decoded.
    for key, last, raw in connection.execute(
        "SELECT key, last_seq, CAST(id AS BLOB) FROM sessions NOT INDEXED"
    ):
        if type(key) is not int:  # the schema table is damaged
            raise StoreDamagedError("a value has the wrong type")
        if (raw or b"").decode("utf-8", "replace") == session_id:
            return key, last
    raise SessionNotFoundError(session_id)


def _last_seq(connection: sqlite3.Connection, key: int) -> int:
    """Return the number of the last stored event or 0; `last_seq` may differ from it."""
    first = key << SEQ_BITS
    position = connection.execute(
        "SELECT max(place) FROM events WHERE place > ? AND place < ?",
        (first, first + (1 << SEQ_BITS)),
    ).fetchone()[0]
    last = 0 if position is None else int(position) - first
    if last >= MAX_SEQ:
        raise StoreDamagedError("an event has an impossible number")
    return last


def archive(connection: sqlite3.Connection, session_id: SessionId, *, archived: bool) -> None:
    """Hide a session in lists, or show it again. Raises SessionNotFoundError."""
    changed = connection.execute(
        "UPDATE sessions SET archived = ? WHERE id = ?", (int(archived), session_id)
    ).rowcount
    if not changed:
        raise SessionNotFoundError(session_id)
