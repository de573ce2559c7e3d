"""One lane a session: its requests start in the order in which they came."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from acp_agent.errors import InvalidInputError, SessionNotFoundError
from acp_agent.events import AnyEvent, SystemPromptGiven
from acp_agent.ids import SessionId
from acp_agent.server.core import Core
from acp_agent.server.editor import ClientEditor
from acp_agent.session.session import Session
from acp_agent.session.store.records import ArchiveFilter, SessionPage

if TYPE_CHECKING:
    from acp_agent.server.prompts import Prompts
    from acp_agent.session.history.fork import ForkPoint
    from acp_agent.session.turns.turn import Turn


class Lane:
    """The order of one session's requests, and how often it was cancelled."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.cancels = 0
        self.users = 0


class Lanes:
    """The lanes of a connection; a lane lives while something is in it."""

    def __init__(self) -> None:
        self._lanes: dict[str, Lane] = {}

    @asynccontextmanager
    async def enter(self, session: str) -> AsyncIterator[Lane]:
        """Wait for one's place in the lane and keep it. Not yet cancelled counts from the call."""
        lane = self._lanes.setdefault(session, Lane())
        lane.users += 1
        try:
            yield lane
        finally:
            lane.users -= 1
            if lane.users == 0:
                self._lanes.pop(session, None)

    def cancel(self, session: str) -> None:
        """Cancel what is in the lane; what comes later is not meant."""
        lane = self._lanes.get(session)
        if lane is not None:
            lane.cancels += 1


class Operations:
    """The sessions as one connection may use them.

    Args:
        core: the sessions of the process.
        editor: the connection's end of them.
    """

    def __init__(self, core: Core, editor: ClientEditor) -> None:
        self.core = core
        self._editor = editor
        self._lanes = Lanes()
        # By session: the turn that has words of this client in it.
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
        return await manager.create(cwd, directories, self._editor, system_prompt=system_prompt)

    async def system_prompt(self, mode: str, texts: Sequence[str]) -> SystemPromptGiven:
        """The client's instructions as they are kept; see `given_system_prompt`."""
        from acp_agent.session.turns.system_prompt import given_system_prompt  # noqa: PLC0415 - rare

        services = await self.core.services()
        return given_system_prompt(mode, texts, secrets=services.secrets.values())

    async def open(
        self,
        session_id: str,
        cwd: str,
        directories: Sequence[str],
        *,
        system_prompt: SystemPromptGiven | None = None,
        then: Callable[[Session], Awaitable[None]],
    ) -> Session:
        """Open a session of the store, or one that is open already; see `SessionManager.open`.

        One that another connection of this process has goes over to this one, with the turn that
        may be running in it: whoever lost a connection finds the work where it is. `then` runs
        before any other request of the session, with no live event in between.
        """
        self.refuse_child(session_id)
        async with self._lanes.enter(session_id) as lane, lane.lock:
            manager = await self.core.manager()
            session = await manager.open(
                SessionId(session_id), cwd, directories, system_prompt=system_prompt
            )

            async def settle() -> None:
                left = await self._left_by(session)
                await then(session)
                # Last: a question that is open is asked of the editor at once, and must not come
                # before the call that it is about.
                session.attach(self._editor, left)

            had = session.client.current is self._editor
            try:
                await session.core.replay(settle)
            except BaseException:
                if not had:  # cancelled in the moment in which it was attached
                    session.client.detach(self._editor)
                    self._editor.forget(session.id)
                if session.client.current is None:
                    manager.close_when_idle(session)
                raise
            return session

    async def _left_by(self, session: Session) -> Sequence[AnyEvent]:
        """What ends for the client that has a session and is about to lose it to this one."""
        if session.turn is None or session.client.current in (None, self._editor):
            return ()
        from acp_agent.server.notices import moved_note  # noqa: PLC0415 - rare
        from acp_agent.session.history.interruption import moved_away  # noqa: PLC0415 - likewise

        return moved_away(await session.core.history(), moved_note(self.core.translate))

    async def fork(
        self,
        session_id: str,
        cwd: str,
        directories: Sequence[str],
        *,
        system_prompt: SystemPromptGiven | None = None,
        point: ForkPoint | None = None,
    ) -> Session:
        """Start a session with what another one holds; see `SessionManager.fork`.

        What was said to the other one before this is part of it.
        """
        async with self.turn_of(session_id):
            manager = await self.core.manager()
            return await manager.fork(
                SessionId(session_id),
                cwd,
                directories,
                self._editor,
                system_prompt=system_prompt,
                point=point,
            )

    async def get(self, session_id: str) -> Session:
        """A session that is open on this connection.

        Raises:
            SessionNotFoundError: it is not, or it is a child of another.
        """
        self.refuse_child(session_id)
        return (await self.core.manager()).get(SessionId(session_id), self._editor)

    async def holder(self, session_id: str) -> Session:
        """The session that has what a session shows: itself, or the parent of a child.

        Raises:
            SessionNotFoundError: it is not open on this connection.
        """
        return await self.get(self._editor.parent_of(SessionId(session_id)) or session_id)

    def refuse_child(self, session_id: str) -> None:
        """See that a session is none that works for another: such a one can only be stopped.

        Raises:
            SessionNotFoundError: it is.
        """
        parent = self._editor.parent_of(SessionId(session_id))
        if parent is not None:
            raise SessionNotFoundError(
                session_id,
                f" (it is a child of {parent}; a child can be cancelled and nothing else)",
            )

    async def list(
        self, cwd: str | None, cursor: str | None, archived: str | None = None
    ) -> SessionPage:
        """The sessions that are in use; see `SessionManager.list`.

        Raises:
            InvalidInputError: `archived` is none of the filters, the folder is not absolute, or
                the cursor belongs to no such list.
        """
        if cwd is not None and not Path(cwd).is_absolute():
            raise InvalidInputError(f"cwd: expected an absolute path, got {cwd!r}", field="cwd")
        wanted = archive_filter(archived)
        return await self.core.list(cwd, cursor, wanted)

    async def delete(self, session_id: str) -> None:
        """Delete a session; one that is not there is gone as asked.

        Raises:
            SessionNotFoundError: it is a child of another.
        """
        self.refuse_child(session_id)
        self.cancel(session_id)  # what waits for its turn in the lane ends, too
        async with self._lanes.enter(session_id) as lane, lane.lock:
            await (await self.core.manager()).delete(SessionId(session_id))
            self._editor.forget(SessionId(session_id))

    async def close(self, session_id: str) -> None:
        """Stop what runs in a session and free it.

        Raises:
            SessionNotFoundError: it is not open on this connection.
        """
        self.refuse_child(session_id)
        self.cancel(session_id)  # what waits for its turn in the lane ends, too
        async with self._lanes.enter(session_id) as lane, lane.lock:
            await (await self.core.manager()).close(SessionId(session_id), self._editor)
            self._editor.forget(SessionId(session_id))

    @cached_property
    def prompts(self) -> Prompts:
        """What a client says in sessions."""
        from acp_agent.server.prompts import Prompts  # noqa: PLC0415 - not to open a session

        return Prompts(self, self._lanes)

    @asynccontextmanager
    async def turn_of(self, session_id: str) -> AsyncIterator[None]:
        """Wait until the requests of a session before this one are done, and hold up the next.

        Raises:
            SessionNotFoundError: it is a child of another.
        """
        self.refuse_child(session_id)
        async with self._lanes.enter(session_id) as lane, lane.lock:
            yield

    def cancel(self, session_id: str) -> None:
        """Stop the turn of a session, and the prompts that wait to begin one; or a child's work.

        The session may be another client's by now: a turn that has words of this one in it still
        owes it an answer, and can be stopped by it.
        """
        parent = self._editor.parent_of(SessionId(session_id))
        if parent is not None:
            self.core.cancel_child(parent, SessionId(session_id), self._editor)
            return
        self._lanes.cancel(session_id)
        self.core.cancel(SessionId(session_id), self._editor)
        turn = self._turns.get(session_id)
        if turn is not None:
            turn.cancel()

    def takes_part(self, session_id: str, turn: Turn) -> None:
        """Words of this client are part of a turn."""
        self._turns[session_id] = turn

    async def moved(self, session: Session) -> None:
        """Wait until a session is not this client's any more."""
        await session.client.wait_detached(self._editor)

    async def change(
        self, session_id: str, action: Callable[[Session], Awaitable[None]]
    ) -> Session:
        """Do something to a session when the requests before this one are done."""
        async with self._lanes.enter(session_id) as lane, lane.lock:
            session = await self.get(session_id)
            await action(session)
            return session


def archive_filter(given: str | None) -> ArchiveFilter:
    """Which sessions a list is to have, by their being archived.

    Raises:
        InvalidInputError: there is no such filter.
    """
    match given:
        case None:
            return "exclude"
        case "exclude" | "include" | "only":
            return given
        case _:
            raise InvalidInputError(
                f"archived: there is no filter {given!r}; the filters are exclude, include, only",
                field="archived",
            )


class Lifecycle:
    """Sessions archived, named and looked up, as one connection may do it.

    Args:
        core: the sessions of the process.
        editor: the connection's end of them.
        operations: the connection's other ways to them, whose order this keeps.
    """

    def __init__(self, core: Core, editor: ClientEditor, operations: Operations) -> None:
        self._core = core
        self._editor = editor
        self._operations = operations

    async def archive(self, session_id: str) -> None:
        """Leave a session out of lists; see `acp_agent.session.shelf.archive`."""
        self._operations.refuse_child(session_id)
        self._operations.cancel(session_id)  # what waits for its turn in the lane ends, too
        async with self._operations.turn_of(session_id):
            await (await self._core.manager()).archive(SessionId(session_id))
            self._editor.forget(SessionId(session_id))

    async def unarchive(self, session_id: str) -> None:
        """Put a session into lists again; see `acp_agent.session.shelf.unarchive`."""
        async with self._operations.turn_of(session_id):
            await (await self._core.manager()).unarchive(SessionId(session_id))

    async def set_title(self, session_id: str, title: str) -> str:
        """Name a session; see `acp_agent.session.shelf.set_title`."""
        async with self._operations.turn_of(session_id):
            return await (await self._core.manager()).set_title(SessionId(session_id), title)

    async def look_up(self, session_id: str) -> Session | None:
        """A session that is open in this process; see `acp_agent.session.shelf.look_up`."""
        self._operations.refuse_child(session_id)
        return await (await self._core.manager()).look_up(SessionId(session_id))
