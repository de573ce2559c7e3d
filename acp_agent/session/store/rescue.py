"""Takes out of a damaged journal what can be read of it, and puts it into a sound one.

The damaged file is only read. Events keep their places, so that what is missing is missing in the
same place; what stands there and is no event is taken along as it is.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from acp_agent.ids import new_session_id
from acp_agent.session.store.damage import DamagedEvent, broken, sound_time
from acp_agent.session.store.entry import Entry
from acp_agent.session.store.pages import Pages, Record, Value
from acp_agent.session.store.rows import LARGEST_KEY, LARGEST_SEQ, SEQ_BITS

_ID = re.compile(rb"[A-Za-z0-9_-]{8,100}\Z")
_SESSION = range(9, 12)  # columns, by the version of the journal
_USAGE = 10  # columns


class Rescued(NamedTuple):
    """How many sessions and events were taken out; `known` were in the sound journal already."""

    sessions: int
    events: int
    known: int


class _Found:
    """What lies on the pages of a damaged journal, by the sessions' keys."""

    def __init__(self, path: Path) -> None:
        self.rows: dict[int, tuple[Value, ...]] = {}
        self.ids: dict[int, str] = {}
        self.events: dict[int, dict[int, tuple[int, bytes]]] = {}
        self.usage: list[tuple[Value, ...]] = []
        for record in Pages(path).records():
            self._take(record)

    def _take(self, record: Record) -> None:
        rowid, values = record
        match values:
            case (bytes(name), int(key)) | (int(), bytes(name), int(key)) if rowid is None:
                self._name(key, name)
            case (None, at, bytes(body)) if rowid is not None:
                key, seq = rowid >> SEQ_BITS, rowid & ((1 << SEQ_BITS) - 1)
                if 0 < key < LARGEST_KEY and 0 < seq < LARGEST_SEQ:
                    time = sound_time(at)
                    self.events.setdefault(key, {})[seq] = time, body
            case (None, bytes(name), *_) if rowid is not None and len(values) in _SESSION:
                self.rows[rowid] = values
                self._name(rowid, name)
            case (int(), bytes(), bytes(), bytes(), *_) if len(values) == _USAGE:
                self.usage.append(values)
            case _:
                pass

    def _name(self, key: int, name: bytes) -> None:
        if _ID.match(name):
            self.ids.setdefault(key, name.decode("ascii"))


def rescue(damaged: Path, connection: sqlite3.Connection) -> Rescued:
    """Put every session of `damaged` that is not there yet into an open, sound journal.

    All of it or nothing. A session of which only events are left gets its folder and title from
    them, and another id where no index has its own. Blocks for as long as reading the file takes.

    Raises:
        OSError: the damaged file cannot be read.
        sqlite3.Error: the sound one cannot be written.
    """
    found = _Found(damaged)
    connection.execute("BEGIN IMMEDIATE")
    try:
        rescued = _put(found, connection)
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
    return rescued


def _put(found: _Found, connection: sqlite3.Connection) -> Rescued:
    there = {row[0] for row in connection.execute("SELECT id FROM sessions")}
    taken: set[str] = set()
    events = known = 0
    for key in sorted(found.events.keys() | {key for key in found.rows if 0 < key < LARGEST_KEY}):
        name = found.ids.get(key) or new_session_id()
        if name in there:
            known += 1
            continue
        name = new_session_id() if name in taken else name
        taken.add(name)
        own = found.events.get(key, {})
        _put_session(connection, name, found.rows.get(key, ()), own)
        events += len(own)
    for row in found.usage:
        if not there or _text(row[1]) in taken:  # what deleted sessions took is of no session
            _put_usage(connection, row)
    return Rescued(len(taken), events, known)


def _put_session(
    connection: sqlite3.Connection,
    name: str,
    row: Sequence[Value],
    events: Mapping[int, tuple[int, bytes]],
) -> None:
    last = max(events, default=0)
    if row:
        _, _, cwd, directories, title, created_at, updated_at, turns, last_seq, *rest = row
        values = (_text(cwd), _text(directories) or "[]", None if title is None else _text(title))
        times = sound_time(created_at), sound_time(updated_at)
        count = turns if isinstance(turns, int) and turns >= 0 else 1
        if isinstance(last_seq, int) and last < last_seq < LARGEST_SEQ:
            last = last_seq  # the last ones are missing
        archived, configured = (int(flag == 1) for flag in (*rest, 0, 0)[:2])
    else:
        entry = _entry(events)
        values = entry.cwd or "", entry.directories or "[]", entry.title
        ats = [at for at, _ in events.values() if at]
        times = min(ats, default=0), max(ats, default=0)
        count = max(entry.turns, 1)  # it may have had turns; it must be listed
        archived = configured = 0
    key = connection.execute(
        "INSERT INTO sessions (id, cwd, directories, title, created_at, updated_at, turns,"
        " last_seq, archived, configured) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (name, *values, *times, count, last, archived, configured),
    ).lastrowid
    assert key is not None
    connection.executemany(
        "INSERT INTO events (place, at, body) VALUES (?, ?, CAST(? AS TEXT))",
        [((key << SEQ_BITS) + seq, at, body) for seq, (at, body) in sorted(events.items())],
    )


def _entry(events: Mapping[int, tuple[int, bytes]]) -> Entry:
    """What the events say of the session that they are of."""
    read = [broken(seq, at, body).event for seq, (at, body) in sorted(events.items())]
    return Entry([], 0, behind=[event for event in read if not isinstance(event, DamagedEvent)])


def _put_usage(connection: sqlite3.Connection, row: Sequence[Value]) -> None:
    at, session, cwd, model, *numbers, cost = row
    counts = [number if isinstance(number, int) else 0 for number in numbers]
    price = cost if isinstance(cost, int | float) else None
    connection.execute(
        "INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (sound_time(at), _text(session), _text(cwd), _text(model), *counts, price),
    )


def _text(value: Value) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
