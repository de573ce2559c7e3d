"""Create, open, list, rename, archive, close and delete the sessions of a process."""

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
from acp_agent.workspace.threads import MemoryRelease

PAGE_SIZE = 50

if TYPE_CHECKING:
    from acp_agent.session.history.fork import ForkPoint

_log = logging.getLogger(__name__)


class SessionManager:
    """Manages the open sessions of a process and the stored ones."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._open: dict[SessionId, Session] = {}
        self._locks: WeakValueDictionary[SessionId, asyncio.Lock] = WeakValueDictionary()
        self._pending_closes: dict[Session, asyncio.Task[None]] = {}
        self._memory_release = MemoryRelease()

    def get(self, session: SessionId, client: Client) -> Session:
        """Return a session that is open in a client.

        Raises:
            SessionNotFoundError: it is not open there, or is being closed.
        """
        open_session = self._open.get(session)
        if (
            open_session is None
            or open_session.closing
            or open_session.client.current is not client
        ):
            raise SessionNotFoundError(session, " (not open here; resume it first)")
        return open_session

    def find(self, session: SessionId) -> Session | None:
        """Return a session that is open in this process, whatever its client; None if it is not."""
        open_session = self._open.get(session)
        return None if open_session is None or open_session.closing else open_session

    def open_sessions(self) -> list[Session]:
        """Return all sessions that are open in this process, whatever their client."""
        return [session for session in self._open.values() if not session.closing]

    def count_attached(self, client: Client) -> int:
        """Return the number of sessions that are open in a client."""
        return sum(session.client.current is client for session in self._open.values())

    async def flush(self, session_id: SessionId) -> None:
        """Wait until all events of a session are stored, if it is open here."""
        open_session = self._open.get(session_id)
        if open_session is not None:
            await open_session.core.flush()

    async def create(
        self,
        cwd: str,
        directories: Sequence[str],
        client: Client,
        *,
        system_prompt: SystemPromptGiven | None = None,
    ) -> Session:
        """Create a session, store it and attach a client to it.

        `system_prompt` extends or replaces the agent's system prompt.

        Raises:
            InvalidInputError: a folder is not absolute or does not exist.
            AuthRequiredError: no model can be used.
            StoreError: the store cannot be written.
        """
        session = await factory.create(self.services, cwd, directories, system_prompt)
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
        """Open a stored session, or return it if it is already open, whatever its client.

        The caller attaches a client to it, or calls `close_when_idle`.

        A turn that was open when a process died is closed as interrupted first.

        Raises:
            InvalidInputError: a folder is not absolute or does not exist.
            SessionNotFoundError: there is no such session.
            SessionBusyError: another process has it open.
            StoreError: the store cannot be read or written.
        """
        folder, additional_folders = await asyncio.to_thread(factory.folders, cwd, directories)
        async with self.open_lock(session_id):
            session = await self.find_open(session_id)
            if session is None:
                session = self._open[session_id] = await factory.reopen(self.services, session_id)
            elif (pending := self._pending_closes.pop(session, None)) is not None:
                pending.cancel()  # the caller is now responsible for it
            try:
                await session.move(folder, additional_folders)
                await session.set_system_prompt(system_prompt)
            except BaseException:  # the caller cannot close it
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
        """Create a session with a copy of another's journal; see `acp_agent.session.history.fork`.

        Raises:
            InvalidInputError: a folder is not absolute or missing, or there is no such `point`.
            SessionNotFoundError: there is no such source.
            StoreError: the store cannot be read or written; no session is created.
        """
        original = self.find(source)
        if original is not None:
            await original.core.journal.run_exclusively(
                _barrier
            )  # waits until earlier events are stored
        session = await factory.fork(
            self.services, source, cwd, directories, system_prompt=system_prompt, point=point
        )
        session.attach(client)
        self._open[session.id] = session
        return session

    async def list(
        self, cwd: str | None, cursor: str | None, archived: ArchiveFilter = "exclude"
    ) -> SessionPage:
        """Return a page of the sessions of one folder or of all, newest first; see `Store.list`.

        Raises:
            InvalidInputError: the cursor belongs to another list.
        """
        return await self.services.store.list(
            cwd=cwd, cursor=cursor, limit=PAGE_SIZE, archived=archived
        )

    def open_lock(self, session_id: SessionId) -> asyncio.Lock:
        """Return the lock that serialises open, close and delete of a session."""
        lock = self._locks.get(session_id)
        if lock is None:
            lock = self._locks[session_id] = asyncio.Lock()
        return lock

    async def find_open(self, session_id: SessionId) -> Session | None:
        """Return an open session, or None; the caller holds the session's lock.

        A session that is being closed is awaited, and counts as not open.
        """
        session = self._open.get(session_id)
        if session is not None and session.closing:
            await self._close(session)
            return None
        return session

    async def close(self, session_id: SessionId, client: Client) -> None:
        """Close a session: stop its turn and free its resources. Raises SessionNotFoundError."""
        await self._close(self.get(session_id, client))

    def release(self, client: Client) -> None:
        """Detach a client that disconnected, and close each of its sessions once it is idle.

        Running turns continue, and their events are journaled; a client that returns in time opens
        the session and sees them.
        """
        for session in self._open.values():
            if session.client.current is client:
                session.client.detach(client)
                self.close_when_idle(session)

    def close_when_idle(self, session: Session) -> None:
        """Close a session once no turn runs in it, unless a client attaches before."""
        if session not in self._pending_closes:
            self._pending_closes[session] = asyncio.create_task(self._close_when_idle(session))

    async def _close_when_idle(self, session: Session) -> None:
        try:
            while session.turn is not None:
                await session.turn.wait()
            if session.client.current is None and not session.closing:
                await self._close(session)
        except Exception:  # noqa: BLE001 - nobody awaits the task
            _log.exception("session %s did not close", session.id)
        finally:
            if self._pending_closes.get(session) is asyncio.current_task():
                del self._pending_closes[session]

    async def _close(self, session: Session) -> None:
        """Close a session, or wait until it is closed. If cancelled, the session stays closing."""
        try:
            await session.close()
            with suppress(StoreError):  # the write-ahead log has all, and is read at the next start
                await self.services.store.checkpoint()
        finally:
            if session.closed and self._open.get(session.id) is session:
                del self._open[session.id]
                if not self.running:  # it blocks the process for a moment
                    self._memory_release.schedule()

    async def delete(self, session_id: SessionId) -> None:
        """Delete a session and its files. Does nothing if there is no such session.

        Raises:
            SessionBusyError: another process has it open.
        """
        async with self.open_lock(session_id):
            session = self._open.get(session_id)
            if session is not None:
                await self._close(session)
            services = self.services
            # An id that no session can have is not found.
            with suppress(SessionNotFoundError), services.store.lease(session_id):
                # Only an id from the store is safe as the name of a folder.
                if await services.store.delete(session_id):
                    from acp_agent.session.history.checkpoint_files import remove_session_files  # noqa: PLC0415 - rarely needed

                    await remove_session_files(services.checkpoints, services.outputs, session_id)

    def cancel(self, session_id: SessionId, client: Client) -> None:
        """Stop a session's turn. Does nothing if it is idle or not open in this client."""
        session = self._open.get(session_id)
        if session is not None and session.client.current is client:
            session.cancel()

    async def close_all(self) -> None:
        """Close every session. Failures are logged."""
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

    # -- open or stored sessions ---------------------------------------------------------------

    async def look_up(self, session_id: SessionId) -> Session | None:
        """Return a session that is open in this process; None if it is only stored.

        Raises:
            SessionNotFoundError: there is no such session.
        """
        session = self.find(session_id)
        if session is None:
            await self.services.store.get(session_id)
        return session

    async def set_title(self, session_id: SessionId, title: str) -> str:
        """Set a session's title, which then only the user changes; return the stored title.

        The client that has the session open is shown the title.

        Raises:
            InvalidInputError: the title is empty.
            SessionNotFoundError: there is no such session.
            SessionBusyError: another process has it open.
            StoreError: the store could not be written.
        """
        from acp_agent.session.turns.titles import tidy_title  # noqa: PLC0415 - rarely needed

        event = TitleChanged(title=tidy_title(title), by="user")
        await self.look_up(session_id)
        async with self.open_lock(session_id):
            session = await self.find_open(session_id)
            if session is None:
                store = self.services.store
                with store.lease(session_id):
                    await store.append(session_id, [event])
        if session is not None:
            await session.core.emit(event)
        return event.title

    async def archive(self, session_id: SessionId) -> None:
        """Archive a session, which hides it in lists; an open one is closed first.

        Raises:
            SessionNotFoundError: there is no such session.
            SessionBusyError: another process has it open.
            StoreError: the store could not be written.
        """
        store = self.services.store
        await store.get(session_id)
        async with self.open_lock(session_id):
            session = self._open.get(session_id)
            if session is not None:
                client = session.client.current
                await self._close(session)
                if client is not None:
                    client.replaced(session_id, ())
            with store.lease(session_id):
                await store.archive(session_id)

    async def unarchive(self, session_id: SessionId) -> None:
        """Show an archived session in lists again, whether or not it is open.

        Raises:
            SessionNotFoundError: there is no such session.
            StoreError: the store could not be written.
        """
        await self.services.store.archive(session_id, archived=False)

    @property
    def running(self) -> Sequence[Session]:
        """The open sessions in which a turn runs."""
        return [session for session in self._open.values() if session.turn is not None]


async def _barrier() -> None:
    """No-op used as a barrier."""
