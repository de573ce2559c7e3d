"""Placeholders for events that cannot be read, and reading around damaged pages.

Imported only if the journal is damaged. See docs/decisions/damage.md.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence

import msgspec

from acp_agent.ids import SessionId
from acp_agent.session.store.event_codec import decode_event
from acp_agent.session.store.records import (
    EVENT_TIME,
    LATEST,
    Damage,
    DamagedEvent,
    SessionRecord,
    StoredEvent,
    UnknownEvent,
)
from acp_agent.session.store.sqlite_errors import is_damage

_TAG = re.compile(rb'\A\{"event":"([a-z_]{1,40})"')


def as_json(event: UnknownEvent) -> dict[str, object]:
    r"""Return the export form of an event that cannot be read: its JSON, or its bytes as text.

    Bytes that are not UTF-8 are escaped, as in `\xff`.
    """
    if not isinstance(event, DamagedEvent):
        return {"event": msgspec.json.decode(event.raw)}
    text = event.raw.decode("utf-8", "backslashreplace")
    return {"damaged": {"why": event.why, "count": event.count, "text": text}}


def damaged_event(seq: int, at: object, body: object) -> StoredEvent:
    """Return the event with number `seq` whose body or time is invalid."""
    raw = body if isinstance(body, bytes) else b""
    if isinstance(body, str):
        raw = body.encode("utf-8", "surrogateescape")
    try:
        event = decode_event(raw)  # only its time is invalid
    except Exception:  # noqa: BLE001 - the bytes may be anything
        match = _TAG.match(raw)
        tag = match[1].decode("ascii") if match else ""
        event = DamagedEvent(tag=tag, raw=raw, why="broken")
    return StoredEvent(seq, valid_time(at), event)


def missing_events(
    first: int, last: int, at: object = 0, *, why: Damage = "missing"
) -> StoredEvent:
    """Return the placeholder for the missing events `first` to `last`."""
    event = DamagedEvent(tag="", raw=b"", why=why, count=last - first + 1)
    return StoredEvent(first, valid_time(at), event)


def valid_time(at: object) -> int:
    """Return a time in milliseconds since 1970; 0 if `at` is not a time."""
    return at if isinstance(at, int) and 0 <= at <= LATEST else 0


def read_around(
    connection: sqlite3.Connection, first: int, after: int, last: int, limit: int
) -> list[StoredEvent]:
    """Return the events after `after`, read one by one because the file cannot be read in order.

    If none of `limit` events can be read, a placeholder covers everything up to the next event that
    exists, or to `last`.

    Args:
        first: the session's key, shifted.
        after: the number before the first requested event.
        last: the last requested number.
        limit: how many events are tried.
    """
    events: list[StoredEvent] = []
    any_readable = False
    for seq in range(after + 1, min(last, after + limit) + 1):
        stored = _read_event(connection, first, seq)
        any_readable = any_readable or not isinstance(stored.event, DamagedEvent)
        events.append(stored)
    if any_readable or after + limit >= last:
        return events
    next_seq = _next_seq(connection, first, after + limit, last)
    return [missing_events(after + 1, next_seq - 1, why="unreadable")]


def _read_event(connection: sqlite3.Connection, first: int, seq: int) -> StoredEvent:
    try:
        row = connection.execute(
            f"SELECT {EVENT_TIME}, CAST(body AS BLOB) FROM events WHERE place = ?",  # noqa: S608 - a constant
            (first + seq,),
        ).fetchone()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return missing_events(seq, seq, why="unreadable")
    return missing_events(seq, seq) if row is None else damaged_event(seq, *row)


def _next_seq(connection: sqlite3.Connection, first: int, after: int, last: int) -> int:
    """Return the number of the next event after `after`; `last` + 1 if there is none."""
    try:
        (position,) = connection.execute(
            "SELECT min(place) FROM events WHERE place > ? AND place <= ?",
            (first + after, first + last),
        ).fetchone()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        position = None
    # A damaged tree may return any place; only accept one that makes progress.
    return int(position) - first if position is not None and position > first + after else last + 1


def last_seq(item: StoredEvent) -> int:
    """Return the last number that an item covers."""
    count = item.event.count if isinstance(item.event, DamagedEvent) else 1
    return item.seq + count - 1


def readable_records(
    connection: sqlite3.Connection, query: str, values: Sequence[object]
) -> list[SessionRecord]:
    """Return the readable data of sessions whose rows have values of the wrong type.

    Times keep SQLite's sort order, as the pages of a list would not fit together otherwise.
    """
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    try:
        rows = connection.execute(query, values).fetchall()
    finally:
        connection.text_factory = str
    return [_record(row) for row in rows]


def _record(row: Sequence[object]) -> SessionRecord:
    session_id, cwd, directories, title, created_at, updated_at, turns, archived = row
    try:
        folders = msgspec.json.decode(_text(directories), type=tuple[str, ...])
    except msgspec.DecodeError:
        folders = ()
    return SessionRecord(
        id=SessionId(_text(session_id)),
        cwd=_text(cwd),
        directories=folders,
        title=None if title is None else _text(title),
        created_at=_sortable_time(created_at),
        updated_at=_sortable_time(updated_at),
        turns=turns if isinstance(turns, int) else 0,
        archived=archived == 1,
    )


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)


def _sortable_time(at: object) -> int:
    """Return a valid time; the latest one for a value that SQLite sorts after all times."""
    if isinstance(at, str | bytes) or (isinstance(at, int | float) and at > LATEST):
        return LATEST
    return valid_time(at)
