"""The list of sessions, page by page; where a page ends is an opaque text for the client."""

from __future__ import annotations

import base64
import binascii
import hashlib
import sqlite3
from typing import Annotated

import msgspec

from acp_agent.errors import InvalidInputError
from acp_agent.session.store import reading
from acp_agent.session.store.records import ArchiveFilter, SessionPage, SessionRecord

MAX_PAGE = 1000

# When the last session of a page was written, its id, and which list it is a page of.
_Position = tuple[Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)], str, str]

# Before every session: SQLite sorts bytes behind all times, and behind what is in the place of one.
_START = (b"\xff", "")


def page(
    connection: sqlite3.Connection,
    *,
    cwd: str | None,
    cursor: str | None,
    limit: int,
    with_empty: bool,
    archived: ArchiveFilter,
) -> SessionPage:
    """A page of the list; see `Store.list`. It runs inside the transaction of its caller.

    Raises:
        InvalidInputError: the cursor or the limit cannot be used.
    """
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidInputError(f"the limit must be from 1 to {MAX_PAGE}", field="limit")
    selection = _selection(cwd, archived)
    found = reading.page(
        connection,
        cwd=cwd,
        before=_position_of(cursor, selection),
        limit=limit + 1,
        with_empty=with_empty,
        archived=archived,
    )
    more = len(found) > limit
    sessions = found[:limit]
    cursor_after = _cursor_after(sessions[-1], selection) if more else None
    return SessionPage(sessions=sessions, next_cursor=cursor_after)


def _selection(cwd: str | None, archived: ArchiveFilter) -> str:
    """Return a short name for what a list is filtered by, so that a cursor can repeat it."""
    filters = msgspec.json.encode((cwd, archived))
    return hashlib.blake2b(filters, digest_size=9).hexdigest()


def _cursor_after(record: SessionRecord, selection: str) -> str:
    """The cursor of the page that follows `record`."""
    position = msgspec.json.encode((record.updated_at, record.id, selection))
    return base64.urlsafe_b64encode(position).decode()


def _position_of(cursor: str | None, selection: str) -> tuple[int | bytes, str]:
    """The place in the list (`updated_at`, id) that a cursor stands for.

    Raises:
        InvalidInputError: it is not a cursor of ours, or belongs to another list.
    """
    if cursor is None:
        return _START
    try:
        raw = base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True)
        at, session_id, of = msgspec.json.decode(raw, type=_Position)
    except (ValueError, binascii.Error, msgspec.DecodeError) as error:
        raise InvalidInputError(
            "the cursor is not one that session/list gave; leave it out to start at the beginning",
            field="cursor",
        ) from error
    if of != selection:
        raise InvalidInputError(
            "the cursor belongs to a list with another cwd or archived filter; repeat those "
            "filters, or leave the cursor out to start at the beginning",
            field="cursor",
        )
    return at, session_id
