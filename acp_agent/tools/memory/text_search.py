"""Find words in notes and in earlier sessions of the project, with SQLite's full-text search.

If an embedding model is configured, the results of `vectors` are combined with it. The index is a
file that is updated before each search, and rebuilt if it is damaged; the notes and the journal are
the source of its content. https://www.sqlite.org/fts5.html
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from acp_agent.errors import WorkspaceError
from acp_agent.tools.memory.notes import Note
from acp_agent.tools.session_search import DatedEvent, Passage, SessionSearchTool, passages

_VERSION = 2  # of the tables; other versions are rebuilt
# Characters of a passage that are indexed: the important part usually comes first.
_MAX_INDEXED_LENGTH = 4_000
_BUSY_SECONDS = 5.0  # wait for another process that uses the index
_TABLES = """
CREATE TABLE sessions(id TEXT PRIMARY KEY, updated INTEGER NOT NULL, title TEXT NOT NULL);
CREATE VIRTUAL TABLE passages USING fts5(
  text, session UNINDEXED, turn UNINDEXED, at UNINDEXED, who UNINDEXED, shown UNINDEXED,
  tokenize = "unicode61 remove_diacritics 2"
);
-- Passages of notes, people and models, with their embeddings if there are any.
CREATE TABLE vectors(
  passage INTEGER PRIMARY KEY, session TEXT NOT NULL, hash BLOB NOT NULL,
  signature BLOB, vector BLOB
);
CREATE INDEX vectors_session ON vectors(session);
CREATE TABLE embedding(model TEXT NOT NULL);
"""
# Calls and results are many, and can be found by words.
_EMBEDDED_SPEAKERS = frozenset({"user", "agent"})
_MAX_RANKED = 32  # passages of each ranking that are combined
_RANK_BASE = 60  # https://doi.org/10.1145/1571941.1572114, reciprocal rank fusion
# Scripts without spaces between words: each character becomes a word.
_UNSPACED_SCRIPTS = re.compile(
    r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
)
_TERMS = re.compile(r'"([^"]+)"|(\S+)')
_WORD = re.compile(r"\w")
_Row = tuple[str, str, int, int, str, str]  # a row of `passages`


class PastSession(Struct, frozen=True, kw_only=True):
    """A session in the list of sessions; `updated` is in milliseconds since 1970 (UTC)."""

    id: str
    title: str
    updated: int


class SearchResult(Struct, frozen=True, kw_only=True):
    """A search result: a note (`session` is "") or a passage of a session.

    `speaker` is the note's name, or the speaker. `at` is in milliseconds since 1970 (UTC).
    """

    session: str
    title: str
    turn: int
    at: int
    speaker: str
    text: str


class SearchIndex:
    """The index of one project. All methods block: call them in a thread."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def missing(self, sessions: Sequence[PastSession]) -> Sequence[PastSession]:
        """Return the sessions that are missing or outdated in the index; remove deleted ones.

        Raises:
            WorkspaceError: the index cannot be used.
        """
        with self.open_transaction() as db:
            indexed = dict(db.execute("SELECT id, updated FROM sessions").fetchall())
            deleted_ids = set(indexed) - {past.id for past in sessions}
            for session in deleted_ids:
                _replace_passages(db, session, ())
                db.execute("DELETE FROM sessions WHERE id = ?", (session,))
            return [past for past in sessions if indexed.get(past.id) != past.updated]

    def add(self, session: PastSession, journal: Sequence[DatedEvent]) -> None:
        """Add or replace a session. Raises WorkspaceError if the index cannot be used."""
        session_passages = passages(journal, without=SessionSearchTool.name)
        with self.open_transaction() as db:
            _replace_passages(
                db, session.id, [_row(session.id, passage) for passage in session_passages]
            )
            record = (session.id, session.updated, session.title)
            db.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?)", record)

    def replace_notes(self, notes: Sequence[Note]) -> None:
        """Replace all notes. Raises WorkspaceError if the index cannot be used."""
        with self.open_transaction() as db:
            rows = [
                (
                    _separate_characters(note.text),
                    "",
                    0,
                    note.changed,
                    f"{note.scope} {note.name}",
                    note.text,
                )
                for note in notes
            ]
            _replace_passages(db, "", rows)

    def find(self, words: str, limit: int, nearest: Sequence[int] = ()) -> Sequence[SearchResult]:
        """Return the passages and notes that contain any of the words, best first.

        Args:
            words: the words to search for; a phrase may be in double quotes.
            limit: the maximum number of results.
            nearest: passages with a near meaning, nearest first; they are ranked with the others.

        Raises:
            WorkspaceError: the index cannot be used.
        """
        query = _query(words)
        with self.open_transaction() as db:
            rankings = [_matches(db, query) if query else [], nearest[:_MAX_RANKED]]
            scores: dict[int, float] = {}
            for ranking in rankings:
                for rank, passage in enumerate(ranking, 1):
                    scores[passage] = scores.get(passage, 0.0) + 1 / (_RANK_BASE + rank)
            best = sorted(scores, key=lambda passage_id: -scores[passage_id])[:limit]
            return [hit for passage_id in best for hit in _read_hits(db, passage_id)]

    @contextmanager
    def open_transaction(self) -> Iterator[sqlite3.Connection]:
        """Open the index for one transaction."""
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
    """Create missing tables.

    Raises:
        sqlite3.Error: the file is damaged, or has tables of another version.
    """
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version not in {0, _VERSION}:
        raise sqlite3.DatabaseError(f"the index has version {version}")
    if not version:
        db.executescript(f"BEGIN IMMEDIATE;{_TABLES}PRAGMA user_version={_VERSION};COMMIT;")
    db.execute("SELECT count(*) FROM sessions, passages")


def _matches(db: sqlite3.Connection, query: str) -> list[int]:
    # Notes are written to be found. Results are long, and less informative than what people say.
    rows = db.execute(
        "SELECT rowid, bm25(passages) * CASE WHEN session = '' THEN 2.0 WHEN who = 'user' THEN 1.4"
        " WHEN who = 'agent' THEN 1.2 WHEN who = 'result' THEN 0.7 ELSE 1.0 END AS score"
        " FROM passages WHERE passages MATCH ? ORDER BY score, at DESC LIMIT ?",
        (query, _MAX_RANKED),
    )
    return [passage for passage, _ in rows]


def _read_hits(db: sqlite3.Connection, passage: int) -> list[SearchResult]:
    """Return a passage; an empty list if another process has just replaced it."""
    rows = db.execute(
        "SELECT session, coalesce(title, ''), turn, at, who, shown"
        " FROM passages LEFT JOIN sessions ON sessions.id = session WHERE passages.rowid = ?",
        (passage,),
    )
    return [
        SearchResult(session=session, title=title, turn=turn, at=at, speaker=speaker, text=text)
        for session, title, turn, at, speaker, text in rows
    ]


def _replace_passages(db: sqlite3.Connection, session: str, rows: Sequence[_Row]) -> None:
    """Replace the passages of a session; embeddings of unchanged texts are kept."""
    vectors: dict[bytes, tuple[bytes, bytes]] = {
        digest: (signature, vector)
        for digest, signature, vector in db.execute(
            "SELECT hash, signature, vector FROM vectors"
            " WHERE session = ? AND signature IS NOT NULL",
            (session,),
        )
    }
    db.execute("DELETE FROM passages WHERE session = ?", (session,))
    db.execute("DELETE FROM vectors WHERE session = ?", (session,))
    for row in rows:
        cursor = db.execute("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?)", row)
        if not session or row[4] in _EMBEDDED_SPEAKERS:
            digest = hashlib.sha256(row[5].encode("utf-8", "replace")).digest()
            db.execute(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?, ?)",
                (cursor.lastrowid, session, digest, *vectors.get(digest, (None, None))),
            )


def _row(session: str, passage: Passage) -> _Row:
    text = passage.text[:_MAX_INDEXED_LENGTH]
    return _separate_characters(text), session, passage.turn, passage.at, passage.speaker, text


def _separate_characters(text: str) -> str:
    return _UNSPACED_SCRIPTS.sub(r" \1 ", text)


def _query(words: str) -> str:
    """Return the words as an FTS5 query: each in quotes, so that none is an operator."""
    terms = dict.fromkeys(phrase or word for phrase, word in _TERMS.findall(words))
    quoted = [
        _separate_characters(term).replace('"', " ").strip() for term in terms if _WORD.search(term)
    ]
    return " OR ".join(f'"{term}"' for term in quoted)
