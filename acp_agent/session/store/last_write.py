"""A record of the last write, beside the journal, that reveals a lost write-ahead log.

SQLite treats a missing log as an empty one: the journal is then intact but shorter. Therefore the
session and its number of events are written to a small file after a commit, at most ten times a
second for one session. The file is not synchronised, so a power failure may lose the record
together with the log. The next write overwrites the record, so a record that does not match the
journal is saved in a second file until `acp-agent sessions repair`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import time
from pathlib import Path

import msgspec
from msgspec import Struct

from acp_agent.errors import SessionNotFoundError
from acp_agent.ids import SessionId
from acp_agent.platform.decoding import decode_json
from acp_agent.session.store import write_queries

_log = logging.getLogger(__name__)

_LENGTH = 256  # bytes; all notes have this length, so that each overwrites the previous one
_PAUSE = 0.1  # seconds between two notes of the same session
_MAX_NOTES = 100  # notes of lost writes at most


class WriteNote(Struct, frozen=True):
    """A write: a session, its number of events after the write, and the time (ms since 1970)."""

    session: str
    events: int
    at: int


class LostWrite(Struct, frozen=True):
    """A write that the journal lacks; `present` is the session's number of events, None if gone."""

    note: WriteNote
    present: int | None


class LastWrite:
    """The note of a journal's newest write. Only one thread uses it."""

    def __init__(self, journal: Path) -> None:
        self._file = _newest_file(journal)
        self._descriptor: int | None = None
        self._session = ""  # the session of the last note
        self._next_note = 0.0  # time of the next note, by the monotonic clock

    def note(self, session: str, events: int) -> None:
        """Note a committed write if enough time has passed. Ignores a full disk."""
        now = time.monotonic()
        if session == self._session and now < self._next_note:
            return
        self._session, self._next_note = session, now + _PAUSE
        note = msgspec.json.encode(WriteNote(session, events, time.time_ns() // 1_000_000))
        if len(note) < _LENGTH:
            self._write(note.ljust(_LENGTH - 1) + b"\n")

    def forget(self, session: str) -> None:
        """Clear the note of a session that was deleted on purpose."""
        noted = _read_notes(self._file)
        if noted and noted[0].session == session:
            self._write(b" " * (_LENGTH - 1) + b"\n")

    def close(self) -> None:
        """Close the file."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _write(self, line: bytes) -> None:
        with contextlib.suppress(OSError):
            if self._descriptor is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
                self._descriptor = os.open(self._file, flags, 0o600)
            os.pwrite(self._descriptor, line, 0)


def record_lost_writes(journal: Path, connection: sqlite3.Connection) -> None:
    """Save the note of the newest write if the journal lacks that write, before it is overwritten.

    Raises:
        sqlite3.Error: the journal cannot be read.
    """
    noted = _read_notes(_newest_file(journal))
    recorded = _read_notes(_lost_file(journal))
    new = [lost for lost in _find_lost(noted, connection) if lost.note not in recorded]
    if not new or len(recorded) >= _MAX_NOTES:
        return
    _log.warning("the journal %s lacks its newest writes; run acp-agent sessions check", journal)
    with contextlib.suppress(OSError), _lost_file(journal).open("ab") as file:
        file.writelines(msgspec.json.encode(lost.note) + b"\n" for lost in new)


def lost_writes(journal: Path, connection: sqlite3.Connection) -> tuple[LostWrite, ...]:
    """Return the noted writes that the journal lacks. Raises sqlite3.Error."""
    return tuple(_find_lost(_read_notes(_lost_file(journal)), connection))


def forget_lost_writes(journal: Path) -> None:
    """Remove all notes, after a repair or for a new journal."""
    for file in (_newest_file(journal), _lost_file(journal)):
        file.unlink(missing_ok=True)


def _newest_file(journal: Path) -> Path:
    return journal.with_name(f"{journal.name}.newest")


def _lost_file(journal: Path) -> Path:
    return journal.with_name(f"{journal.name}.lost")


def _find_lost(notes: list[WriteNote], connection: sqlite3.Connection) -> list[LostWrite]:
    lacking = []
    for note in notes:
        present: int | None = None
        with contextlib.suppress(SessionNotFoundError):
            _, present = write_queries.find_session(connection, SessionId(note.session))
        if present is None or present < note.events:
            lacking.append(LostWrite(note, present))
    return lacking


def _read_notes(file: Path) -> list[WriteNote]:
    """Return the valid notes in a file."""
    try:
        with file.open("rb") as opened:
            lines = opened.read(_LENGTH * _MAX_NOTES).splitlines()
    except OSError:
        return []
    notes = []
    for line in filter(bytes.strip, lines):
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
            notes.append(decode_json(line, WriteNote))
    return notes
