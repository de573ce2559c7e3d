"""Run the turns of a session one at a time: a prompt begins a turn, or steers the running one.

The runner can also stop a single call, child session or command of a turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from acp_agent.errors import NoTurnError, PromptCancelledError, SessionNotFoundError, TurnRunsError
from acp_agent.events import UserMessage, agent_notice
from acp_agent.ids import CallId, SessionId
from acp_agent.session.children.running import RunningChildren
from acp_agent.session.core import SessionCore
from acp_agent.session.history.interruption import close_open_turn
from acp_agent.session.turns.resources import SessionResources
from acp_agent.session.turns.turn import Turn, no_such_call, no_such_terminal

if TYPE_CHECKING:  # first needed when a prompt runs
    from acp_agent.session.turns.plan import TurnPlan


class TurnRunner:
    """Starts, steers and stops the turns of a session.

    Attributes:
        current: the running turn; None if the session is idle.
        lock: held while a prompt is added to a turn.
    """

    def __init__(
        self, core: SessionCore, resources: SessionResources, children: RunningChildren
    ) -> None:
        self.current: Turn | None = None
        self.lock = asyncio.Lock()
        self._core = core
        self._resources = resources
        self._children = children

    @property
    def is_steerable(self) -> bool:
        """Return whether a prompt would become part of the running turn."""
        return self.current is not None and self.current.is_steerable

    def check(self, steers: bool | None) -> None:
        """Check that a prompt can steer (true) or begin a turn (false); None is always valid.

        Raises:
            TurnRunsError, NoTurnError: see `acp_agent.session.prompts.PromptHandler.submit`.
        """
        if steers is False and self.is_steerable:
            raise TurnRunsError(f"a turn runs in the session {self._core.id}")
        if steers and not self.is_steerable:
            raise NoTurnError(f"no turn runs in the session {self._core.id}")

    async def submit(
        self,
        message: UserMessage,
        plan: TurnPlan,
        *,
        steers: bool | None,
        withdrawn: Callable[[], bool],
    ) -> Turn:
        """Add a message to the running turn, or begin a turn with it.

        Args:
            message: the message.
            plan: the plan of a new turn; a running turn uses only its reply.
            steers: true if it must steer, false if it must begin a turn; None allows both.

        Raises:
            TurnRunsError, NoTurnError, PromptCancelledError: see
                `acp_agent.session.prompts.PromptHandler.submit`.
        """
        self.check(steers)
        if self.is_steerable and not message.local:  # a new turn runs the hooks itself
            refusal = await self._resources.refuse_prompt(message.content)
            if refusal:
                message = replace(message, local=True)
                plan = replace(plan, reply=agent_notice(refusal), action=None)
        while (turn := self.current) is not None:
            if turn.is_steerable:
                if withdrawn():
                    raise PromptCancelledError
                await turn.steer(message, plan.reply)
                return turn
            await turn.wait()
            self.check(steers)
        if self._core.state.turn_is_open:  # writing its end failed
            await self._core.emit(*close_open_turn(await self._core.history()))
        if withdrawn():
            raise PromptCancelledError
        if self._core.closing:
            raise SessionNotFoundError(self._core.id)

        def clear() -> None:
            self.current = None

        turn = self.current = Turn(
            self._core, self._resources, self._children, first=message, plan=plan, on_end=clear
        )
        return turn

    @asynccontextmanager
    async def idle(self) -> AsyncIterator[None]:
        """Prevent turns from beginning inside the `with` block. Raises TurnRunsError."""
        self._check_idle()
        async with self.lock:
            self._check_idle()  # a turn may have begun
            yield

    def _check_idle(self) -> None:
        if self.current is not None:
            raise TurnRunsError("a turn runs in the session; stop it before going back")

    def cancel(self) -> None:
        """Stop the running turn. Does nothing when idle."""
        if self.current is not None:
            self.current.cancel()

    def cancel_call(self, call: CallId) -> None:
        """Stop one call of the running turn; the turn and its other calls continue.

        The call has stopped when its end is in the journal.

        Raises:
            InvalidInputError: there is no such call, or it has ended.
        """
        if self.current is None:
            raise no_such_call(call)
        self.current.cancel_call(call)

    def cancel_child(self, child: SessionId) -> bool:
        """Stop a child session and its call; return False if it is not running."""
        call = self._children.find_call(child)
        if call is None:
            return False
        self.cancel_call(call)
        return True

    def cancel_terminal(self, terminal: str) -> None:
        """Stop the command of a call, which ends the call; the terminal has the id of the call.

        A background command can be stopped at any time.

        Raises:
            InvalidInputError: there is no such command, or it has ended.
        """
        background = self._resources.background
        if background is not None and background.stop_call(terminal):
            return
        if self.current is None:
            raise no_such_terminal(terminal)
        self.current.cancel_terminal(terminal)
