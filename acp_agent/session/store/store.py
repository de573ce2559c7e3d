"""The journal: the events of all sessions, in one SQLite file that several processes share.

Every call returns when its work is done: events are committed when `append` returns, and survive
the death of the process. The event loop never waits for the disk; a thread does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING, TypeVar

from acp_agent.errors import SessionError
from acp_agent.events import AnyEvent, SessionStarted
from acp_agent.ids import SessionId
from acp_agent.session.store import database, write_queries
from acp_agent.session.store.event_codec import merge_adjacent, replace_surrogates
from acp_agent.session.store.lease import Lease, sweep, take_lease
from acp_agent.session.store.records import (
    ArchiveFilter,
    SessionPage,
    SessionRecord,
    StoredEvent,
    UnknownEvent,
)
from acp_agent.session.store.worker import Worker, WriteChain
from acp_agent.session.store.write_queries import JournalEntry

if TYPE_CHECKING:
    from acp_agent.session.store.check import CheckResult
    from acp_agent.session.store.usage import By, SpentTotal, UsageRow

T = TypeVar("T")


def _now() -> int:
    return time.time_ns() // 1_000_000


class Store:
    """The journal of all sessions. Open it with `Store.open`, in the event loop that uses it."""

    def __init__(self, worker: Worker, clock: Callable[[], int]) -> None:
        self._worker = worker
        self._clock = clock
        self._chains: dict[SessionId, WriteChain] = {}

    @classmethod
    async def open(cls, path: Path, *, clock: Callable[[], int] = _now) -> Store:
        """Open the journal at `path`, or create it with access for its owner only.

        Args:
            path: The file; its folder is created too.
            clock: Returns the time in milliseconds since 1970.

        Raises:
            StoreDamagedError: the file is not a journal, or is damaged; it is not changed.
            StoreNewerError: a newer version of the program wrote it; it is not changed.
            StoreError: it cannot be opened.
        """
        worker = Worker(path, asyncio.get_running_loop())
        await worker.start()
        store = cls(worker, clock)
        worker.schedule(lambda _: sweep(store._locks))
        return store

    @property
    def path(self) -> Path:
        """The journal's file, with links resolved."""
        return self._worker.path

    async def create(
        self, session_id: SessionId, events: Sequence[AnyEvent | UnknownEvent]
    ) -> None:
        """Create a session with its first events, atomically.

        Raises:
            SessionError: the id is taken, or the first event is not `SessionStarted`.
            InvalidInputError: an event cannot be stored.
            StoreError: it could not be written.
        """
        if not events or not isinstance(events[0], SessionStarted):
            raise SessionError(f"the session {session_id} must begin with its start")
        entry = JournalEntry(merge_adjacent(events), self._clock())
        await self._write(session_id, lambda db: write_queries.create(db, session_id, entry))

    async def fork(
        self,
        session_id: SessionId,
        source: SessionId,
        copied: Sequence[StoredEvent],
        events: Sequence[AnyEvent],
    ) -> None:
        """Create a session from the first events of another, followed by new events.

        Args:
            source: the other session; it may be written meanwhile.
            copied: the events of `source`, from the first one on, that the new session begins with.

        Raises:
            SessionError: the id is taken.
            SessionNotFoundError: there is no such source.
            InvalidInputError: an event cannot be stored.
            StoreError: it could not be written; no session was created.
        """
        source = _stored_id(source)
        entry = JournalEntry(
            merge_adjacent(events), self._clock(), earlier=[item.event for item in copied]
        )
        last = copied[-1].seq
        await self._write(
            session_id, lambda db: write_queries.fork(db, session_id, source, last, entry)
        )

    async def append(
        self, session_id: SessionId, events: Sequence[AnyEvent | UnknownEvent]
    ) -> None:
        """Append all of the events to a session or none; they are committed when this returns.

        Calls for one session keep their order, even if they are not awaited one by one. If one of
        several pending calls fails, the later ones fail too, so that the journal has no holes.

        Raises:
            SessionNotFoundError: there is no such session.
            InvalidInputError: an event cannot be stored.
            StoreError: they could not be written; earlier events are safe.
        """
        if not events:
            return
        session_id = _stored_id(session_id)
        entry = JournalEntry(merge_adjacent(events), self._clock())
        await self._write(session_id, lambda db: write_queries.append(db, session_id, entry))

    async def read(
        self, session_id: SessionId, *, after: int = 0
    ) -> AsyncIterator[list[StoredEvent]]:
        """Yield batches of the events after number `after` that exist at the time of the call.

        `records.DamagedEvent`s replace missing or damaged events.

        Raises:
            SessionNotFoundError: there is no such session, or it was deleted meanwhile.
            StoreError: they could not be read.
        """
        session_id = _stored_id(session_id)
        after = max(after, 0)
        from acp_agent.session.store import read_queries  # noqa: PLC0415 - a new session reads nothing

        key, last = await self._worker.run(lambda db: write_queries.find_last_event(db, session_id))
        while after < last:
            start = after
            batch = await self._worker.run(
                lambda db: read_queries.read(db, key, start, last)  # noqa: B023 - awaited here
            )
            if not batch:
                await self._worker.run(lambda db: write_queries.find_last_event(db, session_id))
                from acp_agent.session.store.damaged_events import missing_events  # noqa: PLC0415 - rarely needed

                yield [missing_events(after + 1, last)]
                return
            yield batch
            after = batch[-1].seq
            if isinstance(batch[-1].event, UnknownEvent):
                from acp_agent.session.store.damaged_events import last_seq  # noqa: PLC0415 - rare

                after = last_seq(batch[-1])

    async def read_all(self, session_id: SessionId, *, after: int = 0) -> list[StoredEvent]:
        """Return the events of a session after number `after`; see `read`."""
        events: list[StoredEvent] = []
        async for batch in self.read(session_id, after=after):
            events += batch
        return events

    async def get(self, session_id: SessionId) -> SessionRecord:
        """Return the record of a session. Raises SessionNotFoundError, StoreError."""
        session_id = _stored_id(session_id)
        from acp_agent.session.store import read_queries  # noqa: PLC0415 - see `read`

        return await self._worker.run(lambda db: read_queries.get(db, session_id))

    async def find_by_prefix(self, name: str, *, limit: int) -> Sequence[SessionRecord]:
        """Return the sessions whose ids begin with `name`, including archived ones, newest first.

        Raises:
            StoreError: they could not be read.
        """
        from acp_agent.session.store import read_queries  # noqa: PLC0415 - see `read`

        text = replace_surrogates(name)
        return await self._worker.run(lambda db: read_queries.find_by_prefix(db, text, limit))

    async def list(
        self,
        *,
        cwd: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
        with_empty: bool = False,
        archived: ArchiveFilter = "exclude",
    ) -> SessionPage:
        """Return a page of sessions, last written first.

        A cursor is a position in that order: sessions that are created or written while a client
        turns pages come before it and neither repeat nor shift the sessions that follow.

        Args:
            cwd: Only sessions in exactly this folder.
            cursor: `next_cursor` of the previous page.
            limit: Sessions on a page, 1 to 1000.
            with_empty: Include sessions without a turn that the user neither named nor configured.
            archived: Whether to exclude archived sessions, include them, or return only them.

        Raises:
            InvalidInputError: the cursor or the limit cannot be used.
            StoreError: the list could not be read.
        """
        folder = None if cwd is None else replace_surrogates(cwd)
        from acp_agent.session.store import read_queries  # noqa: PLC0415 - see `read`

        return await self._worker.run(
            lambda db: read_queries.page(
                db, cwd=folder, cursor=cursor, limit=limit, with_empty=with_empty, archived=archived
            )
        )

    async def spent_since(self, at: int, until: int | None = None) -> SpentTotal:
        """Return usage and cost in all sessions from a moment on (ms since 1970).

        Args:
            until: the end, exclusive; None: no end.

        Raises:
            StoreError: it could not be read.
        """
        from acp_agent.session.store.usage import spent_since  # noqa: PLC0415 - only with budgets

        return await self._worker.run(lambda db: spent_since(db, at, until))

    async def usage_since(
        self,
        at: int,
        *,
        by: Collection[By] = ("time", "project", "model"),
        separate: Collection[str] | None = None,
    ) -> Sequence[UsageRow]:
        """Return usage grouped by quarter of an hour, project and model, or by some of these.

        Args:
            at: the start, in ms since 1970.
            by: the columns to group by.
            separate: the models whose requests without a price get a row each; None: all models.

        Raises:
            StoreError: it could not be read.
        """
        from acp_agent.session.store.usage import usage_since  # noqa: PLC0415 - for a report only

        return await self._worker.run(lambda db: usage_since(db, at, by=by, separate=separate))

    async def decisions_since(self, at: int) -> Sequence[Sequence[AnyEvent]]:
        """Return the events about permissions from a moment on (ms since 1970), grouped by session.

        Raises:
            StoreError: they could not be read.
        """
        from acp_agent.session.store.usage import decisions_since  # noqa: PLC0415 - for a report only

        return await self._worker.run(lambda db: decisions_since(db, at))

    async def archive(self, session_id: SessionId, *, archived: bool = True) -> None:
        """Archive a session, which hides it in lists, or unarchive it.

        Raises:
            SessionNotFoundError: there is no such session.
            StoreError: it could not be written.
        """
        session_id = _stored_id(session_id)
        await self._write(
            session_id, lambda db: write_queries.archive(db, session_id, archived=archived)
        )

    async def delete(self, session_id: SessionId) -> bool:
        """Delete a session and all its events; return false if there is none. Raises StoreError."""
        session_id = _stored_id(session_id)
        return await self._write(session_id, lambda db: write_queries.delete(db, session_id))

    def lease(self, session_id: SessionId) -> Lease:
        """Take the exclusive right to write a session, across processes.

        The store does not check the lease: callers take it before they write to an existing
        session. `Lease.release` and any end of the process, `kill -9` included, free it.

        Raises:
            SessionBusyError: another process, or another caller in this one, holds it.
            StoreError: the folder of the lock files cannot be written.
        """
        return take_lease(self._locks, session_id)

    async def check_sessions(self) -> CheckResult:
        """Read every event and return the sessions in which some cannot be read.

        Raises:
            StoreError: the file could not be read.
        """
        from acp_agent.session.store.check import check_sessions  # noqa: PLC0415 - rarely needed

        return await self._worker.run(check_sessions)

    async def check(self) -> tuple[str, ...]:
        """Return the damage in the file itself, one line each; empty if there is none.

        Raises:
            StoreError: it could not be read at all.
        """
        from acp_agent.session.store.check import check_file  # noqa: PLC0415 - rarely needed

        return await self._worker.run(check_file)

    async def checkpoint(self) -> None:
        """Move the log into the file, as far as possible without waiting for other processes.

        Raises:
            StoreError: the file could not be written.
        """
        await self._worker.run(database.checkpoint)

    async def close(self) -> None:
        """Write what is still pending, and close the file. Closing twice does nothing."""
        await self._worker.stop()

    @property
    def _locks(self) -> Path:
        return self.path.parent / "locks"

    async def _write(self, session_id: SessionId, run: Callable[[Connection], T]) -> T:
        chain = self._chains.get(session_id)
        if chain is None:
            chain = self._chains[session_id] = WriteChain(
                session_id, lambda ended: self._forget(session_id, ended)
            )
        return await self._worker.run(run, chain)

    def _forget(self, session_id: SessionId, chain: WriteChain) -> None:
        if self._chains.get(session_id) is chain:
            del self._chains[session_id]


def _stored_id(session_id: SessionId) -> SessionId:
    """Return the id as stored, with lone surrogates replaced."""
    return SessionId(replace_surrogates(session_id))
