"""The operations of a client on sessions, in either version of the protocol.

The requests of one session start in the order in which they arrive. The handlers of each version
convert the messages; nothing here knows their shape.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from acp_agent.errors import InvalidInputError, SessionNotFoundError
from acp_agent.events import AnyEvent, SystemPromptGiven
from acp_agent.ids import SessionId
from acp_agent.server.core import Core
from acp_agent.server.editor import ClientEditor
from acp_agent.session.manager import SessionManager
from acp_agent.session.session import Session
from acp_agent.session.store.records import ArchiveFilter, SessionPage

if TYPE_CHECKING:
    from acp_agent.session.history.fork import ForkPoint
    from acp_agent.session.turns.turn import Turn


class SessionQueue:
    """The order of one session's requests, and how often the session was cancelled."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.cancels = 0
        self.users = 0


class SessionQueues:
    """The queues of a connection; a queue exists while a request uses it."""

    def __init__(self) -> None:
        self._queues: dict[str, SessionQueue] = {}

    @asynccontextmanager
    async def join(self, session: str) -> AsyncIterator[SessionQueue]:
        """Use a session's queue. Cancellation is measured from entry."""
        queue = self._queues.setdefault(session, SessionQueue())
        queue.users += 1
        try:
            yield queue
        finally:
            queue.users -= 1
            if queue.users == 0:
                self._queues.pop(session, None)

    def cancel(self, session: str) -> None:
        """Cancel the requests that are in a session's queue now."""
        queue = self._queues.get(session)
        if queue is not None:
            queue.cancels += 1


class Operations:
    """The sessions as one connection uses them.

    Args:
        max_sessions: how many the connection may have open; None: any number.
    """

    def __init__(
        self, core: Core, editor: ClientEditor[Any], *, max_sessions: int | None = None
    ) -> None:
        self.core = core
        self.editor = editor
        self._max_sessions = max_sessions
        self._opening = 0
        self.queues = SessionQueues()
        # By session: the turn that a prompt of this client is part of.
        self._turns: WeakValueDictionary[str, Turn] = WeakValueDictionary()

    async def create(
        self,
        cwd: str,
        directories: Sequence[str],
        *,
        system_prompt: SystemPromptGiven | None = None,
    ) -> Session:
        """Start a session; see `SessionManager.create`."""
        manager = await self.core.manager()
        with self._reserve_slot(manager):
            return await manager.create(cwd, directories, self.editor, system_prompt=system_prompt)

    async def system_prompt(self, mode: str, texts: Sequence[str]) -> SystemPromptGiven:
        """Return the client's instructions as they are stored; see `client_prompt_event`."""
        from acp_agent.session.turns.system_prompt import client_prompt_event  # noqa: PLC0415 - rare

        services = await self.core.services()
        return client_prompt_event(mode, texts, secrets=services.secrets.values())

    async def open(
        self,
        session_id: str,
        cwd: str,
        directories: Sequence[str],
        *,
        system_prompt: SystemPromptGiven | None = None,
        then: Callable[[Session], Awaitable[None]],
    ) -> Session:
        """Open a stored session or take over an open one; see `SessionManager.open`.

        A session that another connection of this process has open moves to this one, together with
        a running turn. `then` runs before any other request of the session, and no live event is
        shown before it ends.
        """
        self.refuse_child(session_id)
        async with self.queues.join(session_id) as queue, queue.lock:
            manager = await self.core.manager()
            with self._reserve_slot(manager, session_id):
                session = await manager.open(
                    SessionId(session_id), cwd, directories, system_prompt=system_prompt
                )

                async def settle() -> None:
                    last_events = await self._last_events(session)
                    await then(session)
                    # Last, because an open question is sent to the editor at once, and must follow
                    # the call that it is about.
                    session.attach(self.editor, last_events)

                was_attached = session.client.current is self.editor
                try:
                    await session.core.journal.run_exclusively(settle)
                except BaseException:
                    if not was_attached:  # cancelled just after it was attached
                        session.client.detach(self.editor)
                        self.editor.forget(session.id)
                    if session.client.current is None:
                        manager.close_when_idle(session)
                    raise
                return session

    async def _last_events(self, session: Session) -> Sequence[AnyEvent]:
        """Return the last events for the client that loses a session to this one."""
        if session.turn is None or session.client.current in (None, self.editor):
            return ()
        from acp_agent.server.notices import moved_note  # noqa: PLC0415 - rare
        from acp_agent.session.history.interruption import close_for_client  # noqa: PLC0415 - likewise

        return close_for_client(await session.core.history(), moved_note(self.core.translate))

    async def fork(
        self,
        session_id: str,
        cwd: str,
        directories: Sequence[str],
        *,
        system_prompt: SystemPromptGiven | None = None,
        point: ForkPoint | None = None,
    ) -> Session:
        """Start a session from another; see `SessionManager.fork`.

        It includes the other session's requests that came before this one.
        """
        async with self.exclusive_access(session_id):
            manager = await self.core.manager()
            with self._reserve_slot(manager):
                return await manager.fork(
                    SessionId(session_id),
                    cwd,
                    directories,
                    self.editor,
                    system_prompt=system_prompt,
                    point=point,
                )

    async def get(self, session_id: str) -> Session:
        """Return a session that is open on this connection.

        Raises:
            SessionNotFoundError: it is not open here, or it is a child session.
        """
        self.refuse_child(session_id)
        manager = self.core.active_manager or await self.core.manager()
        return manager.get(SessionId(session_id), self.editor)

    async def holder(self, session_id: str) -> Session:
        """Return the session that runs a session's calls: itself, or the parent of a child.

        Raises:
            SessionNotFoundError: it is not open on this connection.
        """
        return await self.get(self.editor.find_parent(SessionId(session_id)) or session_id)

    def refuse_child(self, session_id: str) -> None:
        """Refuse a child session, which can only be cancelled.

        Raises:
            SessionNotFoundError: it is a child session.
        """
        parent = self.editor.find_parent(SessionId(session_id))
        if parent is not None:
            raise SessionNotFoundError(
                session_id,
                f" (it is a child of {parent}; a child can be cancelled and nothing else)",
            )

    async def list(
        self, cwd: str | None, cursor: str | None, archived: str | None = None
    ) -> SessionPage:
        """Return a page of the sessions; see `SessionManager.list`."""
        if cwd is not None:
            if not Path(cwd).is_absolute():
                raise InvalidInputError(f"cwd: expected an absolute path, got {cwd!r}", field="cwd")
            cwd = str(Path(cwd))  # as it is stored: without `//`, `/./` and `/` at its end
        selection = archive_filter(archived)
        return await self.core.list(cwd, cursor, selection)

    async def delete(self, session_id: str) -> None:
        """Delete a session. Does nothing if it does not exist.

        Raises:
            SessionNotFoundError: it is a child session.
        """
        self.refuse_child(session_id)
        self.cancel(session_id)  # including the requests that wait in the queue
        async with self.queues.join(session_id) as queue, queue.lock:
            await (await self.core.manager()).delete(SessionId(session_id))
            self.editor.forget(SessionId(session_id))

    async def close(self, session_id: str) -> None:
        """Close a session and stop its work. Raises SessionNotFoundError."""
        self.refuse_child(session_id)
        self.cancel(session_id)  # including the requests that wait in the queue
        async with self.queues.join(session_id) as queue, queue.lock:
            await (await self.core.manager()).close(SessionId(session_id), self.editor)
            self.editor.forget(SessionId(session_id))

    @contextmanager
    def _reserve_slot(self, manager: SessionManager, session_id: str = "") -> Iterator[None]:
        """Reserve room for one more session while it is being opened.

        Raises:
            InvalidInputError: the connection has as many sessions open as it may.
        """
        if self._max_sessions is None:
            yield
            return
        open_session = manager.find(SessionId(session_id))
        if open_session is not None and open_session.client.current is self.editor:
            yield  # it is one of the open ones
            return
        if manager.count_attached(self.editor) + self._opening >= self._max_sessions:
            raise InvalidInputError(
                f"this connection has {self._max_sessions} sessions open, as many as it may; close "
                "one, or start the agent with a higher --max-sessions"
            )
        self._opening += 1
        try:
            yield
        finally:
            self._opening -= 1

    @asynccontextmanager
    async def exclusive_access(self, session_id: str) -> AsyncIterator[None]:
        """Wait for the session's earlier requests, and make later ones wait.

        Raises:
            SessionNotFoundError: it is a child session.
        """
        self.refuse_child(session_id)
        async with self.queues.join(session_id) as queue, queue.lock:
            yield

    def cancel(self, session_id: str) -> None:
        """Cancel a session's turn and waiting prompts, or the work of a child session.

        The session may have moved to another client: this client can still cancel the turn that its
        own prompt is part of.
        """
        parent = self.editor.find_parent(SessionId(session_id))
        if parent is not None:
            self.core.cancel_child(parent, SessionId(session_id), self.editor)
            return
        self.queues.cancel(session_id)
        self.core.cancel(SessionId(session_id), self.editor)
        turn = self._turns.get(session_id)
        if turn is not None:
            turn.cancel()

    def release(self) -> None:
        """Leave the sessions, and the turns of this client's prompts, to who comes back."""
        self._turns.clear()
        self.core.release(self.editor)

    def record_turn(self, session_id: str, turn: Turn) -> None:
        """Remember that a prompt of this client is part of a turn."""
        self._turns[session_id] = turn

    async def wait_moved(self, session: Session) -> None:
        """Wait until another client has a session."""
        await session.client.wait_detached(self.editor)

    async def change(
        self, session_id: str, action: Callable[[Session], Awaitable[None]]
    ) -> Session:
        """Apply `action` to a session after its earlier requests."""
        async with self.queues.join(session_id) as queue, queue.lock:
            session = await self.get(session_id)
            await action(session)
            return session


def archive_filter(name: str | None) -> ArchiveFilter:
    """Return the filter that the client names, or the default. Raises InvalidInputError."""
    match name:
        case None:
            return "exclude"
        case "exclude" | "include" | "only":
            return name
        case _:
            raise InvalidInputError(
                f"archived: there is no filter {name!r}; the filters are exclude, include, only",
                field="archived",
            )
