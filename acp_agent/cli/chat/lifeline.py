"""The agent's process in a conversation: started, watched, and started again when it ends."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from acp_agent.cli.chat.agent import FAILURES, Agent, AgentFailedError, Listener
from acp_agent.cli.chat.front import Front
from acp_agent.cli.chat.remains import why_failed
from acp_agent.cli.chat.turns import Turns
from acp_agent.cli.chat.wishes import Wishes
from acp_agent.cli.localization import translate

HURRY_SECONDS = 1.0  # for the agent to end when the user does not want to wait
_CRASHES = 3  # within _CRASH_SECONDS, after which it is not started again by itself
_CRASH_SECONDS = 60.0


class Lifeline:
    """Sees to it that there is an agent, and only one.

    Args:
        wishes: what starts it, where, and how long that may take.
        listener: hears what it says.
        front: where its end and its return are told.
        turns: what the user says; they fail with the agent, and go on with the next one.
        reopen: opens the session again; false where it had to be a new one.
        spawn: runs the watch over it beside everything else.

    Attributes:
        agent: the agent; None while there is none.
        resumable: whether its sessions can be gone on with.
    """

    def __init__(
        self,
        wishes: Wishes,
        listener: Listener,
        front: Front,
        *,
        turns: Turns,
        reopen: Callable[[], Awaitable[bool]],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self.agent: Agent | None = None
        self.resumable = False
        self._wishes = wishes
        self._listener = listener
        self._front = front
        self._turns = turns
        self._reopen = reopen
        self._spawn = spawn
        self._crashes: deque[float] = deque(maxlen=_CRASHES)
        self._released = False
        self._starting = asyncio.Lock()  # who starts it while it is being started waits

    async def start(self) -> None:
        """Start the agent.

        Raises:
            AgentFailedError: as `Agent.start`.
        """
        async with self._starting:
            await self._start()

    async def restart(self) -> None:
        """Start the agent again, and have the session opened again that was open."""
        async with self._starting:
            await self._restart()

    def release(self) -> Agent | None:
        """Leave the agent, if there is one, to the caller, who ends it."""
        self._released = True
        agent, self.agent = self.agent, None
        return agent

    async def _start(self) -> None:
        wishes = self._wishes
        self.agent = agent = await Agent.start(
            wishes.command, self._listener, cwd=wishes.cwd, timeout=wishes.patience
        )
        self.resumable = agent.sessions.loads or agent.sessions.resumes
        self._spawn(self._watch(agent))

    async def _restart(self) -> None:
        agent, self.agent = self.agent, None
        self._front.changed()
        if agent is not None:
            await agent.aclose(patience=HURRY_SECONDS)
        try:
            await self._start()
            reopened = await self._reopen()
        except AgentFailedError as error:
            self._front.say(translate("It cannot be started again: {why}", why=error), "bad")
        except FAILURES as error:
            self._front.say(why_failed(error), "bad")
        else:
            if reopened:
                self._front.say(
                    translate("The agent was started again; the session goes on."), "good"
                )
            else:
                self._front.say(
                    translate("The agent was started again, with a new session."), "good"
                )
            self._turns.go_on()
        self._front.changed()

    async def _watch(self, agent: Agent) -> None:
        await agent.wait_ended()
        if self._released or agent is not self.agent:
            return
        self.agent = None
        await agent.aclose(patience=HURRY_SECONDS)
        message = translate("The agent ended unexpectedly: {how}", how=agent.how_it_ended())
        self._front.say(message, "bad")
        await self._turns.settled()
        now = time.monotonic()
        often = len(self._crashes) == _CRASHES and now - self._crashes[0] < _CRASH_SECONDS
        self._crashes.append(now)
        if often:
            self._front.say(translate("It ended too often; /restart starts it again."), "warning")
            self._front.changed()
            return
        async with self._starting:
            if self.agent is None:  # nobody else started it meanwhile
                await self._restart()
