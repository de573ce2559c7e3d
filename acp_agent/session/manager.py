"""All sessions of a process: created, opened, listed, renamed, archived, closed, deleted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from acp_agent.errors import SessionNotFoundError, StoreError
from acp_agent.events import SystemPromptGiven, TitleChanged
from acp_agent.ids import SessionId
from acp_agent.session import factory
from acp_agent.session.client import Client
from acp_agent.session.services import Services
from acp_agent.session.session import Session
from acp_agent.session.store.records import ArchiveFilter, SessionPage
from acp_agent.workspace.threads import release_memory_soon

PAGE_SIZE = 50

if TYPE_CHECKING:
    from acp_agent.session.history.fork import ForkPoint

_log = logging.getLogger(__name__)


class SessionManager:
    """The open sessions, and the way to those in the store."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._open: dict[SessionId, Session] = {}
        self._locks: WeakValueDictionary[SessionId, asyncio.Lock] = WeakValueDictionary()
        self._pending_closes: dict[Session, asyncio.Task[None]] = {}

    def get(self, session: SessionId, client: Client) -> Session:
        """Return a session that is open in this client.

        Raises:
            SessionNotFoundError: it is not open there, or being closed.
        """
        found = self._open.get(session)
        if found is None or found.closing or found.client.current is not client:
            raise SessionNotFoundError(session, " (not open here; resume it first)")
        return found

    def find(self, session: SessionId) -> Session | None:
        """Return a session that is open in this process, in whichever client."""
        found = self._open.get(session)
        return None if found is None or found.closing else found

    def open_sessions(self) -> list[Session]:
        """Return those that are open in this process, in whichever client."""
        return [session for session in self._open.values() if not session.closing]

    def held_by(self, client: Client) -> int:
        """Return how many sessions are open in this client."""
        return sum(session.client.current is client for session in self._open.values())

    async def settled(self, session_id: SessionId) -> None:
        """Wait until the events of a session are in the store, if it is open here."""
        found = self._open.get(session_id)
        if found is not None:
            await found.core.settled()

    async def create(
        self,
        cwd: str,
        directories: Sequence[str],
        client: Client,
        *,
        system_prompt: SystemPromptGiven | None = None,
    ) -> Session:
        """Start a session in a client. It is in the store when this returns.

        `system_prompt` is what the client adds to the agent's own, or replaces it with.

        Raises:
            InvalidInputError: a folder is not absolute or does not exist.
            AuthRequiredError: no model can be used.
            StoreError: the store cannot be written.
        """
        session = await factory.create(self._services, cwd, directories, system_prompt)
        session.attach(client)
        self._open[session.id] = session
        return session

    async def open(
        self,
        session_id: SessionId,
        cwd: str,
        directories: Sequence[str],
        *,
        system_prompt: SystemPromptGiven | None = None,
    ) -> Session:
        """Open a session of the store, or return it where it is open, in whichever client.

        The caller attaches a client to it, or calls `close_when_idle`.

        A turn that was open when a process died is closed as interrupted first.

        Raises:
            InvalidInputError: a folder is not absolute or does not exist.
            SessionNotFoundError: there is no such session.
            SessionBusyError: another process writes it.
            StoreError: the store cannot be read or written.
        """
        folder, further = await asyncio.to_thread(factory.folders, cwd, directories)
        async with self.open_lock(session_id):
            session = await self.find_open(session_id)
            if session is None:
                session = self._open[session_id] = await factory.reopen(self._services, session_id)
            elif (pending := self._pending_closes.pop(session, None)) is not None:
                pending.cancel()  # the caller is responsible for it now
            try:
                await session.move(folder, further)
                await session.set_system_prompt(system_prompt)
            except BaseException:  # the caller does not get it, and so cannot close it
                if session.client.current is None:
                    self.close_when_idle(session)
                raise
            return session

    async def fork(
        self,
        source: SessionId,
        cwd: str,
        directories: Sequence[str],
        client: Client,
        *,
        system_prompt: SystemPromptGiven | None = None,
        point: ForkPoint | None = None,
    ) -> Session:
        """Start a session in a client with a copy of another; see `acp_agent.session.history.fork`.

        Raises:
            InvalidInputError: a folder is not absolute or does not exist, or there is no `point`.
            SessionNotFoundError: there is no such source.
            StoreError: the store cannot be read or written; there is no new session then.
        """
        original = self.find(source)
        if original is not None:
            await original.core.replay(_barrier)  # earlier events are in the store after it
        session = await factory.fork(
            self._services, source, cwd, directories, system_prompt=system_prompt, point=point
        )
        session.attach(client)
        self._open[session.id] = session
        return session

    async def list(
        self, cwd: str | None, cursor: str | None, archived: ArchiveFilter = "exclude"
    ) -> SessionPage:
        """Return a page of the sessions, newest first, of one folder or all; see `Store.list`.

        Raises:
            InvalidInputError: the cursor belongs to no such list.
        """
        return await self._services.store.list(
            cwd=cwd, cursor=cursor, limit=PAGE_SIZE, archived=archived
        )

    @property
    def services(self) -> Services:
        """What the sessions are built on."""
        return self._services

    def open_lock(self, session_id: SessionId) -> asyncio.Lock:
        """Return the lock that serialises open, close and delete of a session."""
        lock = self._locks.get(session_id)
        if lock is None:
            lock = self._locks[session_id] = asyncio.Lock()
        return lock

    async def find_open(self, session_id: SessionId) -> Session | None:
        """Return a session that is open, or None; call it with the session's lock held."""
        session = self._open.get(session_id)
        if session is not None and session.closing:
            await self._close(session)
            return None
        return session

    async def close(self, session_id: SessionId, client: Client) -> None:
        """Stop what runs in a session and free it.

        Raises:
            SessionNotFoundError: it is not open in this client.
        """
        await self._close(self.get(session_id, client))

    def release(self, client: Client) -> None:
        """Close the sessions of a client that disconnected, each once no turn runs in it.

        The turns go on, and their events are in the journal; a client that comes back in time opens
        the session and sees them.
        """
        for session in self._open.values():
            if session.client.current is client:
                session.client.detach(client)
                self.close_when_idle(session)

    def close_when_idle(self, session: Session) -> None:
        """Close a session that has no client, once no turn runs in it."""
        if session not in self._pending_closes:
            self._pending_closes[session] = asyncio.create_task(self._close_when_idle(session))

    async def _close_when_idle(self, session: Session) -> None:
        try:
            while session.turn is not None:
                await session.turn.wait()
            if session.client.current is None and not session.closing:
                await self._close(session)
        except Exception:  # noqa: BLE001 - nobody waits for it whom it could be raised to
            _log.exception("session %s did not close", session.id)
        finally:
            if self._pending_closes.get(session) is asyncio.current_task():
                del self._pending_closes[session]

    async def _close(self, session: Session) -> None:
        """Close a session, or wait until it is closed. If cancelled, it stays known as closing."""
        try:
            await session.close()
            with suppress(StoreError):  # the log has it all, and is looked at with the next start
                await self._services.store.checkpoint()
        finally:
            if session.closed and self._open.get(session.id) is session:
                del self._open[session.id]
                if not self.running:  # it holds everything up for a moment
                    release_memory_soon()

    async def delete(self, session_id: SessionId) -> None:
        """Delete a session and its files. One that is gone already is no error.

        Raises:
            SessionBusyError: another process writes it.
        """
        async with self.open_lock(session_id):
            session = self._open.get(session_id)
            if session is not None:
                await self._close(session)
            lease = self._services.store.lease(session_id)
            try:
                # Only an id that was in the store is one of ours, and so safe as a folder's name.
                services = self._services
                if await services.store.delete(session_id):
                    from acp_agent.session.history.checkpoint_files import forget  # noqa: PLC0415 - rarely needed

                    await forget(services.checkpoints, services.outputs, session_id)
            finally:
                lease.release()

    def cancel(self, session_id: SessionId, client: Client) -> None:
        """Stop the turn of a session. Silent when it is idle or not open in this client."""
        session = self._open.get(session_id)
        if session is not None and session.client.current is client:
            session.cancel()

    async def close_all(self) -> None:
        """Close every session. One that fails to close does not keep the others open."""
        for task in self._pending_closes.values():
            task.cancel()
        sessions = list(self._open.values())
        outcomes = await asyncio.gather(
            *(self._close(session) for session in sessions), return_exceptions=True
        )
        for session, outcome in zip(sessions, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                _log.error("session %s did not close", session.id, exc_info=outcome)
        self._open.clear()

    # -- sessions that need not be open --------------------------------------------------------

    async def look_up(self, session_id: SessionId) -> Session | None:
        """Return a session that is open in this process; None where it is only in the store.

        Raises:
            SessionNotFoundError: there is no such session.
        """
        session = self.find(session_id)
        if session is None:
            await self._services.store.get(session_id)
        return session

    async def set_title(self, session_id: SessionId, title: str) -> str:
        """Give a session a title that only the user replaces; return it as it is stored.

        The client that has the session open is shown it.

        Raises:
            InvalidInputError: the title is empty.
            SessionNotFoundError: there is no such session.
            SessionBusyError: another process writes it.
            StoreError: it could not be written.
        """
        from acp_agent.session.turns.titles import tidy_title  # noqa: PLC0415 - rarely needed

        event = TitleChanged(title=tidy_title(title), by="user")
        await self.look_up(session_id)
        async with self.open_lock(session_id):
            session = await self.find_open(session_id)
            if session is None:
                store = self._services.store
                lease = store.lease(session_id)
                try:
                    await store.append(session_id, [event])
                finally:
                    lease.release()
        if session is not None:
            await session.core.emit(event)
        return event.title

    async def archive(self, session_id: SessionId) -> None:
        """Leave a session out of lists; one that is open is closed first, in whichever client.

        Raises:
            SessionNotFoundError: there is no such session.
            SessionBusyError: another process has it open.
            StoreError: it could not be written.
        """
        store = self._services.store
        await store.get(session_id)
        async with self.open_lock(session_id):
            session = self._open.get(session_id)
            if session is not None:
                client = session.client.current
                await self._close(session)
                if client is not None:
                    client.replaced(session_id, ())
            lease = store.lease(session_id)
            try:
                await store.archive(session_id)
            finally:
                lease.release()

    async def unarchive(self, session_id: SessionId) -> None:
        """Put a session into lists again, whether or not it is open anywhere.

        Raises:
            SessionNotFoundError: there is no such session.
            StoreError: it could not be written.
        """
        await self._services.store.archive(session_id, archived=False)

    @property
    def running(self) -> Sequence[Session]:
        """The sessions in which a turn runs."""
        return [session for session in self._open.values() if session.turn is not None]


async def _barrier() -> None:
    """No-op used as a barrier."""
