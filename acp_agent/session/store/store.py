"""The journal: the events of all sessions, in one SQLite file that several processes share.

Every call returns when its work is done: what `append` returned for is committed and survives the
death of the process. The event loop never waits for the disk; one thread does.
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
    from acp_agent.session.store.integrity_check import CheckResult
    from acp_agent.session.store.last_write import LostWrite
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
        """Open the journal at `path`, or create it for its owner only.

        Args:
            path: The file; its folder is made too.
            clock: The time in milliseconds since 1970.

        Raises:
            StoreDamagedError: the file is not a journal, or is broken; it is left as it is.
            StoreNewerError: a newer version of the program wrote it; it is left as it is.
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
            InvalidInputError: an event cannot be kept.
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
        """Create a session from the first events of another, followed by events of its own.

        Args:
            session_id: the new session.
            source: the other one; whoever writes it may go on meanwhile.
            copied: its events, from the first on, that the new session begins with.
            events: what follows them.

        Raises:
            SessionError: the id is taken.
            SessionNotFoundError: there is no such source.
            InvalidInputError: an event cannot be kept.
            StoreError: it could not be written; there is no new session then.
        """
        source = _known_text(source)
        entry = JournalEntry(
            merge_adjacent(events), self._clock(), behind=[item.event for item in copied]
        )
        last = copied[-1].seq
        await self._write(
            session_id, lambda db: write_queries.fork(db, session_id, source, last, entry)
        )

    async def append(
        self, session_id: SessionId, events: Sequence[AnyEvent | UnknownEvent]
    ) -> None:
        """Add events to a session, all of them or none; they are committed when this returns.

        Calls of one session keep their order, also when they are not awaited one by one. When one
        of several under way fails, those behind it fail too, so that the journal has no holes.

        Raises:
            SessionNotFoundError: there is no such session.
            InvalidInputError: an event cannot be kept.
            StoreError: they could not be written; what was committed before is safe.
        """
        if not events:
            return
        session_id = _known_text(session_id)
        entry = JournalEntry(merge_adjacent(events), self._clock())
        await self._write(session_id, lambda db: write_queries.append(db, session_id, entry))

    async def read(
        self, session_id: SessionId, *, after: int = 0
    ) -> AsyncIterator[list[StoredEvent]]:
        """Yield the events of a session after number `after`, in batches, as of this moment.

        `records.DamagedEvent`s replace what is missing or broken.

        Raises:
            SessionNotFoundError: there is no such session, or it was deleted meanwhile.
            StoreError: they could not be read.
        """
        session_id = _known_text(session_id)
        after = max(after, 0)
        from acp_agent.session.store import read_queries  # noqa: PLC0415 - a new session reads nothing

        key, last = await self._worker.run(lambda db: write_queries.find_extent(db, session_id))
        while after < last:
            start = after
            batch = await self._worker.run(
                lambda db: read_queries.read(db, key, start, last)  # noqa: B023 - awaited here
            )
            if not batch:
                await self._worker.run(lambda db: write_queries.find_extent(db, session_id))
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
        """Return the record of a session.

        Raises:
            SessionNotFoundError: there is no such session.
            StoreError: it could not be read.
        """
        session_id = _known_text(session_id)
        from acp_agent.session.store import read_queries  # noqa: PLC0415 - see `read`

        return await self._worker.run(lambda db: read_queries.get(db, session_id))

    async def beginning_with(self, name: str, *, limit: int) -> Sequence[SessionRecord]:
        """Return the sessions whose ids begin with `name`, including archived ones, newest first.

        Raises:
            StoreError: they could not be read.
        """
        from acp_agent.session.store import read_queries  # noqa: PLC0415 - see `read`

        text = replace_surrogates(name)
        return await self._worker.run(lambda db: read_queries.beginning_with(db, text, limit))

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

        A cursor is a position in that order: sessions that are new, or written again, while a
        client turns pages come before it and neither repeat nor shift what follows.

        Args:
            cwd: Only sessions of exactly this folder.
            cursor: `next_cursor` of the page before.
            limit: Sessions on a page, 1 to 1000.
            with_empty: Also those without a turn that nobody named or configured.
            archived: Whether those that are archived are left out, among the others, or alone.

        Raises:
            InvalidInputError: the cursor or the limit cannot be used.
            StoreError: the list could not be read.
        """
        folder = None if cwd is None else replace_surrogates(cwd)
        from acp_agent.session.store import read_queries  # noqa: PLC0415 - see `read`

        return await self._worker.run(
            lambda db: read_queries.page(
                db,
                cwd=folder,
                cursor=cursor,
                limit=limit,
                with_empty=with_empty,
                archived=archived,
            )
        )

    async def spent_since(self, at: int, until: int | None = None) -> SpentTotal:
        """Return usage and cost in all sessions from a moment on (ms since 1970).

        Args:
            at: the moment.
            until: the moment from which on nothing counts any more, where there is one.

        Raises:
            StoreError: it could not be read.
        """
        from acp_agent.session.store.usage import spent_since  # noqa: PLC0415 - where budgets are

        return await self._worker.run(lambda db: spent_since(db, at, until))

    async def usage_since(
        self,
        at: int,
        *,
        by: Collection[By] = ("time", "project", "model"),
        apart: Collection[str] | None = None,
    ) -> Sequence[UsageRow]:
        """Return usage grouped by quarter of an hour, project and model, or some of these.

        Args:
            at: the moment.
            by: what to tell apart.
            apart: the models whose requests without a price are a row each; None: all are.

        Raises:
            StoreError: it could not be read.
        """
        from acp_agent.session.store.usage import usage_since  # noqa: PLC0415 - for a report only

        return await self._worker.run(lambda db: usage_since(db, at, by=by, apart=apart))

    async def decisions_since(self, at: int) -> Sequence[Sequence[AnyEvent]]:
        """Return the events about permissions from a moment on, those of each session together.

        Raises:
            StoreError: they could not be read.
        """
        from acp_agent.session.store.usage import decisions_since  # noqa: PLC0415 - for a report only

        return await self._worker.run(lambda db: decisions_since(db, at))

    async def archive(self, session_id: SessionId, *, archived: bool = True) -> None:
        """Archive a session, which hides it in lists, or restore it.

        Raises:
            SessionNotFoundError: there is no such session.
            StoreError: it could not be written.
        """
        session_id = _known_text(session_id)
        await self._write(
            session_id, lambda db: write_queries.archive(db, session_id, archived=archived)
        )

    async def delete(self, session_id: SessionId) -> bool:
        """Remove a session and all its events; false when there is none.

        Raises:
            StoreError: it could not be removed.
        """
        session_id = _known_text(session_id)
        return await self._write(session_id, lambda db: write_queries.delete(db, session_id))

    def lease(self, session_id: SessionId) -> Lease:
        """Take the exclusive right to write a session, across processes.

        The store itself does not ask for it: whoever continues a session takes it first. It is
        free again after `Lease.release` and after any end of the process, `kill -9` included.

        Raises:
            SessionBusyError: another process, or another part of this one, holds it.
            StoreError: the folder of the locks cannot be written.
        """
        return take_lease(self._locks, session_id)

    async def check_sessions(self) -> CheckResult:
        """Read every event, and say in which sessions some cannot be read.

        Raises:
            StoreError: the file could not be read.
        """
        from acp_agent.session.store.integrity_check import check_sessions  # noqa: PLC0415 - rarely needed

        return await self._worker.run(check_sessions)

    async def check(self) -> tuple[str, ...]:
        """Say what is broken in the file itself, one line each; empty when it is sound.

        Raises:
            StoreError: it could not be read at all.
        """
        return await self._worker.run(write_queries.check)

    async def lost_writes(self) -> Sequence[LostWrite]:
        """Return what was written once and is not there: the log, or a newer file, was lost.

        Raises:
            StoreError: the file could not be read.
        """
        from acp_agent.session.store.last_write import lost_writes  # noqa: PLC0415 - rarely needed

        return await self._worker.run(lambda db: lost_writes(self.path, db))

    async def checkpoint(self) -> None:
        """Move what is in the log into the file itself, as far as nobody has to wait for that.

        Raises:
            StoreError: the file could not be written.
        """
        await self._worker.run(database.checkpoint)

    async def close(self) -> None:
        """Write what is still waiting, and close the file. Closing twice does nothing."""
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


def _known_text(session_id: SessionId) -> SessionId:
    """The id as SQLite can compare it; one that is not valid Unicode names no session anyway."""
    return SessionId(replace_surrogates(session_id))
