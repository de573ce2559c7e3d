"""Submits prompts: at once, into the running turn (steering), or after it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from acp_agent.content import ContentBlock
from acp_agent.errors import SessionNotFoundError, TurnRunsError
from acp_agent.server.extensions.meta import WhileRunning
from acp_agent.server.operations import Operations, SessionQueue
from acp_agent.session.commands.command import is_answered_at_once
from acp_agent.session.prompts import PromptResult, check_prompt
from acp_agent.session.session import Session
from protocol.jsonrpc.handlers import Call

_MOVED = " (another client opened it; the waiting prompt was dropped)"


class Prompts:
    """Submits the prompts of one connection.

    Args:
        operations: the sessions as the connection uses them.
    """

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    async def prompt(
        self,
        session_id: str,
        content: tuple[ContentBlock, ...],
        call: Call,
        *,
        while_running: WhileRunning | None = None,
    ) -> PromptResult:
        """Begin a turn or steer the running one; see `Session.prompt`.

        Cancelling the request cancels the turn that the prompt is part of. A prompt that may not
        steer waits for the running turn; cancelling its request then ends only the wait.

        Args:
            while_running: what to do while a turn runs; None: as configured.
        """
        async with self._operations.queues.join(session_id) as queue:
            cancels = queue.cancels
            return await self._submit(
                queue,
                session_id,
                content,
                call,
                while_running=while_running,
                cancelled=lambda: queue.cancels != cancels,
                on_cancel=lambda: self._operations.cancel(session_id),
            )

    async def steer(
        self, session_id: str, content: tuple[ContentBlock, ...], call: Call
    ) -> PromptResult:
        """Steer the running turn. Raises NoTurnError if no turn runs; the prompt was dropped."""
        async with self._operations.queues.join(session_id) as queue:
            cancels = queue.cancels
            call.on_cancel(lambda: self._operations.cancel(session_id))
            async with queue.lock:
                session = await self._operations.get(session_id)
                result = await session.prompts.submit(
                    content, cancelled=lambda: queue.cancels != cancels, steers=True
                )
                self._operations.record_turn(session_id, result.turn)
                return result

    async def insert(
        self,
        session_id: str,
        content: tuple[ContentBlock, ...],
        call: Call,
        *,
        while_running: WhileRunning | None = None,
    ) -> PromptResult:
        """Do as `prompt`, for a request that is answered once the prompt is in the conversation.

        Cancelling the request or the session withdraws a prompt that is not yet in it, and never
        cancels the turn that the prompt is part of.

        Raises:
            PromptCancelledError: the prompt was withdrawn.
        """
        async with self._operations.queues.join(session_id) as queue:
            cancels = queue.cancels
            return await self._submit(
                queue,
                session_id,
                content,
                call,
                while_running=while_running,
                cancelled=lambda: call.cancelled or queue.cancels != cancels,
                on_cancel=_ignore_cancel,
                withdrawable=True,
            )

    async def _submit(
        self,
        queue: SessionQueue,
        session_id: str,
        content: tuple[ContentBlock, ...],
        call: Call,
        *,
        while_running: WhileRunning | None,
        cancelled: Callable[[], bool],
        on_cancel: Callable[[], None],
        withdrawable: bool = False,
    ) -> PromptResult:
        """Submit a prompt at once, or after the running turn.

        `on_cancel` is called if the request is cancelled while the prompt does not wait.

        Raises:
            SessionNotFoundError: the session is not open here, or moved to another client while the
                prompt waited.
        """
        current_task, waits, wait_moved = asyncio.current_task(), False, False

        async def submit(session: Session, steers: bool | None) -> PromptResult:
            result = await session.prompts.submit(
                content, cancelled=cancelled, steers=steers, withdrawable=withdrawable
            )
            self._operations.record_turn(session_id, result.turn)
            return result

        def stop() -> None:
            if waits and current_task is not None:
                current_task.cancel()
            else:
                on_cancel()

        call.on_cancel(stop)
        async with queue.lock:
            session = await self._operations.get(session_id)
            queues = _queues(session, content, while_running)
            if queues:
                check_prompt(content)  # an invalid prompt fails without waiting
            if not (queues and session.prompts.queue.waiting):
                with contextlib.suppress(TurnRunsError):
                    return await submit(session, False if queues else None)

        async def stop_waiting_when_moved() -> None:
            nonlocal wait_moved
            await self._operations.wait_moved(session)
            wait_moved = True
            if waits and current_task is not None:
                current_task.cancel()

        waits = True
        watcher = asyncio.create_task(stop_waiting_when_moved())
        try:
            async with session.prompts.queue.slot():
                while True:
                    if session.turn is not None:
                        await session.turn.wait()
                    waits = False
                    async with queue.lock:
                        session = await self._operations.get(session_id)
                        with contextlib.suppress(TurnRunsError):
                            return await submit(session, steers=False)
                    waits = True
        except asyncio.CancelledError:
            if wait_moved and not call.cancelled:
                raise SessionNotFoundError(session_id, _MOVED) from None
            raise
        finally:
            watcher.cancel()


def _queues(
    session: Session, content: Sequence[ContentBlock], while_running: WhileRunning | None
) -> bool:
    """Return whether a prompt waits for the running turn. Commands answered at once never do."""
    if (while_running or session.core.services.config.steering) == "steer":
        return False
    return not is_answered_at_once(content)


def _ignore_cancel() -> None:
    """Do nothing; the task checks for cancellation itself."""
