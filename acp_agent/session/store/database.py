"""Open the journal's file: check its owner and version, create it, fall back to read-only.

A file is not changed before it is known to be a journal of a version that this program can write.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from acp_agent.errors import StoreDamagedError, StoreError, StoreNewerError
from acp_agent.session.store.schema import APPLICATION_ID, MIGRATIONS, Identity, Migration, migrate
from acp_agent.session.store.sqlite_errors import (
    BUSY_SECONDS,
    UNWRITABLE,
    damage_error,
    describe_system_error,
    primary_code,
    store_error,
)

_MAX_VERSION = 1 << 16  # no program will ever write so many versions
MAX_ROW_BYTES = 1 << 28  # bytes; an event is never half as large
_SETTINGS = (
    # A commit is with the operating system when it returns and survives the death of the process;
    # docs/decisions/journal.md explains this.
    "PRAGMA synchronous = NORMAL",
    "PRAGMA cache_size = -512",  # KiB; the operating system's cache does the rest
    "PRAGMA journal_size_limit = 4194304",  # a large write must not leave a large log behind
    "PRAGMA secure_delete = ON",  # a deleted conversation is erased from the file
    "PRAGMA temp_store = MEMORY",
)


class Database:
    """An open journal, which may be read-only."""

    __slots__ = ("_file", "connection", "read_only")

    def __init__(self, connection: sqlite3.Connection, path: Path, *, read_only: bool) -> None:
        self.connection = connection
        self.read_only = read_only
        self._file = path.stat()

    def in_place(self, path: Path) -> bool:
        """Return whether the open file is still at `path`; writes to a removed file are lost."""
        try:
            return os.path.samestat(self._file, path.stat())
        except OSError:
            return False


def open_database(path: Path, *, migrations: tuple[Migration, ...] = MIGRATIONS) -> Database:
    """Open the journal at `path`; create it, with access for its owner only, if there is none.

    A journal that exists but cannot be written is opened read-only.

    Raises:
        StoreDamagedError: the file is not a journal, or is damaged.
        StoreNewerError: a newer version of the program wrote it.
        StoreError: it cannot be opened or created.
    """
    try:
        _create_file(path)
        _check_file(path, len(migrations))
        try:
            return Database(_open_to_write(path, migrations), path, read_only=False)
        except sqlite3.Error as error:
            if primary_code(error) not in UNWRITABLE or not path.stat().st_size:
                raise
            return Database(_open_to_read(path, len(migrations)), path, read_only=True)
    except sqlite3.Error as error:
        raise store_error(error, path) from error
    except UnicodeDecodeError as error:  # SQLite's message contains a damaged name
        raise damage_error(path, "a name in it is not UTF-8") from error
    except OSError as error:
        raise StoreError(
            f"the journal {path} cannot be opened: {describe_system_error(error)}"
        ) from error


def _create_file(path: Path) -> None:
    """Create an empty file that only its owner can read, unless there is a file."""
    if has_log(path, "-wal") and is_missing(path):
        raise StoreDamagedError(
            f"the journal {path} is missing or empty, but its log {path.name}-wal is still there; "
            "run `acp-agent sessions repair`, which saves the log under another name and recovers "
            "what is readable, or put the journal back"
        )
    folder = path.parent
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    if path.exists():
        if not path.is_file():
            raise StoreError(f"the journal {path} cannot be opened: it is not a file")
        # Never open and close the file of a database by hand: POSIX would release the locks that
        # SQLite holds on it in this process (https://sqlite.org/howtocorrupt.html, 2.2).
        return
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return  # another process created it first


def _check_file(path: Path, version: int) -> None:
    """Raise for a file that is not a journal or has a newer version, without changing it.

    The file is opened as immutable, which takes no locks and creates no files. It may be read while
    another process writes, so a bad result is checked a second time. If a log beside the file has
    more data, the later open decides.
    """
    for is_last in (False, True):
        try:
            with closing(_connect(path, "mode=ro&immutable=1")) as connection:
                identity = Identity(connection)
            if not (identity.empty and _is_blank(path)):
                _check_identity(identity, path, version)
            return
        except StoreDamagedError:
            if is_last:
                raise
        except sqlite3.DatabaseError:
            if has_log(path, "-wal", "-journal"):
                return
            if is_last:
                raise
        time.sleep(0.01)


def is_foreign_database(path: Path) -> bool:
    """Return whether a file is an intact database of another program."""
    try:
        with closing(_connect(path, "mode=ro&immutable=1")) as connection:
            identity = Identity(connection)
            sound = connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    except (sqlite3.Error, UnicodeDecodeError):
        return False
    return sound and not identity.empty and identity.application_id != APPLICATION_ID


def is_missing(path: Path) -> bool:
    """Return whether the journal is missing or empty; a journal with a log is never empty."""
    try:
        return not path.stat().st_size
    except FileNotFoundError:
        return True


def _is_blank(path: Path) -> bool:
    """Return whether a file in which SQLite finds nothing may become a journal.

    SQLite takes a file of one byte for an empty one. Tables that are only in a log belong to
    another program: our header is in the file itself before there is a log.
    """
    return path.stat().st_size != 1 and not has_log(path, "-wal")


def _check_identity(identity: Identity, path: Path, version: int) -> None:
    if identity.application_id != APPLICATION_ID:
        raise StoreDamagedError(
            f"{path} is not a journal of acp-agent and was left as it is; move it away, or let "
            "the journal have another place; if it was one, run `acp-agent sessions repair`"
        )
    if identity.version > _MAX_VERSION or identity.version < 0:
        raise damage_error(path, "it has no version")
    if identity.version > version:
        raise StoreNewerError(
            f"a newer version of acp-agent wrote the journal {path} (its format is "
            f"{identity.version}, this one knows {version}); update acp-agent. The file was not "
            "changed"
        )
    if identity.version == 0:
        raise damage_error(path, "it has no version")


def has_log(path: Path, *suffixes: str) -> bool:
    """Return whether a file beside it with one of the suffixes is not empty."""
    for suffix in suffixes:
        try:
            if path.with_name(path.name + suffix).stat().st_size:
                return True
        except OSError:
            continue
    return False


def _open_to_write(path: Path, migrations: tuple[Migration, ...]) -> sqlite3.Connection:
    connection = _connect(path, "mode=rw")
    try:
        identity = Identity(connection)
        if not identity.empty:
            _check_identity(identity, path, len(migrations))
        if identity.version < len(migrations):
            migrate(connection, migrations)
            # The header of the file itself must have the version, not only the log.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            _check_identity(Identity(connection), path, len(migrations))
        _use_log(connection)
        for setting in _SETTINGS:
            connection.execute(setting)
    except BaseException:
        connection.close()
        raise
    return connection


def checkpoint(connection: sqlite3.Connection) -> None:
    """Move the log into the file, as far as other processes that read or write allow.

    Raises:
        sqlite3.Error: the file cannot be written.
    """
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    connection.execute("PRAGMA busy_timeout = 0")  # do not wait for the log to become empty
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}")


def _open_to_read(path: Path, version: int) -> sqlite3.Connection:
    """Open without writing; as an immutable file if no log can be created beside it."""
    try:
        return _open_checked(path, "mode=ro", version)
    except sqlite3.Error:
        if has_log(path, "-wal", "-journal"):
            raise  # data in the log would be missing
    return _open_checked(path, "mode=ro&immutable=1", version)


def _open_checked(path: Path, query: str, version: int) -> sqlite3.Connection:
    connection = _connect(path, query)
    try:
        _check_identity(Identity(connection), path, version)
    except BaseException:
        connection.close()
        raise
    return connection


def _use_log(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging, which the file remembers after the first time."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            # SQLite does not wait for other processes when the mode changes.
            if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
            continue
        if mode == "wal":
            return
        raise sqlite3.OperationalError(f"this file system cannot keep the log it needs ({mode})")


def _connect(path: Path, query: str) -> sqlite3.Connection:
    """Return a connection without implicit transactions (`isolation_level` None)."""
    name = str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    connection = sqlite3.connect(
        f"file:{name}?{query}", uri=True, timeout=BUSY_SECONDS, isolation_level=None
    )
    # A damaged length must not exhaust the memory.
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_ROW_BYTES)
    return connection
