"""Queries that read sessions and events, and skip damage.

Each function runs inside the transaction of its caller. Errors are those of `Store`'s methods.
"""

from __future__ import annotations

import base64
import binascii
import sqlite3
from collections.abc import Sequence
from typing import Annotated

import msgspec

from acp_agent.errors import InvalidInputError, SessionNotFoundError, StoreDamagedError
from acp_agent.ids import SessionId
from acp_agent.platform.decoding import decode_json
from acp_agent.session.store.event_codec import decode_event
from acp_agent.session.store.records import (
    EVENT_TIME,
    LATEST,
    ArchiveFilter,
    SessionPage,
    SessionRecord,
    StoredEvent,
)
from acp_agent.session.store.sqlite_errors import is_damage, primary_code
from acp_agent.session.store.write_queries import SEQ_BITS, find_session

BATCH_EVENTS = 1000
BATCH_BYTES = 1 << 20  # a batch ends with the event that reaches this size

_RECORD = "id, cwd, directories, title, created_at, updated_at, turns, archived"
# Sessions worth listing: those with a turn, and those that the user named or configured.
_NON_EMPTY = " AND (turns > 0 OR title IS NOT NULL OR configured)"
_ARCHIVED: dict[ArchiveFilter, str] = {
    "exclude": " AND NOT archived",
    "include": "",
    "only": " AND archived",
}
MAX_PAGE = 1000
# The time of the last session on a page, its id, and the filters of the list.
_Position = tuple[Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)], str, int]
# Sorts before every session: SQLite orders bytes after all numbers and texts.
_START = (b"\xff", "")


def read(connection: sqlite3.Connection, key: int, after: int, last: int) -> list[StoredEvent]:
    """Return a batch of events after number `after`, up to `last`.

    `DamagedEvent`s replace events that cannot be read.
    """
    events: list[StoredEvent] = []
    size = 0
    first = key << SEQ_BITS
    try:
        rows = connection.execute(
            f"SELECT place, {EVENT_TIME}, CAST(body AS BLOB) FROM events"  # noqa: S608 - a constant
            " WHERE place > ? AND place <= ? ORDER BY place LIMIT ?",
            (first + after, first + last, BATCH_EVENTS),
        )
        for position, at, body in rows:
            seq = position - first
            after += 1
            if seq < after:  # the tree is damaged, and its rows are out of order
                after -= 1
                continue
            if seq != after:
                from acp_agent.session.store import damaged_events  # noqa: PLC0415 - rarely needed

                events.append(damaged_events.missing_events(after, seq - 1, at))
                after = seq
            try:
                event = decode_event(body) if 0 <= at <= LATEST else None
            except (StoreDamagedError, TypeError, RecursionError):
                event = None
            if event is None:
                from acp_agent.session.store import damaged_events  # noqa: PLC0415 - rarely needed

                events.append(damaged_events.damaged_event(seq, at, body))
            else:
                events.append(StoredEvent(seq, at, event))
            size += len(body or b"")
            if size >= BATCH_BYTES:
                rows.close()
                return events
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        if events:
            return events  # events read before the damage are intact
        from acp_agent.session.store import damaged_events  # noqa: PLC0415 - rarely needed

        return damaged_events.read_around(connection, first, after, last, BATCH_EVENTS)
    return events


def get(connection: sqlite3.Connection, session_id: SessionId) -> SessionRecord:
    """Return the record of a session. Raises SessionNotFoundError if there is no such session."""
    key, _ = find_session(connection, session_id)
    records = _select_records(
        connection,
        f"SELECT {_RECORD} FROM sessions WHERE key = ?",  # noqa: S608 - a constant of this module
        (key,),
    )
    if not records:
        raise SessionNotFoundError(session_id)
    return records[0]


def find_by_prefix(connection: sqlite3.Connection, name: str, limit: int) -> list[SessionRecord]:
    """Return up to `limit` sessions whose ids begin with `name`, newest first."""
    return _select_records(
        connection,
        f"SELECT {_RECORD} FROM sessions WHERE substr(id, 1, ?) = ?"  # noqa: S608 - a constant of this module
        " ORDER BY updated_at DESC, id DESC LIMIT ?",
        (len(name), name, limit),
    )


def _select_records(
    connection: sqlite3.Connection, query: str, values: Sequence[object]
) -> list[SessionRecord]:
    try:
        return [_record(row) for row in connection.execute(query, values)]
    except (sqlite3.OperationalError, TypeError, ValueError) as error:
        if isinstance(error, sqlite3.Error) and primary_code(error):
            raise  # an error of SQLite; text that is not UTF-8 raises an error of Python
        from acp_agent.session.store import damaged_events  # noqa: PLC0415 - rarely needed

        return damaged_events.readable_records(connection, query, values)


def _record(row: tuple[str, str, str, str | None, int, int, int, int]) -> SessionRecord:
    session_id, cwd, directories, title, created_at, updated_at, turns, archived = row
    if not (0 <= created_at <= LATEST and 0 <= updated_at <= LATEST):
        raise ValueError("not a time")
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


def page(
    connection: sqlite3.Connection,
    *,
    cwd: str | None,
    cursor: str | None,
    limit: int,
    with_empty: bool,
    archived: ArchiveFilter,
) -> SessionPage:
    """Return a page of the list; see `Store.list`. Runs inside the caller's transaction."""
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidInputError(f"the limit must be from 1 to {MAX_PAGE}", field="limit")
    filters = msgspec.json.encode((cwd, archived))
    # A checksum reveals a mistake; `hashlib` would load OpenSSL, which takes 5 ms.
    selection = binascii.crc32(filters)
    records = _select_records(
        connection,
        f"SELECT {_RECORD} FROM sessions"  # noqa: S608 - constants of this module
        " WHERE (updated_at, id) < (?, ?) AND (? IS NULL OR cwd = ?)"
        f"{'' if with_empty else _NON_EMPTY}{_ARCHIVED[archived]}"
        " ORDER BY updated_at DESC, id DESC LIMIT ?",
        (*_decode_cursor(cursor, selection), cwd, cwd, limit + 1),
    )
    sessions = records[:limit]
    next_cursor = None
    if len(records) > limit:
        position = msgspec.json.encode((sessions[-1].updated_at, sessions[-1].id, selection))
        next_cursor = base64.urlsafe_b64encode(position).decode()
    return SessionPage(sessions=sessions, next_cursor=next_cursor)


def _decode_cursor(cursor: str | None, selection: int) -> tuple[int | bytes, str]:
    """Return the position in the list (`updated_at`, id) that a cursor encodes."""
    if cursor is None:
        return _START
    try:
        raw = base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True)
        at, session_id, cursor_selection = decode_json(raw, _Position)
    except (ValueError, binascii.Error, msgspec.DecodeError) as error:
        raise InvalidInputError(
            "the cursor is not one that session/list gave; leave it out to start at the beginning",
            field="cursor",
        ) from error
    if cursor_selection != selection:
        raise InvalidInputError(
            "the cursor belongs to a list with another cwd or archived filter; repeat those "
            "filters, or leave the cursor out to start at the beginning",
            field="cursor",
        )
    return at, session_id
