"""What a client says in sessions: at once, into the turn that runs, or when that has ended.

The surfaces of the versions translate; nothing here knows a message's shape.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from acp_agent.content import ContentBlock
from acp_agent.errors import SessionNotFoundError, TurnRunsError
from acp_agent.server.extensions.meta import WhileRunning
from acp_agent.server.operations import Lane, Lanes, Operations
from acp_agent.session.commands.command import is_answered_at_once
from acp_agent.session.prompts import PromptResult, check_prompt
from acp_agent.session.session import Session
from protocol.jsonrpc.call import Call

_MOVED = " (another client opened it; the prompt that waited was not said)"


class Prompts:
    """The prompts of one connection.

    Args:
        operations: the connection's other ways to the sessions.
        lanes: the order of its requests, which this keeps.
    """

    def __init__(self, operations: Operations, lanes: Lanes) -> None:
        self._operations = operations
        self._lanes = lanes

    async def prompt(
        self,
        session_id: str,
        content: tuple[ContentBlock, ...],
        call: Call,
        *,
        while_running: WhileRunning | None = None,
    ) -> PromptResult:
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
                hurry=lambda: self._operations.cancel(session_id),
            )

    async def steer(
        self, session_id: str, content: tuple[ContentBlock, ...], call: Call
    ) -> PromptResult:
        """Say the words into the turn that runs.

        Raises:
            NoTurnError: none runs; nothing was said.
        """
        async with self._lanes.enter(session_id) as lane:
            cancels = lane.cancels
            call.on_cancel(lambda: self._operations.cancel(session_id))
            async with lane.lock:
                session = await self._operations.get(session_id)
                said = await session.prompts.submit(
                    content, cancelled=lambda: lane.cancels != cancels, steers=True
                )
                self._operations.takes_part(session_id, said.turn)
                return said

    async def insert(
        self,
        session_id: str,
        content: tuple[ContentBlock, ...],
        call: Call,
        *,
        while_running: WhileRunning | None = None,
    ) -> PromptResult:
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
    ) -> PromptResult:
        """Say the words, at once or when it is their turn.

        `hurry` is done where the request is cancelled and does not wait.

        Raises:
            SessionNotFoundError: the session is not this client's, or went to another client while
                the words waited.
        """
        own, waits, moved = asyncio.current_task(), False, False

        async def say(session: Session, steers: bool | None) -> PromptResult:
            said = await session.prompts.submit(
                content, cancelled=cancelled, steers=steers, withdrawable=withdrawable
            )
            self._operations.takes_part(session_id, said.turn)
            return said

        def stop() -> None:
            if waits and own is not None:
                own.cancel()
            else:
                hurry()

        call.on_cancel(stop)
        async with lane.lock:
            session = await self._operations.get(session_id)
            queues = _queues(session, content, while_running)
            if queues:
                check_prompt(content)  # what can never be said need not wait
            if not (queues and session.prompts.queue.waiting):
                with contextlib.suppress(TurnRunsError):
                    return await say(session, False if queues else None)

        async def end_when_moved() -> None:
            nonlocal moved
            await self._operations.moved(session)
            moved = True
            if waits and own is not None:
                own.cancel()

        waits = True
        watcher = asyncio.create_task(end_when_moved())
        try:
            async with session.prompts.queue.place():
                while True:
                    if session.turn is not None:
                        await session.turn.wait()
                    waits = False
                    async with lane.lock:
                        session = await self._operations.get(session_id)
                        with contextlib.suppress(TurnRunsError):
                            return await say(session, steers=False)
                    waits = True
        except asyncio.CancelledError:
            if moved and not call.cancelled:
                raise SessionNotFoundError(session_id, _MOVED) from None
            raise
        finally:
            watcher.cancel()


def _queues(
    session: Session, content: Sequence[ContentBlock], while_running: WhileRunning | None
) -> bool:
    """Whether words wait for the turn that runs. What the agent answers by itself never does."""
    if (while_running or session.core.services.config.steering) == "steer":
        return False
    return not is_answered_at_once(content)


def _unhurried() -> None:
    """Nothing is broken off: whoever was cancelled sees it at the next step."""
