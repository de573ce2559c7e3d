"""The turns of one session, one after the other: what is said begins one, or steers it.

What one of them does can be stopped by itself: a call, the child that works for it, its command.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from acp_agent.errors import (
    NoTurnError,
    PromptCancelledError,
    SessionNotFoundError,
    TurnRunsError,
)
from acp_agent.events import UserMessage
from acp_agent.ids import CallId, SessionId
from acp_agent.session.interruption import closing
from acp_agent.session.turn import Turn, no_such_call, no_such_terminal

if TYPE_CHECKING:
    from acp_agent.session.children.assignment import Assignment
    from acp_agent.session.session import Session


class Turns:
    """The turn that runs, and the way to the next one.

    Args:
        session: whose turns they are.

    Attributes:
        current: the turn that runs.
        compaction_wish: what matters to a user who wants the conversation compacted before the next
            request to the model; None: nobody does.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.current: Turn | None = None
        self.compaction_wish: str | None = None

    async def join_or_begin(
        self,
        message: UserMessage,
        assignment: Assignment,
        steers: bool | None = None,
        *,
        withdrawn: Callable[[], bool],
    ) -> Turn:
        """Make words part of the turn that runs, or begin one with them.

        Args:
            message: the words.
            assignment: what a turn is to do that begins with them; one that runs already gives the
                reply of it alone.
            steers: which of the two it must be; None: whichever can be.
            withdrawn: whether they are not to be said any more.

        Raises:
            TurnRunsError, NoTurnError, PromptCancelledError: see `Session.prompt`.
        """
        session = self._session
        self.check(steers)
        while (turn := self.current) is not None:
            if turn.takes_words:
                if withdrawn():
                    raise PromptCancelledError
                if not message.local:
                    turn.steered()
                await session.emit(
                    msgspec.structs.replace(message, steering=True), *assignment.reply
                )
                return turn
            await turn.wait()
            self.check(steers)
        await self._close_cut_turn()
        if withdrawn():
            raise PromptCancelledError
        if session.closing:
            raise SessionNotFoundError(session.session)
        turn = self.current = Turn(session, message, assignment)
        turn.start(on_end=self._ended)
        return turn

    @property
    def takes_words(self) -> bool:
        """Whether what is said now becomes part of a turn that runs."""
        return self.current is not None and self.current.takes_words

    def check(self, steers: bool | None) -> None:
        """Whether what is said now could become part of a turn, or begin one, as it must.

        Raises:
            TurnRunsError, NoTurnError: see `Session.prompt`.
        """
        runs = self.takes_words
        if steers is False and runs:
            raise TurnRunsError(f"a turn runs in the session {self._session.session}")
        if steers and not runs:
            raise NoTurnError(f"no turn runs in the session {self._session.session}")

    async def _close_cut_turn(self) -> None:
        """Close a turn whose end could not be written, as an interrupted one."""
        if not self._session.state.turn_is_open:
            return
        await self._session.emit(*closing(await self._session.history()))

    def _ended(self) -> None:
        self.current = None
        self._session.workbench.turn_ended()

    def finish_loop(self) -> bool:
        """Let there be no further round of the prompt that is repeated; whether there is one."""
        return self.current is not None and self.current.finish_loop()

    def cancel_call(self, call: CallId) -> None:
        """Stop one call of the turn that runs; the turn goes on, and so do its other calls.

        Accepted is not ended: that is seen by the call's end in the journal.

        Raises:
            InvalidInputError: there is no such call, or it has ended.
        """
        if self.current is None:
            raise no_such_call(call)
        self.current.cancel_call(call)

    def cancel_child(self, child: SessionId) -> bool:
        """Stop the work of a child session, and the call that it works for. False: it runs none."""
        call = self._session.children.call_of(child)
        if call is None:
            return False
        self.cancel_call(call)
        return True

    def cancel_terminal(self, terminal: str) -> None:
        """Stop the command of a call, whose id is also its terminal's; the call ends with it.

        One that goes on behind its call can be stopped at any time.

        Raises:
            InvalidInputError: there is no such command, or it has ended.
        """
        background = self._session.workbench.background
        if background is not None and background.stop_call(terminal):
            return
        if self.current is None:
            raise no_such_terminal(terminal)
        self.current.cancel_terminal(terminal)
