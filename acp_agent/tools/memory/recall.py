"""Finds words in notes and in earlier sessions of the project, with SQLite's full-text search.

The index is a file that is brought up to date when something is looked for, and made anew where it
is damaged: what counts is the notes and the journal. https://www.sqlite.org/fts5.html
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from acp_agent.errors import WorkspaceError
from acp_agent.tools.memory.notes import Note
from acp_agent.tools.session_search import Dated, Passage, SessionSearchTool, passages

_VERSION = 1  # of the tables; another one is made anew
_LONGEST = 4_000  # characters of a passage that are searched: what matters stands early
_BUSY_SECONDS = 5.0  # for which another process's index is waited for
_TABLES = """
CREATE TABLE sessions(id TEXT PRIMARY KEY, updated INTEGER NOT NULL, title TEXT NOT NULL);
CREATE VIRTUAL TABLE passages USING fts5(
  text, session UNINDEXED, turn UNINDEXED, at UNINDEXED, who UNINDEXED, shown UNINDEXED,
  tokenize = "unicode61 remove_diacritics 2"
);
"""
# Scripts without spaces between words: each character becomes a word.
_NO_SPACES = re.compile(
    r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
)
_TERMS = re.compile(r'"([^"]+)"|(\S+)')
_WORD = re.compile(r"\w")


class PastSession(Struct, frozen=True, kw_only=True):
    """A session as the list of sessions has it; `updated` is in milliseconds since 1970 (UTC)."""

    id: str
    title: str
    updated: int


class Recalled(Struct, frozen=True, kw_only=True):
    """What was found: a note (`session` is "") or a passage of a session.

    `who` is the note's name, or who said the passage. `at` is in milliseconds since 1970 (UTC).
    """

    session: str
    title: str
    turn: int
    at: int
    who: str
    text: str


class RecallIndex:
    """The index of one project. All methods block: call them in a thread.

    Args:
        file: where it is kept.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def missing(self, sessions: Sequence[PastSession]) -> Sequence[PastSession]:
        """Return the sessions that are not in the index as they are now; drop those that are gone.

        Raises:
            WorkspaceError: the index cannot be used.
        """
        with self._opened() as db:
            known = dict(db.execute("SELECT id, updated FROM sessions").fetchall())
            gone = set(known) - {one.id for one in sessions}
            for session in gone:
                _drop(db, session)
            return [one for one in sessions if known.get(one.id) != one.updated]

    def add(self, session: PastSession, journal: Sequence[Dated]) -> None:
        """Put a session in, in place of what the index has of it.

        Raises:
            WorkspaceError: the index cannot be used.
        """
        found = passages(journal, without=SessionSearchTool.name)
        with self._opened() as db:
            _drop(db, session.id)
            rows = [_row(session.id, passage) for passage in found]
            db.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?)", rows)
            record = (session.id, session.updated, session.title)
            db.execute("INSERT INTO sessions VALUES (?, ?, ?)", record)

    def find(self, words: str, notes: Sequence[Note], most: int) -> Sequence[Recalled]:
        """Return the passages and notes that have any of the words, the best first.

        Args:
            words: what to look for; a phrase may be in double quotes.
            notes: the notes as they are now.
            most: how many to return.

        Raises:
            WorkspaceError: the index cannot be used.
        """
        query = _query(words)
        if not query:
            return ()
        with self._opened() as db:
            _drop(db, "")
            rows = [
                (_spaced(note.text), "", 0, note.changed, f"{note.scope} {note.name}", note.text)
                for note in notes
            ]
            db.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?)", rows)
            # A note was written to be found. A result is long, and says less than a person does.
            found = db.execute(
                "SELECT session, coalesce(title, ''), turn, at, who, shown,"
                " bm25(passages) * CASE WHEN session = '' THEN 2.0 WHEN who = 'user' THEN 1.4"
                " WHEN who = 'agent' THEN 1.2 WHEN who = 'result' THEN 0.7 ELSE 1.0 END AS score"
                " FROM passages LEFT JOIN sessions ON sessions.id = session"
                " WHERE passages MATCH ? ORDER BY score, at DESC LIMIT ?",
                (query, most),
            ).fetchall()
        return [
            Recalled(session=session, title=title, turn=turn, at=at, who=who, text=text)
            for session, title, turn, at, who, text, _ in found
        ]

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Open the index for one change or search, which is kept as a whole or not at all."""
        try:
            try:
                db = self._connect()
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
                    raise
                self._file.unlink(missing_ok=True)
                db = self._connect()
            with closing(db), db:
                db.execute("BEGIN IMMEDIATE")
                yield db
        except (sqlite3.Error, OSError) as error:
            raise WorkspaceError(
                f"the index of earlier sessions cannot be used: {error}"
            ) from error

    def _connect(self) -> sqlite3.Connection:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        db = sqlite3.connect(self._file, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            _prepare_tables(db)
        except BaseException:
            with suppress(sqlite3.Error):
                db.close()
            raise
        return db


def _prepare_tables(db: sqlite3.Connection) -> None:
    """Make the tables where there are none.

    Raises:
        sqlite3.Error: the file is damaged, or has tables of another version.
    """
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version not in {0, _VERSION}:
        raise sqlite3.DatabaseError(f"the index has version {version}")
    if not version:
        db.executescript(f"BEGIN IMMEDIATE;{_TABLES}PRAGMA user_version={_VERSION};COMMIT;")
    db.execute("SELECT count(*) FROM sessions, passages")


def _drop(db: sqlite3.Connection, session: str) -> None:
    db.execute("DELETE FROM passages WHERE session = ?", (session,))
    db.execute("DELETE FROM sessions WHERE id = ?", (session,))


def _row(session: str, passage: Passage) -> tuple[str, str, int, int, str, str]:
    text = passage.text[:_LONGEST]
    return _spaced(text), session, passage.turn, passage.at, passage.who, text


def _spaced(text: str) -> str:
    return _NO_SPACES.sub(r" \1 ", text)


def _query(words: str) -> str:
    """Return words as FTS5 takes them: each in quotes, so that nothing in them is an operator."""
    terms = dict.fromkeys(phrase or word for phrase, word in _TERMS.findall(words))
    quoted = [_spaced(term).replace('"', " ").strip() for term in terms if _WORD.search(term)]
    return " OR ".join(f'"{term}"' for term in quoted)
