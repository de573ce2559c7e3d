"""Types that the journal returns."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from acp_agent.events import AnyEvent
from acp_agent.ids import SessionId

LATEST = 253_402_300_799_999  # ms since 1970: the last moment of the year 9999
# SQL for the time of an event. A damaged row may have a text there that is not UTF-8, which Python
# refuses to return.
EVENT_TIME = "CASE typeof(at) WHEN 'integer' THEN at END"

# Which sessions a list contains: those not archived, all, or only archived ones.
ArchiveFilter = Literal["exclude", "include", "only"]
Damage = Literal["broken", "missing", "unreadable"]


class SessionRecord(Struct, frozen=True, kw_only=True):
    """The data of a session that is known without reading its events.

    `created_at` and `updated_at` are milliseconds since 1970 (UTC); `turns` counts started turns;
    `archived` sessions are left out of lists.
    """

    id: SessionId
    cwd: str
    directories: tuple[str, ...] = ()
    title: str | None = None
    created_at: int
    updated_at: int
    turns: int = 0
    archived: bool = False


class SessionPage(Struct, frozen=True, kw_only=True):
    """A page of the list of sessions. `next_cursor` is None on the last page."""

    sessions: list[SessionRecord]
    next_cursor: str | None = None


class UnknownEvent(Struct, frozen=True):
    """An event whose kind or format this version does not know.

    `raw` is its JSON from the journal, so that newer versions can still read it.
    """

    tag: str
    raw: bytes


class DamagedEvent(UnknownEvent, frozen=True, kw_only=True):
    """Placeholder for one event, or `count` neighbours, that cannot be read.

    `tag` is the kind, if known, and `raw` the bytes in the journal. `why` is `broken` if the bytes
    are not an event, `missing` if the row is gone, and `unreadable` if the file cannot be read
    there.
    """

    why: Damage
    count: int = 1


class StoredEvent(Struct, frozen=True, gc=False):
    """An event with its number in the session, counted from 1, and its time.

    `at` is in milliseconds since 1970 (UTC).
    """

    seq: int
    at: int
    event: AnyEvent | UnknownEvent
