"""Messages for SQLite errors and system errors."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

from acp_agent.errors import StoreDamagedError, StoreError
from acp_agent.platform.descriptor_limit import explain_descriptor_limit

BUSY_SECONDS = 5.0  # how long to wait for another process that writes

# We never write a row that is too large, or one that exists: a length or the order is damaged.
# Newer versions of SQLite report a page behind the file's end as a read that was too short.
_DAMAGED = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_CONSTRAINT,
}
# Our statements are correct: if a name does not exist, the schema table is damaged. SQLite has
# had one file format since 2006.
_DAMAGE_MESSAGES = (
    "unsupported file format",
    "no such ",
    "table sessions has no ",
    "table events has no ",
    "table usage has no ",
)
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
UNWRITABLE = {
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
}


def primary_code(error: sqlite3.Error) -> int:
    """Return the error's primary code (https://sqlite.org/rescode.html); 0 if it has none."""
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else 0


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether the error means that the file is damaged, not just inaccessible."""
    return (
        primary_code(error) in _DAMAGED
        or getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_IOERR_SHORT_READ
        or str(error).startswith(_DAMAGE_MESSAGES)
    )


def damage_error(path: Path, why: str) -> StoreDamagedError:
    """Return the error for a damaged journal, with advice."""
    return StoreDamagedError(
        f"the journal {path} is damaged ({_one_line(why)}) and was left as it is; run "
        "`acp-agent sessions repair`, which keeps it under another name and takes out of it what "
        "can be read"
    )


def store_error(error: sqlite3.Error, path: Path) -> StoreError:
    """Return an error that explains `error` to the user of the journal at `path`."""
    code = primary_code(error)
    limited = explain_descriptor_limit(error)
    if limited is not None:
        why = limited
    elif is_damage(error):
        return damage_error(path, str(error))
    elif code in _BUSY:
        why = f"another process kept it locked for {BUSY_SECONDS:.0f} seconds; try again"
    elif code == sqlite3.SQLITE_FULL:
        why = "the disk is full; free some space and try again"
    elif code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}:
        why = "it cannot be written; check the permissions of the file and of its folder"
    elif code == sqlite3.SQLITE_CANTOPEN:
        why = "it cannot be opened; check that its folder exists and who may write there"
    elif code == sqlite3.SQLITE_IOERR:
        why = "the disk refused to read or write it; check its space, its limits and its health"
    else:
        why = _one_line(str(error))
    return StoreError(f"the journal {path} failed: {why}")


def describe_system_error(error: OSError) -> str:
    """Return a description of a system error for one of our files or folders, with advice."""
    limited = explain_descriptor_limit(error)
    if limited is not None:
        return limited
    why = error.strerror or type(error).__name__
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return f"{why}; free some space and try again"
        case errno.EROFS:
            return f"{why}; set ACP_AGENT_HOME to a folder that can be written"
        case _:
            return f"{why}; check the folder and its permissions"


def _one_line(text: str) -> str:
    return " ".join(text.split())
