"""The session that is open: opened in each of the ways there are, and kept up to date."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from acp_agent.cli.chat.agent import FAILURES, Agent
from acp_agent.cli.chat.calls import Calls
from acp_agent.cli.chat.front import Front
from acp_agent.cli.chat.login import log_in
from acp_agent.cli.chat.state import Opened, SessionState
from acp_agent.cli.localization import translate_rendered
from protocol.jsonrpc.errors import AUTH_REQUIRED, RpcError
from protocol.v1 import types as acp

_EARLY = 1_000  # updates of a session whose id is not known yet


class OpenSession:
    """One session at a time; another one that is opened takes its place.

    Every way to open one raises RpcError, ConnectionError or TimeoutError where the agent does not
    open it; the one before stays open then.

    Args:
        front: shows what is said in it.
        cwd: the folder that it works in.
        spawn: lets the one before go, beside everything else.

    Attributes:
        state: what is known of it.
        calls: its tool calls.
    """

    def __init__(
        self, front: Front, *, cwd: Path, spawn: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        self.state = SessionState()
        self.calls = Calls()
        self._front = front
        self._cwd = cwd
        self._spawn = spawn
        self._muted = False  # while something comes that is on the screen already
        self._early: list[acp.SessionNotification] | None = None  # of a session being made

    async def begin(self, agent: Agent) -> bool:
        """Begin a new session, after a login where one is needed; whether there is one."""
        self._early = []
        try:
            made = await self._make(agent)
        finally:
            early, self._early = self._early, None
        if made is None:
            return False
        self._let_go(agent, made.session_id)
        self._fresh(made.session_id)
        self.state.opened(made.session_id, made)
        for params in early:
            self.updated(params)
        return True

    async def _make(self, agent: Agent) -> acp.NewSessionResponse | None:
        while True:
            try:
                return await agent.sessions.new(self._cwd)
            except RpcError as error:
                if error.code != AUTH_REQUIRED or not agent.auth_methods:
                    raise
                self._front.say(translate_rendered(error.message), "warning")
            if not await log_in(agent, self._front):
                return None

    async def load(self, agent: Agent, session: str) -> None:
        """Open an earlier session and show it."""
        before, calls = self.state, self.calls
        self._fresh(session)  # the replay is of this one
        self._front.replaying(session)
        made: Opened
        try:
            if agent.sessions.loads:
                made = await agent.sessions.load(session, self._cwd)
            else:
                made = await agent.sessions.resume(session, self._cwd)
        except BaseException:
            self.state, self.calls = before, calls
            raise
        finally:
            self._front.replaying("")
        self.state.opened(session, made)
        self.state.prompted = True
        if before.id and before.id != session:
            self._spawn(self._close(agent, before.id))

    async def reopen(self, agent: Agent) -> bool:
        """Open the session again that was open, in an agent that was started again.

        Returns:
            False where it had to be a new one.
        """
        session = self.state.id
        if session and agent.sessions.resumes:
            self.state.opened(session, await agent.sessions.resume(session, self._cwd))
        elif session and agent.sessions.loads:
            self._muted = True
            try:
                self.state.opened(session, await agent.sessions.load(session, self._cwd))
            finally:
                self._muted = False
        else:
            await self.begin(agent)
            return False
        return True

    async def fork(self, agent: Agent) -> None:
        """Go on in a copy of the session; the screen shows what both have said so far."""
        self._early = []
        try:
            made = await agent.sessions.fork(self.state.id, self._cwd)
        finally:
            early, self._early = self._early, None
        self._let_go(agent, made.session_id)
        prompted = self.state.prompted
        self.state = SessionState()
        self.state.opened(made.session_id, made)
        self.state.prompted = prompted
        self._muted = True
        for params in early:
            self.updated(params)
        self._muted = False

    def updated(self, params: acp.SessionNotification) -> None:
        """Show an update of the open session; others are of sessions that were left."""
        if params.session_id != self.state.id:
            # What comes right behind the response is read before whoever waits for that goes on.
            if self._early is not None and len(self._early) < _EARLY:
                self._early.append(params)
            return
        update = params.update
        if isinstance(update, acp.ToolCall | acp.ToolCallProgress):
            self.calls.update(update)
        if self.state.update(update):
            self._front.changed()
        if not self._muted:
            self._front.show(update)

    def _fresh(self, session: str) -> None:
        self.state = SessionState()
        self.state.id = session
        self.calls = Calls()

    def _let_go(self, agent: Agent, successor: str) -> None:
        if self.state.id and self.state.id != successor:
            self._spawn(self._close(agent, self.state.id))

    async def _close(self, agent: Agent, session: str) -> None:
        try:
            await agent.sessions.close(session)
        except FAILURES:  # it is left, however that went
            return
