"""Recover sessions from a damaged journal file into an intact one.

The damaged file is only read. SQLite finds a row from the root of its table's tree; if the file's
header or an inner page is damaged, it finds no row below. This module reads each page separately,
with the committed part of the write-ahead log applied. Events keep their numbers, so a missing
event is missing in the copy too; a body that is not an event is copied unchanged.

Source: https://sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import re
import sqlite3
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from acp_agent.ids import new_session_id
from acp_agent.session.store.damaged_events import damaged_event, valid_time
from acp_agent.session.store.records import DamagedEvent
from acp_agent.session.store.write_queries import MAX_KEY, MAX_SEQ, SEQ_BITS, JournalEntry

_ID = re.compile(rb"[A-Za-z0-9_-]{8,100}\Z")
_SESSION_COLUMNS = range(9, 12)  # columns, by the version of the journal
_USAGE_COLUMNS = 10  # columns
Value = int | float | bytes | None
_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR = 0x0D, 0x0A, 0x02
_HEADER_BYTES = {_TABLE_LEAF: 8, _INDEX_LEAF: 8, _INDEX_INTERIOR: 12}
_PAGE_SIZES = {1 << power for power in range(9, 17)}
_DEFAULT_PAGE_SIZE = 4096
_LOG_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # bytes by serial type
_MAX_RECORD_BYTES = 1 << 28  # bytes of one record; a larger record is damaged


class RecoveredSessions(NamedTuple):
    """Counts of recovered sessions and events; `existing` sessions were in the intact journal."""

    sessions: int
    events: int
    existing: int


class _DamagedRows:
    """The rows on the pages of a damaged journal, by session key."""

    def __init__(self, path: Path) -> None:
        self.rows: dict[int, tuple[Value, ...]] = {}
        self.ids: dict[int, str] = {}
        self.events: dict[int, dict[int, tuple[int, bytes]]] = {}
        self.usage: list[tuple[Value, ...]] = []
        for record in Pages(path).records():
            self._add(record)

    def _add(self, record: Record) -> None:
        rowid, values = record
        match values:
            case (bytes(name), int(key)) | (int(), bytes(name), int(key)) if rowid is None:
                self._name(key, name)
            case (None, at, bytes(body)) if rowid is not None:
                key, seq = rowid >> SEQ_BITS, rowid & ((1 << SEQ_BITS) - 1)
                if 0 < key < MAX_KEY and 0 < seq < MAX_SEQ:
                    time = valid_time(at)
                    self.events.setdefault(key, {})[seq] = time, body
            case (None, bytes(name), *_) if rowid is not None and len(values) in _SESSION_COLUMNS:
                self.rows[rowid] = values
                self._name(rowid, name)
            case (int(), bytes(), bytes(), bytes(), *_) if len(values) == _USAGE_COLUMNS:
                self.usage.append(values)

    def _name(self, key: int, name: bytes) -> None:
        if _ID.match(name):
            self.ids.setdefault(key, name.decode("ascii"))


def recover_sessions(damaged: Path, connection: sqlite3.Connection) -> RecoveredSessions:
    """Copy every session of `damaged` that an open, intact journal lacks.

    Copies everything or nothing. If only a session's events remain, its folder and title come from
    them; if no index has its id, it gets a new one. Blocks for as long as reading the file takes.

    Raises:
        OSError: the damaged file cannot be read.
        sqlite3.Error: the intact journal cannot be written.
    """
    rows = _DamagedRows(damaged)
    connection.execute("BEGIN IMMEDIATE")
    try:
        counts = _copy_sessions(rows, connection)
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
    return counts


def _copy_sessions(rows: _DamagedRows, connection: sqlite3.Connection) -> RecoveredSessions:
    existing = {row[0] for row in connection.execute("SELECT id FROM sessions")}
    new_ids: set[str] = set()
    events = existing_count = 0
    for key in sorted(rows.events.keys() | {key for key in rows.rows if 0 < key < MAX_KEY}):
        name = rows.ids.get(key) or new_session_id()
        if name in existing:
            existing_count += 1
            continue
        name = new_session_id() if name in new_ids else name
        new_ids.add(name)
        session_events = rows.events.get(key, {})
        _copy_session(connection, name, rows.rows.get(key, ()), session_events)
        events += len(session_events)
    for row in rows.usage:
        if not existing or _text(row[1]) in new_ids:  # usage of deleted sessions names no session
            _copy_usage(connection, row)
    return RecoveredSessions(len(new_ids), events, existing_count)


def _copy_session(
    connection: sqlite3.Connection,
    name: str,
    row: Sequence[Value],
    events: Mapping[int, tuple[int, bytes]],
) -> None:
    last = max(events, default=0)
    if row:
        _, _, cwd, directories, title, created_at, updated_at, turns, last_seq, *flags = row
        values = (_text(cwd), _text(directories) or "[]", None if title is None else _text(title))
        times = valid_time(created_at), valid_time(updated_at)
        count = turns if isinstance(turns, int) and turns >= 0 else 1
        if isinstance(last_seq, int) and last < last_seq < MAX_SEQ:
            last = last_seq  # the last events are missing
        archived, configured = (int(flag == 1) for flag in (*flags, 0, 0)[:2])
    else:
        entry = _entry(events)
        values = entry.cwd or "", entry.directories or "[]", entry.title
        times_of_events = [at for at, _ in events.values() if at]
        times = min(times_of_events, default=0), max(times_of_events, default=0)
        count = max(entry.turns, 1)  # it may have had turns; it must appear in lists
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


def _entry(events: Mapping[int, tuple[int, bytes]]) -> JournalEntry:
    """Return the session's data according to its events."""
    read = [damaged_event(seq, at, body).event for seq, (at, body) in sorted(events.items())]
    return JournalEntry(
        [], 0, earlier=[event for event in read if not isinstance(event, DamagedEvent)]
    )


def _copy_usage(connection: sqlite3.Connection, row: Sequence[Value]) -> None:
    at, session, cwd, model, *numbers, cost = row
    counts = [number if isinstance(number, int) else 0 for number in numbers]
    price = cost if isinstance(cost, int | float) else None
    connection.execute(
        "INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (valid_time(at), _text(session), _text(cwd), _text(model), *counts, price),
    )


def _text(value: Value) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


class Record(NamedTuple):
    """A record. `rowid` is None in an index. Texts are bytes, as in the file."""

    rowid: int | None
    values: tuple[Value, ...]


class Pages:
    """The pages of a database file and its write-ahead log; the file itself may be missing.

    Raises:
        OSError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        log = path.with_name(path.name + "-wal")
        logged = log.read_bytes() if log.is_file() else b""
        self._data = path.read_bytes() if path.exists() or not logged else b""
        self._size, reserved = _shape(self._data, logged)
        self._usable = self._size - reserved
        self._log = _committed(logged, self._size)
        self.count = max([-(-len(self._data) // self._size), *self._log])

    def records(self) -> Iterator[Record]:
        """Yield every complete record of tables and indexes."""
        for number in range(1, self.count + 1):
            page = self._page(number)
            start = 100 if number == 1 else 0
            kind = page[start] if len(page) > start else 0
            if kind in _HEADER_BYTES:
                for offset in _cells(page, start, _HEADER_BYTES[kind], self._usable):
                    try:
                        yield self._record(page, kind, offset)
                    except (IndexError, ValueError, struct.error):
                        continue  # this cell is damaged; continue with the next one

    def _page(self, number: int) -> bytes:
        logged = self._log.get(number)
        if logged is not None:
            return logged
        return self._data[(number - 1) * self._size : number * self._size]

    def _record(self, page: bytes, kind: int, offset: int) -> Record:
        if kind == _INDEX_INTERIOR:
            offset += 4
        length, offset = _varint(page, offset)
        rowid: int | None = None
        if kind == _TABLE_LEAF:
            rowid, offset = _varint(page, offset)
        if not 0 < length < _MAX_RECORD_BYTES:
            raise ValueError("not a length")
        return Record(rowid, _values(self._payload(page, kind, offset, length)))

    def _payload(self, page: bytes, kind: int, offset: int, length: int) -> bytes:
        usable = self._usable
        max_local = usable - 35 if kind == _TABLE_LEAF else (usable - 12) * 64 // 255 - 23
        if length <= max_local:
            return _slice(page, offset, length)
        min_local = (usable - 12) * 32 // 255 - 23
        local = min_local + (length - min_local) % (usable - 4)
        local = min_local if local > max_local else local
        pieces = [_slice(page, offset, local)]
        (following,) = struct.unpack_from(">I", page, offset + local)
        remaining = length - local
        visited: set[int] = set()
        while remaining > 0:
            if following in visited or not 0 < following <= self.count:
                raise ValueError("the rest of a record is lost")
            visited.add(following)
            overflow = self._page(following)
            size = min(remaining, usable - 4)
            pieces.append(_slice(overflow, 4, size))
            (following,) = struct.unpack_from(">I", overflow, 0)
            remaining -= size
        return b"".join(pieces)


def _shape(data: bytes, log: bytes) -> tuple[int, int]:
    """Return the page size, and the number of unused bytes at the end of each page."""
    if len(data) < 100 or not data.startswith(b"SQLite format 3\x00"):
        size = int.from_bytes(log[8:12])
        return (size if not data and size in _PAGE_SIZES else _DEFAULT_PAGE_SIZE), 0
    size = int.from_bytes(data[16:18]) or 0
    size = 1 << 16 if size == 1 else size
    return (size, data[20]) if size in _PAGE_SIZES and data[20] <= 32 else (_DEFAULT_PAGE_SIZE, 0)


def _committed(log: bytes, size: int) -> dict[int, bytes]:
    """Return the newest version of each page in a log up to its last commit.

    Frames from before the last restart of the log have another salt. Checksums are ignored, because
    a frame with a little damage is still useful.
    """
    step = _FRAME_HEADER_BYTES + size
    frames = [
        (struct.unpack_from(">II8s", log, offset), offset + _FRAME_HEADER_BYTES)
        for offset in range(_LOG_HEADER_BYTES, len(log) - step + 1, step)
    ]
    if not frames:
        return {}
    salt = log[16:24]
    if all(frame_salt != salt for (_, _, frame_salt), _ in frames):
        salt = Counter(frame_salt for (_, _, frame_salt), _ in frames).most_common(1)[0][0]
    current = [
        (page, commit, at) for (page, commit, frame_salt), at in frames if frame_salt == salt
    ]
    last = max((index for index, (_, commit, _) in enumerate(current) if commit), default=-1)
    limit = 1 << 31
    return {page: log[at : at + size] for page, _, at in current[: last + 1] if 0 < page < limit}


def _cells(page: bytes, start: int, head: int, usable: int) -> Iterator[int]:
    """Yield the offsets of the cells of a page."""
    if len(page) < start + head:
        return
    (count,) = struct.unpack_from(">H", page, start + 3)
    first = start + head
    for position in range(first, min(first + 2 * count, len(page) - 1), 2):
        (offset,) = struct.unpack_from(">H", page, position)
        if first <= offset < usable:
            yield offset


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    """Return a signed number of variable length, and the place after it."""
    value = 0
    for index in range(9):
        byte = data[offset + index]
        if index == 8:
            value = value << 8 | byte
            break
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return value - (1 << 64) if value >= 1 << 63 else value, offset + index + 1


def _slice(data: bytes, offset: int, length: int) -> bytes:
    piece = data[offset : offset + length]
    if len(piece) != length:
        raise ValueError("a record is cut off")
    return piece


def _values(payload: bytes) -> tuple[Value, ...]:
    head, offset = _varint(payload, 0)
    if not 0 < head <= len(payload):
        raise ValueError("not the head of a record")
    kinds: list[int] = []
    while offset < head:
        kind, offset = _varint(payload, offset)
        kinds.append(kind)
    values: list[Value] = []
    offset = head
    for kind in kinds:
        value, offset = _value(payload, offset, kind)
        values.append(value)
    return tuple(values)


def _value(payload: bytes, offset: int, kind: int) -> tuple[Value, int]:
    if kind == 0:
        return None, offset
    if kind in {8, 9}:
        return kind - 8, offset
    if kind in _INTEGERS:
        length = _INTEGERS[kind]
        return int.from_bytes(_slice(payload, offset, length), signed=True), offset + length
    if kind == 7:
        return struct.unpack(">d", _slice(payload, offset, 8))[0], offset + 8
    if kind < 12:
        raise ValueError("not a kind of value")
    length = (kind - 12) // 2
    return _slice(payload, offset, length), offset + length
