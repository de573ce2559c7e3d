"""A turn of a session from the prompt that starts it to the response of every prompt in it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from acp_agent.agent.spoken import spoken
from acp_agent.content import TextBlock
from acp_agent.errors import AcpAgentError, InvalidInputError, ModelError, StoreError
from acp_agent.events import (
    StopReason,
    TitleChanged,
    TurnEnded,
    TurnStarted,
    Usage,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId, new_turn_id
from acp_agent.platform.open_files import limit_reached

if TYPE_CHECKING:
    from acp_agent.session.children.assignment import Assignment
    from acp_agent.session.session import Session
    from acp_agent.session.turn_host import SessionHost

TITLE_LENGTH = 80
UNAUTHORIZED = 401  # RFC 9110, section 15.5.2: it lacks valid credentials

_log = logging.getLogger(__name__)


class Turn:
    """A turn that runs in a task of its own, so that no single prompt's fate is the turn's.

    Args:
        session: whose turn it is.
        first: the words that it begins with.
        assignment: what it is to do with them.
    """

    def __init__(self, session: Session, first: UserMessage, assignment: Assignment) -> None:
        self._session = session
        self._first = first
        self._assignment = assignment
        self._id = new_turn_id()
        self._insertion: asyncio.Future[None] | None = None
        self._task: asyncio.Task[StopReason] | None = None
        self._host: SessionHost | None = None
        self._usage: Usage | None = None
        self._begun = False
        self._cancelled = False
        self._closing = False
        self._steered = False

    def start(self, *, on_end: Callable[[], None]) -> None:
        """Begin; `on_end` is called when the turn has ended, before any prompt is answered."""
        # Queued here and in one step: what the user said is kept even if they stop at once.
        self._insertion = self._session.write(TurnStarted(turn=self._id), self._first)
        self._insertion.add_done_callback(_retrieved)
        self._task = asyncio.create_task(self._run(on_end))
        self._task.add_done_callback(_retrieved)

    async def inserted(self) -> None:
        """Wait until the words that began the turn are in the conversation.

        Raises:
            StoreError: they could not be written.
        """
        assert self._insertion is not None
        await asyncio.shield(self._insertion)

    async def result(self) -> StopReason:
        """Wait for the end.

        Raises:
            AcpAgentError: what ended the turn, if it was an error.
        """
        assert self._task is not None
        return await asyncio.shield(self._task)

    async def wait(self) -> None:
        """Wait for the end, whatever it is."""
        assert self._task is not None
        await asyncio.wait([self._task])

    def cancel(self) -> None:
        """Stop what runs. Only the first call counts."""
        if self._task is None or self._cancelled or self._closing:
            return
        self._cancelled = True
        if self._begun:  # a task that has not begun would never see the cancellation
            self._task.cancel()

    def cancel_call(self, call: CallId) -> None:
        """Stop one call and let the turn go on.

        Raises:
            InvalidInputError: there is no such call, or it has ended.
        """
        if self._host is None:
            raise no_such_call(call)
        if not (self._host.open_calls.stop(call) or self._session.children.stop(call)):
            raise no_such_call(call)

    def cancel_terminal(self, terminal: str) -> None:
        """Stop the command that a call runs; see `Turns.cancel_terminal`.

        Raises:
            InvalidInputError: there is no such command, or it has ended.
        """
        call = CallId(terminal)
        if self._host is None:
            raise no_such_terminal(terminal)
        if not (
            self._host.open_calls.stop_command(call) or self._session.children.stop_command(call)
        ):
            raise no_such_terminal(terminal)

    def finish_loop(self) -> bool:
        """Let there be no further round of the turn's prompt; whether it is repeated at all."""
        if self._assignment.repetition is None:
            return False
        self._assignment.repetition.finished = True
        return True

    def began_with(self, message: MessageId) -> bool:
        """Whether these were its first words."""
        return self._first.message == message

    @property
    def usage(self) -> Usage | None:
        """What the turn took; None while it runs, and where no model said."""
        return self._usage

    @property
    def takes_words(self) -> bool:
        """Whether what the user says now can still become part of the turn."""
        return not self._closing and not self._cancelled

    def steered(self) -> None:
        """The user says something into it that is for the model."""
        self._steered = True

    async def _run(self, on_end: Callable[[], None]) -> StopReason:
        session = self._session
        stop: StopReason | None = None
        error: AcpAgentError | None = None
        self._begun = True
        try:
            try:
                stop = await self._work()
            except asyncio.CancelledError:
                stop = "cancelled"
            except AcpAgentError as failure:
                error = failure
            except Exception as failure:  # noqa: BLE001 - told to the user, and logged
                _log.exception("turn %s broke", self._id)
                limited = limit_reached(failure)
                error = AcpAgentError(
                    f"the turn cannot go on: {limited}"
                    if limited is not None
                    else f"the turn broke by a fault of the agent's ({type(failure).__name__}); "
                    f"the log has the details under {self._id}"
                )
            self._closing = True
            if self._cancelled:
                self._uncancel()
                if not isinstance(error, StoreError):
                    # Whatever broke while it was being stopped is no news to who stopped it
                    # (Agent Client Protocol v1, Prompt Turn, Cancellation).
                    stop, error = "cancelled", None
            await session.settled()  # what the turn took is counted from the journal
            if self._host is not None:
                self._heard(stop, error)
            await session.workbench.turn_ends(cancelled=self._cancelled)
            if self._is_inserted():  # else nobody has heard of the turn
                self._usage = session.state.turn_usage
                error = await self._write_end(stop, error)
        finally:
            on_end()
        if error is not None:
            raise error
        assert stop is not None
        return stop

    def _heard(self, stop: StopReason | None, error: AcpAgentError | None) -> None:
        """Let the account know whether the provider took its key."""
        account = self._session.services.account
        if isinstance(error, ModelError):
            if error.status == UNAUTHORIZED:
                account.heard(error.provider, refused=True)
        elif error is None and stop != "cancelled":
            assert self._host is not None
            account.heard(self._host.model.provider, refused=False)

    async def _write_end(
        self, stop: StopReason | None, error: AcpAgentError | None
    ) -> AcpAgentError | None:
        """Write the turn's end; gives the error that it ended with, which writing may have been."""
        session = self._session
        ended = TurnEnded(
            turn=self._id,
            stop_reason=stop,
            error="" if error is None else str(error),
            error_kind="" if error is None else error.kind,
            usage=self._usage,
        )
        title = self._title()
        try:
            await session.emit(*title, ended)
            if title and stop == "end_turn":
                self._look_for_a_better(title[0].title)
        except AcpAgentError as failure:
            error = error or failure  # what came first says more
            told = msgspec.structs.replace(
                ended, stop_reason=None, error=str(error), error_kind=error.kind
            )
            # Though it is not kept: who was told of the turn has to be told that it ended.
            await session.tell(told)
        return error

    def _is_inserted(self) -> bool:
        insertion = self._insertion
        return insertion is not None and insertion.done() and insertion.exception() is None

    async def _work(self) -> StopReason:
        await self.inserted()
        if self._cancelled:
            return "cancelled"
        stop = await self._begin()
        while stop in {"end_turn", "max_tokens"} and await self._has_unheard_words():
            if self._host is not None and self._host.over_budget:
                break  # another request would be refused like the last one
            stop = await self._ask_model()
        return stop

    async def _begin(self) -> StopReason:
        """Do with the first words what is to be done with them."""
        session, assignment = self._session, self._assignment
        if assignment.work is not None:
            working = await session.workbench.equip()
            await session.emit(*spoken(await assignment.work(working)))
            return "end_turn"
        if assignment.reply:
            await session.emit(*assignment.reply)
            return "end_turn"
        return await self._ask_model(assignment)

    async def _ask_model(self, assignment: Assignment | None = None) -> StopReason:
        """Let the model work on what was said; `assignment` says how, where it is not as ever."""
        session = self._session
        chosen = None if assignment is None else assignment.chosen
        host = self._host = await session.workbench.equip(chosen)
        await session.extensions.ready()
        await host.write_system_prompt()

        from acp_agent.agent.turn import make_call, run_turn  # noqa: PLC0415 - for prompts only
        from acp_agent.session.last_word import last_word  # noqa: PLC0415 - likewise

        async with host.turn_slot():
            if assignment is not None and assignment.repetition is not None:
                stop = await assignment.repetition.run(host)
            else:
                if assignment is not None and assignment.call is not None:
                    await make_call(host, *assignment.call)
                stop = await run_turn(host)
        await session.settled()
        if not host.over_budget:  # which was told already
            await session.emit(*last_word(stop, session.context, host.translate))
        return stop

    async def _has_unheard_words(self) -> bool:
        """Whether the user said something that no model was asked about.

        The agent may have had work of its own to do, or a last word to say, when they said it.
        """
        await self._session.settled()
        return self._steered and self._session.context.has_unheard_words

    def _uncancel(self) -> None:
        """The cancellation is dealt with; what is left to write must not be cut off by it."""
        assert self._task is not None
        while self._task.cancelling():
            self._task.uncancel()

    def _look_for_a_better(self, title: str) -> None:
        """Let a model find a better title, while nobody waits for it."""
        session, host = self._session, self._host
        if host is not None and session.services.config.titles == "model":
            from acp_agent.session.naming import name  # noqa: PLC0415 - for first turns only

            session.beside(name(session, host, self._first, title))

    def _title(self) -> list[TitleChanged]:
        if self._session.state.title is not None or self._first.local:
            return []
        for block in self._first.content:
            if isinstance(block, TextBlock) and block.text.strip():
                line = block.text.strip().splitlines()[0].strip()
                short = line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…"
                return [TitleChanged(title=short)]
        return []


def no_such_call(call: CallId) -> InvalidInputError:
    """Nothing that could be stopped."""
    return InvalidInputError(
        f"toolCallId: no call {call!r} is open; it may have ended already", field="toolCallId"
    )


def no_such_terminal(terminal: str) -> InvalidInputError:
    """Nothing that could be stopped."""
    return InvalidInputError(
        f"terminalId: no command runs in {terminal!r}; it may have exited already",
        field="terminalId",
    )


def _retrieved(outcome: asyncio.Future[Any]) -> None:
    """A turn may fail with nobody waiting for it any more; that is no fault to report."""
    if not outcome.cancelled():
        outcome.exception()
