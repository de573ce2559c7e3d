"""What a client can do with sessions, whichever version of the protocol it speaks.

The requests of one session are handled in the order in which they came: each waits in its lane
for those before it. The surfaces of the versions translate; nothing here knows a message's shape.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from acp_agent.content import ContentBlock
from acp_agent.errors import InvalidInputError, SessionNotFoundError, TurnRunsError
from acp_agent.events import SystemPromptGiven
from acp_agent.ids import SessionId
from acp_agent.server.core import Core
from acp_agent.server.editor import ClientEditor
from acp_agent.server.lanes import Lane, Lanes
from acp_agent.server.while_running import WhileRunning
from acp_agent.session.commands import is_answered_at_once
from acp_agent.session.prompter import Said
from acp_agent.session.session import Session
from acp_agent.session.store import ArchiveFilter, SessionPage
from protocol.jsonrpc.call import Call

if TYPE_CHECKING:
    from acp_agent.session.fork_point import ForkPoint


class Operations:
    """The sessions as one connection may use them.

    Args:
        core: the sessions of the process.
        editor: the connection's end of them.
    """

    def __init__(self, core: Core, editor: ClientEditor) -> None:
        self._core = core
        self._editor = editor
        self._lanes = Lanes()

    async def create(
        self,
        cwd: str,
        directories: Sequence[str],
        *,
        system_prompt: SystemPromptGiven | None = None,
    ) -> Session:
        """Start a session; see `SessionManager.create`."""
        manager = await self._core.manager()
        return await manager.create(cwd, directories, self._editor, system_prompt=system_prompt)

    async def system_prompt(self, mode: str, texts: Sequence[str]) -> SystemPromptGiven:
        """The client's instructions as they are kept; see `given_system_prompt`."""
        from acp_agent.session.system_prompt import given_system_prompt  # noqa: PLC0415 - rare

        services = await self._core.services()
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
            manager = await self._core.manager()
            session = await manager.open(
                SessionId(session_id), cwd, directories, system_prompt=system_prompt
            )

            async def settle() -> None:
                await then(session)
                # Last: a question that is open is asked of the editor at once, and must not come
                # before the call that it is about.
                session.attach(self._editor)

            try:
                await session.replay(settle)
            except BaseException:
                if session.editor.taken_by is None:
                    manager.abandon(session)
                raise
            return session

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
            manager = await self._core.manager()
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
        return (await self._core.manager()).get(SessionId(session_id), self._editor)

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
        """The sessions that have a conversation; see `SessionManager.list`.

        Raises:
            InvalidInputError: `archived` is none of the filters, or the cursor none of ours.
        """
        wanted = archive_filter(archived)
        return await (await self._core.manager()).list(cwd, cursor, wanted)

    async def delete(self, session_id: str) -> None:
        """Delete a session; one that is not there is gone as asked.

        Raises:
            SessionNotFoundError: it is a child of another.
        """
        self.refuse_child(session_id)
        self.cancel(session_id)  # what waits for its turn in the lane ends, too
        async with self._lanes.enter(session_id) as lane, lane.lock:
            await (await self._core.manager()).delete(SessionId(session_id))
            self._editor.forget(SessionId(session_id))

    async def close(self, session_id: str) -> None:
        """Stop what runs in a session and free it.

        Raises:
            SessionNotFoundError: it is not open on this connection.
        """
        self.refuse_child(session_id)
        self.cancel(session_id)  # what waits for its turn in the lane ends, too
        async with self._lanes.enter(session_id) as lane, lane.lock:
            await (await self._core.manager()).close(SessionId(session_id), self._editor)
            self._editor.forget(SessionId(session_id))

    async def prompt(
        self,
        session_id: str,
        content: tuple[ContentBlock, ...],
        call: Call,
        *,
        while_running: WhileRunning | None = None,
    ) -> Said:
        """Begin a turn, or say the words into the one that runs; see `Session.prompt`.

        Cancelling the request stops the turn that the words are part of. Where they must not steer
        they wait for the turn that runs, and cancelling the request then ends the wait alone.

        Args:
            session_id: the session.
            content: what the user says.
            call: the request.
            while_running: what becomes of words while a turn runs; None: as the settings say.
        """
        async with self._lanes.enter(session_id) as lane:
            cancels = lane.cancels
            return await self._say(
                lane,
                session_id,
                content,
                call,
                while_running=while_running,
                cancelled=lambda: lane.cancels != cancels,
                hurry=lambda: self.cancel(session_id),
            )

    async def steer(self, session_id: str, content: tuple[ContentBlock, ...], call: Call) -> Said:
        """Say the words into the turn that runs.

        Raises:
            NoTurnError: none runs; nothing was said.
        """
        async with self._lanes.enter(session_id) as lane:
            cancels = lane.cancels
            call.on_cancel(lambda: self.cancel(session_id))
            async with lane.lock:
                session = await self.get(session_id)
                return await session.prompt(
                    content, cancelled=lambda: lane.cancels != cancels, steers=True
                )

    async def insert(
        self,
        session_id: str,
        content: tuple[ContentBlock, ...],
        call: Call,
        *,
        while_running: WhileRunning | None = None,
    ) -> Said:
        """As `prompt`, for a request that is answered when its words are in the conversation.

        Cancelling the request, or the session, withdraws words that are not there yet; the request
        is nothing to the turn that they are part of.

        Raises:
            PromptCancelledError: they were withdrawn.
        """
        async with self._lanes.enter(session_id) as lane:
            cancels = lane.cancels
            return await self._say(
                lane,
                session_id,
                content,
                call,
                while_running=while_running,
                cancelled=lambda: call.cancelled or lane.cancels != cancels,
                hurry=_unhurried,
                withdrawable=True,
            )

    async def _say(
        self,
        lane: Lane,
        session_id: str,
        content: tuple[ContentBlock, ...],
        call: Call,
        *,
        while_running: WhileRunning | None,
        cancelled: Callable[[], bool],
        hurry: Callable[[], None],
        withdrawable: bool = False,
    ) -> Said:
        """Say the words, at once or when it is their turn.

        `hurry` is done where the request is cancelled and does not wait.
        """
        own, waits = asyncio.current_task(), False

        def stop() -> None:
            if waits and own is not None:
                own.cancel()
            else:
                hurry()

        call.on_cancel(stop)
        async with lane.lock:
            session = await self.get(session_id)
            queues = _queues(session, content, while_running)
            if not (queues and session.queue.waiting):
                with contextlib.suppress(TurnRunsError):
                    return await session.prompt(
                        content,
                        cancelled=cancelled,
                        steers=False if queues else None,
                        withdrawable=withdrawable,
                    )
        waits = True
        async with session.queue.place():
            while True:
                if session.turn is not None:
                    await session.turn.wait()
                waits = False
                async with lane.lock:
                    session = await self.get(session_id)
                    with contextlib.suppress(TurnRunsError):
                        return await session.prompt(
                            content, cancelled=cancelled, steers=False, withdrawable=withdrawable
                        )
                waits = True

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
        """Stop the turn of a session, and the prompts that wait to begin one; or a child's work."""
        parent = self._editor.parent_of(SessionId(session_id))
        if parent is not None:
            self._core.cancel_child(parent, SessionId(session_id), self._editor)
            return
        self._lanes.cancel(session_id)
        self._core.cancel(SessionId(session_id), self._editor)

    async def change(
        self, session_id: str, action: Callable[[Session], Awaitable[None]]
    ) -> Session:
        """Do something to a session when the requests before this one are done."""
        async with self._lanes.enter(session_id) as lane, lane.lock:
            session = await self.get(session_id)
            await action(session)
            return session


def _queues(
    session: Session, content: Sequence[ContentBlock], while_running: WhileRunning | None
) -> bool:
    """Whether words wait for the turn that runs. What the agent answers by itself never does."""
    if (while_running or session.services.config.steering) == "steer":
        return False
    return not is_answered_at_once(content)


def _unhurried() -> None:
    """Nothing is broken off: whoever was cancelled sees it at the next step."""


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
