"""What the journal gives back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from acp_agent.events import AnyEvent
from acp_agent.ids import SessionId

# Which sessions a list has: those that are not archived, all, or those that are.
ArchiveFilter = Literal["exclude", "include", "only"]


class SessionRecord(Struct, frozen=True, kw_only=True):
    """What is known of a session without reading its events.

    `created_at` and `updated_at` are milliseconds since 1970 (UTC); `turns` counts those begun;
    `archived` says that lists leave it out.
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
    """An event of a kind, or of a shape, that this version does not know.

    `raw` is its JSON as it stands in the journal, so that a newer version loses nothing by a
    session having been open in this one.
    """

    tag: str
    raw: bytes


class StoredEvent(Struct, frozen=True, gc=False):
    """An event with its place in the session, counted from 1, and its time.

    `at` is in milliseconds since 1970 (UTC).
    """

    seq: int
    at: int
    event: AnyEvent | UnknownEvent


def known_events(stored: Sequence[StoredEvent]) -> list[AnyEvent]:
    """The events, mended where something cannot be read; see `acp_agent.session.store.mending`."""
    known = [item.event for item in stored if not isinstance(item.event, UnknownEvent)]
    if len(known) == len(stored):
        return known
    return [item.event for item in readable(stored) if not isinstance(item.event, UnknownEvent)]


def readable(stored: Sequence[StoredEvent]) -> Sequence[StoredEvent]:
    """The same with their places and times."""
    if not any(isinstance(item.event, UnknownEvent) for item in stored):
        return stored
    from acp_agent.session.store.mending import mended  # noqa: PLC0415 - rarely needed

    return mended(stored)
