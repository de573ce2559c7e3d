"""The thread that owns the journal's connection.

All jobs that wait when the thread is free share one transaction, in the order of submission, so
many sessions that write at once cost one commit. A failed job does not affect the others: the group
is rolled back, and each job runs again in a separate transaction.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any, Generic, TypeVar

from acp_agent.errors import StoreDamagedError, StoreError
from acp_agent.session.store.database import Database, open_database
from acp_agent.session.store.sqlite_errors import damage_error, primary_code, store_error

T = TypeVar("T")

_MAX_GROUP = 256  # jobs in one transaction at most, to limit the wait for each


class WriteChain:
    """The pending writes of one session.

    If one of them fails, the pending writes after it fail too, so that the journal has no holes.
    The chain ends, and `on_end` is called with it, when the failure was reported or nothing is
    pending.
    """

    __slots__ = ("broken", "on_end", "pending", "session")

    def __init__(self, session: str, on_end: Callable[[WriteChain], None]) -> None:
        self.session = session
        self.on_end = on_end
        self.broken: Exception | None = None
        self.pending = 0


class Job(Generic[T]):
    """A function to run on the thread. A job with a `chain` writes, and shares a transaction."""

    __slots__ = ("chain", "error", "future", "result", "run")

    def __init__(
        self,
        run: Callable[[sqlite3.Connection], T],
        future: asyncio.Future[T],
        chain: WriteChain | None,
    ) -> None:
        self.run = run
        self.future = future
        self.chain = chain
        self.result: T | None = None
        self.error: Exception | None = None

    def check_chain(self) -> None:
        """Raise the error that broke the chain, if any."""
        if self.chain is not None and self.chain.broken is not None:
            raise self.chain.broken

    def settle(self) -> None:
        """Pass the result or error to the waiting task; called on the event loop."""
        if self.chain is not None:
            self.chain.pending -= 1
            if self.error is not None or not self.chain.pending:
                self.chain.on_end(self.chain)
        if self.future.done():
            return  # the waiting task was cancelled, but the job is done
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)  # type: ignore[arg-type]  # set if there is no error


AnyJob = Job[Any]  # jobs of all types share the queue; each future is typed separately


class Worker:
    """Runs jobs from a queue on a thread with its own connection."""

    def __init__(self, path: Path, loop: asyncio.AbstractEventLoop) -> None:
        self.path = path  # the resolved path once the journal is open
        self._loop = loop
        self._queue: queue.SimpleQueue[AnyJob | None] = queue.SimpleQueue()
        self._database: Database | None = None  # used by the thread only
        self._closed = False
        self._ended: asyncio.Future[None] = loop.create_future()

    async def start(self) -> None:
        """Start the thread and open the journal.

        Raises:
            StoreError: the journal cannot be opened, as in `open_database`; the thread has ended.
        """
        opened: asyncio.Future[None] = self._loop.create_future()
        # A daemon thread, so that a program that forgets to close the journal still ends; committed
        # writes are safe.
        threading.Thread(target=self._main, args=(opened,), name="journal", daemon=True).start()
        try:
            await opened
        except asyncio.CancelledError:
            self._queue.put(None)  # close the journal, as the caller never will
            raise

    async def run(
        self, run: Callable[[sqlite3.Connection], T], chain: WriteChain | None = None
    ) -> T:
        """Run a job on the thread and return its result; jobs keep their order.

        Raises:
            StoreError: the journal failed or is closed.
        """
        if self._closed:
            raise StoreError(f"the journal {self.path} is closed already")
        future: asyncio.Future[T] = self._loop.create_future()
        if chain is not None:
            chain.pending += 1
        self._queue.put(Job(run, future, chain))
        return await future

    def schedule(self, run: Callable[[sqlite3.Connection], None]) -> None:
        """Submit a job whose result nobody awaits and that cannot fail."""
        self._queue.put(Job(run, self._loop.create_future(), None))

    async def stop(self) -> None:
        """Run all submitted jobs, close the file and end the thread."""
        if self._closed:
            await asyncio.shield(self._ended)
            return
        self._closed = True
        self._queue.put(None)
        await asyncio.shield(self._ended)

    # The methods below run on the thread.

    def _main(self, opened: asyncio.Future[None]) -> None:
        start = Job[None](lambda _: None, opened, None)
        try:
            self.path = Path(os.path.realpath(self.path))
            self._connection()
        except Exception as error:  # noqa: BLE001 - handed to the caller of `start`
            start.error = error
            self._deliver([start])
            return
        self._deliver([start])
        while self._run_waiting_jobs():
            pass
        self._disconnect()
        self._deliver([Job(lambda _: None, self._ended, None)])

    def _run_waiting_jobs(self) -> bool:
        """Run all waiting jobs; return false after `stop`."""
        jobs, continues = self._next_jobs()
        for writes, group in groupby(jobs, key=lambda job: job.chain is not None):
            members = list(group)
            if writes:
                self._write(members)
            else:
                for job in members:
                    self._read(job)
            self._deliver(members)
        return continues

    def _next_jobs(self) -> tuple[list[AnyJob], bool]:
        """Return all waiting jobs, at most one group, and false if no more will follow."""
        jobs: list[AnyJob] = []
        job = self._queue.get()
        while job is not None:
            jobs.append(job)
            if len(jobs) == _MAX_GROUP:
                return jobs, True
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                return jobs, True
        return jobs, False

    def _read(self, job: AnyJob) -> None:
        try:
            job.result = job.run(self._connection())
        except Exception as error:  # noqa: BLE001 - handed to the caller of `run`
            job.error = self._describe_error(error)

    def _write(self, jobs: list[AnyJob]) -> None:
        if self._database is not None and self._database.read_only:
            # Retry: a full disk may have space again, or the file may be writable now.
            self._disconnect()
        if len(jobs) > 1:
            try:
                self._commit(jobs)
                return
            except sqlite3.OperationalError as error:
                if primary_code(error) == sqlite3.SQLITE_BUSY:
                    self._fail(jobs, error)  # waiting again for each job would take minutes
                    return
            except Exception:  # noqa: BLE001, S110 - each job runs again below
                pass
        for job in jobs:
            try:
                self._commit([job])
            except Exception as error:  # noqa: BLE001 - handed to the caller of `run`
                self._fail([job], error)

    def _fail(self, jobs: list[AnyJob], error: Exception) -> None:
        for job in jobs:
            job.error = self._describe_error(error)
            if job.chain is not None and job.chain.broken is None:
                job.chain.broken = job.error

    def _commit(self, jobs: list[AnyJob]) -> None:
        connection = self._connection()
        if self._database is not None and not self._database.in_place(self.path):
            self._disconnect()  # the next write creates a new journal
            raise StoreError(
                f"the journal {self.path} was moved or deleted while it was in use; put it back, "
                "or start a new session"
            )
        try:
            connection.execute("BEGIN IMMEDIATE")
            for job in jobs:
                job.check_chain()
                job.result = job.run(connection)
            connection.execute("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            if (
                isinstance(error, sqlite3.Error)
                and primary_code(error) == sqlite3.SQLITE_READONLY
                and self._database is not None
            ):
                if not self._database.read_only and os.access(self.path, os.W_OK):
                    # Which SQLite also says of a file whose header has an unknown format.
                    raise StoreDamagedError("its header forbids writing") from error
                self._database.read_only = True
            raise

    def _connection(self) -> sqlite3.Connection:
        """Return the open journal; open it if it is not open or failed before."""
        if self._database is None:
            self._database = open_database(self.path)
        return self._database.connection

    def _disconnect(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            with contextlib.suppress(sqlite3.Error):  # the next start recovers commits
                database.connection.close()

    def _describe_error(self, error: Exception) -> Exception:
        if isinstance(error, StoreDamagedError) and str(self.path) not in str(error):
            return damage_error(self.path, str(error))
        if isinstance(error, UnicodeDecodeError | OverflowError):
            return damage_error(self.path, "a value has the wrong type")
        if isinstance(error, sqlite3.Error):
            described = store_error(error, self.path)
            described.__cause__ = error
            return described
        return error

    def _deliver(self, jobs: list[AnyJob]) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop ended before the job
            self._loop.call_soon_threadsafe(_settle, jobs)


def _settle(jobs: list[AnyJob]) -> None:
    for job in jobs:
        job.settle()
