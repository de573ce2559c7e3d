"""A conversation in the terminal: the agent, its sessions, and what it tells of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from acp_agent.cli.agent_client import EXIT_SECONDS
from acp_agent.cli.chat.agent import FAILURES, Agent, AgentFailedError
from acp_agent.cli.chat.calls import Calls
from acp_agent.cli.chat.front import Front
from acp_agent.cli.chat.lifeline import HURRY_SECONDS, Lifeline
from acp_agent.cli.chat.login import log_in
from acp_agent.cli.chat.open_session import OpenSession
from acp_agent.cli.chat.remains import why_failed
from acp_agent.cli.chat.requests import Requests
from acp_agent.cli.chat.state import SessionState
from acp_agent.cli.chat.turns import Turns
from acp_agent.cli.chat.wishes import ChatError, Wishes
from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.errors import AcpAgentError, InvalidInputError
from protocol.jsonrpc.errors import METHOD_NOT_FOUND, RpcError
from protocol.v1 import types as acp

LISTED = 200  # sessions that are offered


class Conversation:
    """Between the user at a front and an agent.

    `begin` it, give its `turns` what the user types, and end it with `aclose`. It is the agent's
    listener.

    Args:
        wishes: how it is to begin.
        front: the user's terminal.
        along: takes what goes along with the next prompt.

    Attributes:
        turns: what the user says to the agent.
    """

    def __init__(self, wishes: Wishes, front: Front, along: Callable[[], Sequence[str]]) -> None:
        self.wishes = wishes
        self._front = front
        self._open = OpenSession(front, cwd=wishes.cwd, spawn=self._spawn)
        self.updated = self._open.updated
        self.turns = Turns(
            front,
            agent=lambda: self.agent,
            state=lambda: self.state,
            ended=self._turn_over,
            along=along,
            cwd=wishes.cwd,
        )
        self._requests = Requests(
            front,
            calls=lambda: self.calls,
            instead=self.turns.correct,
            wanted=lambda session: session == self.state.id and not self.turns.cancelling,
            cwd=wishes.cwd,
        )
        self.permission = self._requests.permission
        self.elicitation = self._requests.elicitation
        self.elicitation_completed = self._requests.elicitation_completed
        self._lifeline = Lifeline(
            wishes, self, front, turns=self.turns, reopen=self._reopen, spawn=self._spawn
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._garbage_told = False

    # --- what the front looks at

    @property
    def state(self) -> SessionState:
        """What is known of the open session."""
        return self._open.state

    @property
    def calls(self) -> Calls:
        """The tool calls of the open session."""
        return self._open.calls

    @property
    def resumable(self) -> bool:
        """Whether the session can be gone on with."""
        return bool(self.state.id) and self._lifeline.resumable

    @property
    def agent(self) -> Agent | None:
        """The agent; None while there is none."""
        return self._lifeline.agent

    # --- its beginning and its end

    async def begin(self) -> None:
        """Start the agent and open a session.

        Raises:
            ChatError: that does not work; the message says why.
        """
        try:
            await self._lifeline.start()
        except AgentFailedError as error:
            raise ChatError(str(error)) from None
        try:
            if self.wishes.resume is None:
                opened = await self.new_session()
            else:
                await self.load(await self._session_to_resume(self.wishes.resume))
                opened = True
        except FAILURES as error:
            raise ChatError(why_failed(error)) from None
        except InvalidInputError as error:
            raise ChatError(translate_rendered(str(error))) from None
        if not opened:
            raise ChatError(translate("no model can be used without a login"))

    async def aclose(self, *, hurry: bool = False) -> None:
        """End everything, with the agent's processes; `hurry` where the user does not wait."""
        agent = self._lifeline.release()
        await self.turns.aclose()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if agent is not None:
            await agent.aclose(patience=HURRY_SECONDS if hurry else EXIT_SECONDS)

    async def restart(self) -> None:
        """Start the agent again, and open the session again that was open."""
        await self._lifeline.restart()

    async def _reopen(self) -> bool:
        return await self._open.reopen(self._need_agent())

    # --- sessions; all of it raises RpcError, ConnectionError, TimeoutError

    async def new_session(self) -> bool:
        """Begin a new session, after a login where one is needed; whether there is one."""
        begun = await self._open.begin(self._need_agent())
        if begun:
            await self._set_wishes()
            self._front.changed()
        return begun

    async def load(self, session: str) -> None:
        """Open an earlier session and show it; where that fails the one before stays open."""
        await self._open.load(self._need_agent(), session)
        await self._set_wishes()
        self._front.changed()

    async def fork(self) -> None:
        """Go on in a copy of the open session."""
        await self._open.fork(self._need_agent())
        self._front.changed()

    async def rename(self, title: str) -> str:
        """Give the open session a title; the title as the agent keeps it."""
        kept = await self._need_agent().sessions.rename(self.state.id, title)
        self.state.title = kept
        self._front.changed()
        return kept

    async def delete(self, session: str) -> bool:
        """Delete a session for good; in the place of the open one a new one begins.

        Returns:
            False where no new one could begin, and nothing is deleted.
        """
        if session == self.state.id and not await self.new_session():
            return False
        await self._need_agent().sessions.delete(session)
        return True

    async def earlier_sessions(self) -> list[acp.SessionInfo]:
        """The sessions of the folder."""
        agent = self._need_agent()
        if not agent.sessions.lists:
            raise RpcError(METHOD_NOT_FOUND, translate("this agent does not list its sessions"))
        return await agent.sessions.of_folder(self.wishes.cwd, limit=LISTED)

    async def set_option(self, name: str, value: str | bool) -> None:
        """Give an option, named by its id or category, a value; a mode also without options."""
        agent = self._need_agent()
        option = self.state.option(name)
        if option is not None:
            await agent.sessions.set_option(self.state.id, option.id, value)
        elif name == "mode" and self.state.modes is not None and isinstance(value, str):
            await agent.sessions.set_mode(self.state.id, value)
            self.state.modes = acp.SessionModeState(
                current_mode_id=value, available_modes=self.state.modes.available_modes
            )
        else:
            raise RpcError(
                METHOD_NOT_FOUND, translate("this agent has no option {name}", name=name)
            )
        self._front.changed()

    async def meant(self, named: str) -> str:
        """The session of the folder that an id, or the beginning of one, is of.

        Raises:
            InvalidInputError: several begin so.
        """
        from acp_agent.cli.session_lookup import meant  # noqa: PLC0415 - where a session is named

        if not self._need_agent().sessions.lists:
            return named
        known = [(one.session_id, one.title or one.cwd) for one in await self.earlier_sessions()]
        return meant(named, known) or named  # a session of another folder, by its whole id

    async def _session_to_resume(self, named: str) -> str:
        if named != "latest":
            return await self.meant(named)
        found = await self.earlier_sessions()
        if not found:
            raise ChatError(translate("this folder has no session yet"))
        return found[0].session_id

    async def _set_wishes(self) -> None:
        for name, value in self.wishes.options.items():
            await self.set_option(name, value)

    async def log_in(self) -> bool:
        """Let the user log in; whether that worked. Raises ConnectionError."""
        return await log_in(self._need_agent(), self._front)

    # --- helpers

    def run(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Do something that the user asked for, beside what runs; a failure is said."""
        self._spawn(self._reported(work))

    async def _reported(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        try:
            await work()
        except FAILURES as error:
            self._front.say(why_failed(error), "bad")
        except AcpAgentError as error:
            self._front.say(translate_rendered(str(error)), "bad")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _need_agent(self) -> Agent:
        if self.agent is None:
            raise ConnectionError
        return self.agent

    def refused(self, told: str) -> None:
        """Say that the agent asked what could not be answered."""
        self._front.say(told, "warning")

    def _turn_over(self) -> None:
        if self.agent is not None:
            self.agent.refusals.again()
        self._tell_garbage()

    def _tell_garbage(self) -> None:
        if self.agent is None or self._garbage_told:
            return
        garbage = self.agent.garbage
        if garbage.count:
            self._garbage_told = True
            message = translate(
                "The agent wrote what is not the protocol ({line}).", line=garbage.first
            )
            self._front.say(message, "warning")
