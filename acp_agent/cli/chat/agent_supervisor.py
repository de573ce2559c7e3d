"""Start the agent of a conversation and restart it after a crash."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from acp_agent.cli.chat.agent import FAILURES, Agent, AgentFailedError
from acp_agent.cli.chat.agent_failures import failure_text
from acp_agent.cli.chat.frontend import Frontend
from acp_agent.cli.chat.turns import Turns
from acp_agent.cli.localization import translate

QUICK_EXIT_SECONDS = 1.0  # for the agent to exit when the user does not want to wait
_MAX_CRASHES = 3  # within _CRASH_SECONDS; after that the agent is not restarted automatically
_CRASH_SECONDS = 60.0


class AgentSupervisor:
    """Restarts one agent when it crashes.

    Args:
        start: starts an agent. Raises AgentFailedError.
        frontend: reports that the agent exited or restarted.
        turns: fail with the agent and continue after a restart.
        reopen: reopens the session; returns false if it had to create a new one.
        spawn: runs a task in the background.

    Attributes:
        resumable: whether its sessions can be reopened.
    """

    def __init__(
        self,
        start: Callable[[], Awaitable[Agent]],
        frontend: Frontend,
        *,
        turns: Turns,
        reopen: Callable[[], Awaitable[bool]],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self.agent: Agent | None = None
        self.resumable = False
        self._start_agent = start
        self._frontend = frontend
        self._turns = turns
        self._reopen = reopen
        self._spawn = spawn
        self._crashes: deque[float] = deque(maxlen=_MAX_CRASHES)
        self._stopped = False
        self._start_lock = asyncio.Lock()

    async def start(self) -> None:
        """Start the agent. Raises AgentFailedError."""
        async with self._start_lock:
            await self._start()

    async def restart(self) -> None:
        """Restart the agent and reopen its session."""
        async with self._start_lock:
            await self._restart()

    def stop(self) -> Agent | None:
        """Stop watching; return the agent, if there is one, for the caller to end."""
        self._stopped = True
        agent, self.agent = self.agent, None
        return agent

    async def _start(self) -> None:
        self.agent = agent = await self._start_agent()
        self.resumable = agent.sessions.can["load"] or agent.sessions.can["resume"]
        self._spawn(self._watch(agent))

    async def _restart(self) -> None:
        agent, self.agent = self.agent, None
        self._frontend.refresh()
        if agent is not None:
            await agent.aclose(timeout=QUICK_EXIT_SECONDS)
        try:
            await self._start()
            reopened = await self._reopen()
        except AgentFailedError as error:
            self._frontend.say(
                translate("The agent could not be restarted: {why}", why=error), "bad"
            )
        except FAILURES as error:
            self._frontend.say(failure_text(error), "bad")
        else:
            text = (
                translate("The agent was restarted; the session continues.")
                if reopened
                else translate("The agent was restarted with a new session.")
            )
            self._frontend.say(text, "good")
            self._turns.send_next()
        self._frontend.refresh()

    async def _watch(self, agent: Agent) -> None:
        await agent.wait_ended()
        if self._stopped or agent is not self.agent:
            return
        self.agent = None
        await agent.aclose(timeout=QUICK_EXIT_SECONDS)
        message = translate("The agent exited unexpectedly: {how}", how=agent.exit_text())
        self._frontend.say(message, "bad")
        await self._turns.wait_until_answered()
        now = time.monotonic()
        too_often = len(self._crashes) == _MAX_CRASHES and now - self._crashes[0] < _CRASH_SECONDS
        self._crashes.append(now)
        if too_often:
            self._frontend.say(
                translate("The agent crashed too often; restart it with /restart."), "warning"
            )
            self._frontend.refresh()
            return
        async with self._start_lock:
            if self.agent is None:  # the user may have started it meanwhile
                await self._restart()
