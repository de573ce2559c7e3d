"""The open session of a chat: create, load, fork or reopen it, and apply its updates."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from acp_agent.cli.chat.agent import FAILURES, Agent
from acp_agent.cli.chat.frontend import Frontend
from acp_agent.cli.chat.session_state import Calls, Choice, SessionSettings, SessionState
from acp_agent.cli.localization import translate, translate_rendered
from protocol.jsonrpc.messages import AUTH_REQUIRED, RpcError
from protocol.v1 import types as acp

_MAX_EARLY_UPDATES = 1_000  # updates that are stored for a session whose ID is not known yet


class OpenSession:
    """Holds one session at a time; opening another one replaces it.

    Methods that open a session raise RpcError, ConnectionError or TimeoutError if the agent does
    not open it; then the previous one stays open.

    Args:
        spawn: runs a task in the background.
    """

    def __init__(
        self, frontend: Frontend, *, cwd: Path, spawn: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        self.state = SessionState()
        self.calls = Calls()
        self._frontend = frontend
        self._cwd = cwd
        self._spawn = spawn
        self._is_muted = False  # while updates arrive that are already on the screen
        # Updates of a session that is being created; they may arrive before its ID does.
        self._early: list[acp.SessionNotification] | None = None

    async def create(self, agent: Agent) -> bool:
        """Create a session, after a login if needed; return whether that worked."""
        self._early = []
        try:
            response = await self._request_new(agent)
        finally:
            early, self._early = self._early, None
        if response is None:
            return False
        self._close_previous(agent, response.session_id)
        self._reset(response.session_id)
        self.state.apply(response)
        for params in early:
            self.receive_update(params)
        return True

    async def load(self, agent: Agent, session: str) -> None:
        """Open an earlier session and show it."""
        before, calls = self.state, self.calls
        self._reset(session)  # the replay belongs to this session
        self._frontend.start_replay()
        settings: SessionSettings
        try:
            if agent.sessions.can["load"]:
                settings = await agent.sessions.load(session, self._cwd)
            else:
                settings = await agent.sessions.resume(session, self._cwd)
        except BaseException:
            self.state, self.calls = before, calls
            raise
        finally:
            self._frontend.end_replay()
        self.state.apply(settings)
        self.state.prompted = True
        if before.id and before.id != session:
            self._spawn(self._close(agent, before.id))

    async def reopen(self, agent: Agent) -> bool:
        """Reopen the session after a restart of the agent.

        Returns:
            False if a new one had to be created.
        """
        session = self.state.id
        if session and agent.sessions.can["resume"]:
            self.state.apply(await agent.sessions.resume(session, self._cwd))
        elif session and agent.sessions.can["load"]:
            self._is_muted = True
            try:
                self.state.apply(await agent.sessions.load(session, self._cwd))
            finally:
                self._is_muted = False
        else:
            await self.create(agent)
            return False
        return True

    async def fork(self, agent: Agent) -> None:
        """Continue in a copy of the session; the screen keeps the common part."""
        self._early = []
        try:
            response = await agent.sessions.fork(self.state.id, self._cwd)
        finally:
            early, self._early = self._early, None
        self._close_previous(agent, response.session_id)
        self.state = SessionState(response.session_id, prompted=self.state.prompted)
        self.state.apply(response)
        self._is_muted = True
        for params in early:
            self.receive_update(params)
        self._is_muted = False

    def receive_update(self, params: acp.SessionNotification) -> None:
        """Show an update of the open session; ignore those of previous ones."""
        if params.session_id != self.state.id:
            if self._early is not None and len(self._early) < _MAX_EARLY_UPDATES:
                self._early.append(params)
            return
        update = params.update
        if isinstance(update, acp.ToolCall | acp.ToolCallProgress):
            self.calls.update(update)
        if self.state.update(update):
            self._frontend.refresh()
        if not self._is_muted:
            self._frontend.show(update)

    async def _request_new(self, agent: Agent) -> acp.NewSessionResponse | None:
        while True:
            try:
                return await agent.sessions.create(self._cwd)
            except RpcError as error:
                if error.code != AUTH_REQUIRED or not agent.auth_methods:
                    raise
                self._frontend.say(translate_rendered(error.message), "warning")
            if not await log_in(agent, self._frontend):
                return None

    def _reset(self, session: str) -> None:
        self.state = SessionState(session)
        self.calls = Calls()

    def _close_previous(self, agent: Agent, successor: str) -> None:
        if self.state.id and self.state.id != successor:
            self._spawn(self._close(agent, self.state.id))

    async def _close(self, agent: Agent, session: str) -> None:
        try:
            await agent.sessions.close(session)
        except FAILURES:  # the session is no longer used
            return


async def log_in(agent: Agent, frontend: Frontend) -> bool:
    """Ask the user for a login method; return whether the login worked. Raises ConnectionError."""
    methods = {
        method.id: method
        for method in agent.auth_methods
        if isinstance(method, acp.AuthMethodAgent | acp.AuthMethodTerminal)
    }
    items = [
        Choice(method.id, method.name, method.description or "") for method in methods.values()
    ]
    while True:
        method_id = await frontend.pick(translate("How do you want to log in?"), items)
        method = None if method_id is None else methods.get(method_id)
        if method is None:
            return False
        if isinstance(method, acp.AuthMethodTerminal):
            if await frontend.run_program([*agent.command, *method.args], method.env) == 0:
                return True
            frontend.say(translate("The login failed."), "bad")
            continue
        try:
            await agent.authenticate(method.id)
        except RpcError as error:
            frontend.say(translate_rendered(error.message), "bad")
        else:
            return True
