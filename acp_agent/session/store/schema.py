"""Tables of the journal, and migrations from older versions.

A migration only adds: processes of the older version may have the journal open and keep writing.
"""

from __future__ import annotations

import sqlite3

# Marks the file as ours, in its header (https://sqlite.org/fileformat.html, offset 68): "ACPA".
APPLICATION_ID = 0x41435041

Migration = tuple[str, ...]

# The statements at index n upgrade version n to n + 1; a new journal runs them all.
MIGRATIONS: tuple[Migration, ...] = (
    (
        # All columns except `id` and `last_seq` are derived from the session's events.
        """
        CREATE TABLE sessions (
            key INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            cwd TEXT NOT NULL,
            directories TEXT NOT NULL,
            title TEXT,
            created_at INTEGER NOT NULL,
            updated_at INTEGER NOT NULL,
            turns INTEGER NOT NULL DEFAULT 0,
            last_seq INTEGER NOT NULL DEFAULT 0
        )
        """,
        "CREATE INDEX sessions_by_time ON sessions (updated_at, id)",
        # `place` combines the session's key and the event's number (see `SEQ_BITS`): the events of
        # a session are adjacent, and appending an event splits no page.
        """
        CREATE TABLE events (
            place INTEGER PRIMARY KEY,
            at INTEGER NOT NULL,
            body TEXT NOT NULL
        )
        """,
    ),
    # Whether lists leave the session out. It is no part of the conversation, so no event has it.
    ("ALTER TABLE sessions ADD COLUMN archived INTEGER NOT NULL DEFAULT 0",),
    (
        # Token usage of model requests; `cost` in US dollars, NULL if unknown. These rows are not
        # derived from the events: they stay when the session is deleted.
        """
        CREATE TABLE usage (
            at INTEGER NOT NULL,
            session TEXT NOT NULL,
            cwd TEXT NOT NULL,
            model TEXT NOT NULL,
            input INTEGER NOT NULL,
            output INTEGER NOT NULL,
            cache_read INTEGER NOT NULL,
            cache_write INTEGER NOT NULL,
            reasoning INTEGER NOT NULL,
            cost REAL
        )
        """,
        "CREATE INDEX usage_by_time ON usage (at)",
        # Fill the table from existing sessions; events copied by a fork are older than the fork.
        """
        INSERT INTO usage
        SELECT events.at, id, cwd, json_extract(body, '$.model'),
            coalesce(json_extract(body, '$.usage.input'), 0),
            coalesce(json_extract(body, '$.usage.output'), 0),
            coalesce(json_extract(body, '$.usage.cache_read'), 0),
            coalesce(json_extract(body, '$.usage.cache_write'), 0),
            coalesce(json_extract(body, '$.usage.reasoning'), 0),
            NULL
        FROM events JOIN sessions ON key = place >> 32
        WHERE body LIKE '{"event":"model_answered"%' AND events.at >= created_at
            AND json_extract(body, '$.usage') IS NOT NULL
        """,
    ),
    # Whether the user changed a setting, so that the session is listed before its first turn.
    ("ALTER TABLE sessions ADD COLUMN configured INTEGER NOT NULL DEFAULT 0",),
)


class Identity:
    """The program and version that wrote a file, from its header, and whether it is empty."""

    __slots__ = ("application_id", "empty", "version")

    def __init__(self, connection: sqlite3.Connection) -> None:
        # In one transaction, as another process may initialise the file between the queries.
        owns_transaction = not connection.in_transaction
        if owns_transaction:
            connection.execute("BEGIN")
        try:
            self.application_id = _number(connection, "PRAGMA application_id")
            self.version = _number(connection, "PRAGMA user_version")
            objects = _number(connection, "SELECT count(*) FROM sqlite_master")
        finally:
            if owns_transaction:
                connection.execute("ROLLBACK")
        self.empty = not (self.application_id or self.version or objects)


def _number(connection: sqlite3.Connection, query: str) -> int:
    return int(connection.execute(query).fetchone()[0])


def migrate(connection: sqlite3.Connection, migrations: tuple[Migration, ...]) -> None:
    """Upgrade an empty or older journal in one transaction.

    The header is set in the same transaction as the tables, so no file is ever half a journal.
    Another process may do the same at this moment; the second one finds nothing to do.
    """
    connection.execute("BEGIN EXCLUSIVE")
    try:
        identity = Identity(connection)
        if identity.empty or identity.application_id == APPLICATION_ID:
            for migration in migrations[identity.version :]:
                for statement in migration:
                    connection.execute(statement)
            if identity.version < len(migrations):
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {len(migrations)}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
