"""All sessions of a process: made, opened, listed, closed, deleted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from acp_agent.errors import SessionNotFoundError, StoreError
from acp_agent.events import SystemPromptGiven
from acp_agent.ids import SessionId
from acp_agent.session import making
from acp_agent.session.editor import Editor
from acp_agent.session.services import Services
from acp_agent.session.session import Session
from acp_agent.session.store.records import ArchiveFilter, SessionPage
from acp_agent.workspace.threads import release_memory_soon

PAGE_SIZE = 50

if TYPE_CHECKING:
    from acp_agent.session.fork_point import ForkPoint

_log = logging.getLogger(__name__)


class SessionManager:
    """The open sessions, and the way to those in the store."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._open: dict[SessionId, Session] = {}
        self._doors: WeakValueDictionary[SessionId, asyncio.Lock] = WeakValueDictionary()
        self._departures: dict[Session, asyncio.Task[None]] = {}

    def get(self, session: SessionId, editor: Editor) -> Session:
        """A session that is open in this editor.

        Raises:
            SessionNotFoundError: it is not open there, or being closed.
        """
        found = self._open.get(session)
        if found is None or found.closing or found.editor.taken_by is not editor:
            raise SessionNotFoundError(session, " (not open here; resume it first)")
        return found

    def find(self, session: SessionId) -> Session | None:
        """A session that is open in this process, in whichever editor."""
        found = self._open.get(session)
        return None if found is None or found.closing else found

    def open_sessions(self) -> list[Session]:
        """Those that are open in this process, in whichever editor."""
        return [session for session in self._open.values() if not session.closing]

    def held_by(self, editor: Editor) -> int:
        """How many sessions are open in this editor."""
        return sum(session.editor.taken_by is editor for session in self._open.values())

    async def settled(self, session_id: SessionId) -> None:
        """Wait until what happened in a session is in the store, if it is open here."""
        found = self._open.get(session_id)
        if found is not None:
            await found.settled()

    async def create(
        self,
        cwd: str,
        directories: Sequence[str],
        editor: Editor,
        *,
        system_prompt: SystemPromptGiven | None = None,
    ) -> Session:
        """Start a session in an editor. It is in the store when this returns.

        `system_prompt` is what the editor adds to the agent's own, or puts in its place.

        Raises:
            InvalidInputError: a folder is not absolute or does not exist.
            AuthRequiredError: no model can be used.
            StoreError: the store cannot be written.
        """
        session = await making.begin(self._services, cwd, directories, system_prompt)
        session.attach(editor)
        self._open[session.session] = session
        return session

    async def open(
        self,
        session_id: SessionId,
        cwd: str,
        directories: Sequence[str],
        *,
        system_prompt: SystemPromptGiven | None = None,
    ) -> Session:
        """Open a session of the store, or find it open already, in whichever editor.

        It is for the caller to attach an editor to it, or to `abandon` it.

        A turn that a crash cut off is closed as interrupted first.

        Raises:
            InvalidInputError: a folder is not absolute or does not exist.
            SessionNotFoundError: there is no such session.
            SessionBusyError: another process writes it.
            StoreError: the store cannot be read or written.
        """
        folder, further = await asyncio.to_thread(making.folders, cwd, directories)
        async with self.door(session_id):
            session = await self.at_door(session_id)
            if session is None:
                session = self._open[session_id] = await making.reopen(self._services, session_id)
            elif (departure := self._departures.pop(session, None)) is not None:
                departure.cancel()  # somebody comes: it is theirs now to abandon it
            try:
                await session.move(folder, further)
                await session.give_system_prompt(system_prompt)
            except BaseException:  # whoever asked for it does not get it, and cannot abandon it
                if session.editor.taken_by is None:
                    self.abandon(session)
                raise
            return session

    async def fork(
        self,
        source: SessionId,
        cwd: str,
        directories: Sequence[str],
        editor: Editor,
        *,
        system_prompt: SystemPromptGiven | None = None,
        point: ForkPoint | None = None,
    ) -> Session:
        """Start a session in an editor with what another one holds; see `acp_agent.session.fork`.

        Raises:
            InvalidInputError: a folder is not absolute or does not exist, or there is no `point`.
            SessionNotFoundError: there is no such source.
            StoreError: the store cannot be read or written; there is no new session then.
        """
        original = self.find(source)
        if original is not None:
            await original.replay(_nothing)  # what was said before this is in the store after it
        session = await making.fork(
            self._services, source, cwd, directories, system_prompt=system_prompt, point=point
        )
        session.attach(editor)
        self._open[session.session] = session
        return session

    async def list(
        self, cwd: str | None, cursor: str | None, archived: ArchiveFilter = "exclude"
    ) -> SessionPage:
        """A page of the sessions, newest first, of one folder or of all; see `Store.list`.

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

    def door(self, session_id: SessionId) -> asyncio.Lock:
        """What one has of several who open, shut or delete a session in the same moment.

        Nobody opens the session for as long as somebody has it.
        """
        door = self._doors.get(session_id)
        if door is None:
            door = self._doors[session_id] = asyncio.Lock()
        return door

    async def shut(self, session_id: SessionId) -> None:
        """Close a session if it is open in this process, in whichever editor; behind its door."""
        session = self._open.get(session_id)
        if session is None:
            return
        editor = session.editor.taken_by
        await self._close(session)
        if editor is not None:
            editor.replaced(session_id, ())

    async def at_door(self, session_id: SessionId) -> Session | None:
        """A session that is open; None where it is not, or not any more. Behind its door."""
        session = self._open.get(session_id)
        if session is not None and session.closing:
            await self._close(session)
            return None
        return session

    async def close(self, session_id: SessionId, editor: Editor) -> None:
        """Stop what runs in a session and free it.

        Raises:
            SessionNotFoundError: it is not open in this editor.
        """
        await self._close(self.get(session_id, editor))

    def release(self, editor: Editor) -> None:
        """An editor is gone: its sessions are closed as soon as no turn runs in them.

        The turns go on, and what they do is in the journal; an editor that comes back in time
        opens the session and sees them.
        """
        for session in self._open.values():
            if session.editor.taken_by is editor:
                session.editor.leave(editor)
                self.abandon(session)

    def abandon(self, session: Session) -> None:
        """Close a session that no editor has, once no turn runs in it."""
        if session not in self._departures:
            self._departures[session] = asyncio.create_task(self._close_abandoned(session))

    async def _close_abandoned(self, session: Session) -> None:
        try:
            while session.turn is not None:
                await session.turn.wait()
            if session.editor.taken_by is None and not session.closing:
                await self._close(session)
        except Exception:  # noqa: BLE001 - nobody waits for it whom it could be raised to
            _log.exception("session %s did not close", session.session)
        finally:
            if self._departures.get(session) is asyncio.current_task():
                del self._departures[session]

    async def _close(self, session: Session) -> None:
        """Close a session, or wait until it is closed. Cancelled, it stays known as closing."""
        try:
            await session.close()
            with suppress(StoreError):  # the log has it all, and is looked at with the next start
                await self._services.store.checkpoint()
        finally:
            if session.closed and self._open.get(session.session) is session:
                del self._open[session.session]
                if not self.running:  # it holds everything up for a moment
                    release_memory_soon()

    async def delete(self, session_id: SessionId) -> None:
        """Remove a session and what it kept. One that is gone already is no error.

        Raises:
            SessionBusyError: another process writes it.
        """
        async with self.door(session_id):
            session = self._open.get(session_id)
            if session is not None:
                await self._close(session)
            lease = self._services.store.lease(session_id)
            try:
                # Only an id that was in the store is one of ours, and so safe as a folder's name.
                services = self._services
                if await services.store.delete(session_id):
                    from acp_agent.session import kept_files  # noqa: PLC0415 - rarely needed

                    await kept_files.forget(services.checkpoints, services.outputs, session_id)
            finally:
                lease.release()

    def cancel(self, session_id: SessionId, editor: Editor) -> None:
        """Stop the turn of a session. Silent when it is idle or not open in this editor."""
        session = self._open.get(session_id)
        if session is not None and session.editor.taken_by is editor:
            session.cancel()

    async def close_all(self) -> None:
        """Close every session. One that fails to close does not keep the others open."""
        for task in self._departures.values():
            task.cancel()
        sessions = list(self._open.values())
        outcomes = await asyncio.gather(
            *(self._close(session) for session in sessions), return_exceptions=True
        )
        for session, outcome in zip(sessions, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                _log.error("session %s did not close", session.session, exc_info=outcome)
        self._open.clear()

    @property
    def running(self) -> Sequence[Session]:
        """The sessions in which a turn runs."""
        return [session for session in self._open.values() if session.turn is not None]


async def _nothing() -> None:
    """What is done between all that was said before and all that is said after."""
