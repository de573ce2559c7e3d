"""A conversation in the terminal: the agent, its session and the turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from acp_agent.acp_client.process import EXIT_SECONDS, START_SECONDS
from acp_agent.cli.chat.agent import FAILURES, Agent, AgentFailedError, SessionMethod
from acp_agent.cli.chat.agent_failures import failure_text
from acp_agent.cli.chat.agent_supervisor import QUICK_EXIT_SECONDS, AgentSupervisor
from acp_agent.cli.chat.frontend import Frontend
from acp_agent.cli.chat.open_session import OpenSession, log_in
from acp_agent.cli.chat.requests import Requests
from acp_agent.cli.chat.session_state import Calls, SessionState
from acp_agent.cli.chat.turns import Turns
from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.errors import AcpAgentError, InvalidInputError
from protocol.jsonrpc.messages import METHOD_NOT_FOUND, RpcError
from protocol.v1 import types as acp

QUIT_SECONDS = 3.0  # after Ctrl-C with nothing to cancel, a second one within this time quits
_MAX_SESSIONS = 200  # sessions that are offered


class ChatError(AcpAgentError):
    """The chat cannot start; the message says why."""


class ChatOptions(Struct, frozen=True, kw_only=True):
    """How a conversation starts.

    Attributes:
        resume: a session ID, or `latest` for the latest one of the folder.
        settings: values of session options, by option ID or category.
        timeout: seconds for each response of the agent, except for a turn's.
        prompt: the first prompt; empty for none.
        chat_command: the command line that started the chat, without the session.
    """

    command: Sequence[str]
    cwd: Path
    resume: str | None = None
    settings: Mapping[str, str] = {}
    timeout: float = START_SECONDS
    prompt: str = ""
    chat_command: str = "acp-agent chat"


class Conversation:
    """Connects a frontend with an agent, as the agent's listener.

    Call `start`, pass the user's input to `turns`, and end with `aclose`.

    Args:
        take_shared: returns the texts to send with the next prompt.
    """

    def __init__(
        self, options: ChatOptions, frontend: Frontend, take_shared: Callable[[], Sequence[str]]
    ) -> None:
        self.options = options
        self._frontend = frontend
        self._open = OpenSession(frontend, cwd=options.cwd, spawn=self._spawn)
        self.receive_update = self._open.receive_update
        self.turns = Turns(
            frontend,
            agent=lambda: self.agent,
            state=lambda: self.state,
            on_end=self._turn_ended,
            take_shared=take_shared,
            cwd=options.cwd,
        )
        self._requests = Requests(
            frontend,
            calls=lambda: self.calls,
            send_instruction=self.turns.send_instruction,
            is_current=lambda session: session == self.state.id and not self.turns.cancelling,
            cwd=options.cwd,
        )
        self.permission = self._requests.permission
        self.elicitation = self._requests.elicitation
        self.elicitation_completed = self._requests.elicitation_completed
        self._supervisor = AgentSupervisor(
            self._start_agent,
            frontend,
            turns=self.turns,
            reopen=lambda: self._open.reopen(self._require_agent()),
            spawn=self._spawn,
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._invalid_line_reported = False

    @property
    def state(self) -> SessionState:
        """Return the state of the open session."""
        return self._open.state

    @property
    def calls(self) -> Calls:
        """Return the tool calls of the open session."""
        return self._open.calls

    @property
    def resumable(self) -> bool:
        """Return whether the session can be reopened."""
        return bool(self.state.id) and self._supervisor.resumable

    @property
    def agent(self) -> Agent | None:
        """Return the agent; None if there is none."""
        return self._supervisor.agent

    def agent_can(self, method: SessionMethod) -> bool:
        """Return whether the agent supports a method; true if there is no agent."""
        return self.agent is None or self.agent.sessions.can[method]

    async def resources(self, typed: str) -> list[tuple[str, str]]:
        """Return the MCP resources that `typed` may mention, with descriptions, if known."""
        agent = self.agent
        if agent is None or not self.state.id:
            return []
        try:
            return await agent.resources(self.state.id, typed)
        except FAILURES:
            return []

    async def start(self) -> None:
        """Start the agent and open a session. Raises ChatError."""
        try:
            await self._supervisor.start()
        except AgentFailedError as error:
            raise ChatError(str(error)) from None
        try:
            if self.options.resume is None:
                opened = await self.create_session()
            else:
                await self.load(await self._session_to_resume(self.options.resume))
                opened = True
        except FAILURES as error:
            raise ChatError(failure_text(error)) from None
        except InvalidInputError as error:
            raise ChatError(translate_rendered(str(error))) from None
        if not opened:
            raise ChatError(translate("no model can be used without a login"))

    async def aclose(self, *, quick: bool = False) -> None:
        """End the conversation and the agent's processes; `quick` if the user will not wait."""
        agent = self._supervisor.stop()
        await self.turns.aclose()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if agent is not None:
            await agent.aclose(timeout=QUICK_EXIT_SECONDS if quick else EXIT_SECONDS)

    async def restart(self) -> None:
        """Restart the agent and reopen its session."""
        await self._supervisor.restart()

    # --- sessions; every method raises RpcError, ConnectionError, TimeoutError

    async def create_session(self) -> bool:
        """Create a session, after a login if needed; return whether there is one."""
        created = await self._open.create(self._require_agent())
        if created:
            await self._apply_settings()
            self._frontend.refresh()
        return created

    async def load(self, session: str) -> None:
        """Open an earlier session and show it; if that fails, the previous one stays open."""
        await self._open.load(self._require_agent(), session)
        await self._apply_settings()
        self._frontend.refresh()

    async def fork(self) -> None:
        """Continue in a copy of the open session."""
        await self._open.fork(self._require_agent())
        self._frontend.refresh()

    async def rename(self, title: str) -> str:
        """Give the open session a title; return the title that the agent stored."""
        self.state.title = await self._require_agent().sessions.rename(self.state.id, title)
        self._frontend.refresh()
        return self.state.title

    async def delete(self, session: str) -> bool:
        """Delete a session permanently; a new one replaces the open one.

        Returns:
            False if no new one could be created; then nothing is deleted.
        """
        if session == self.state.id and not await self.create_session():
            return False
        await self._require_agent().sessions.delete(session)
        return True

    async def list_sessions(self) -> list[acp.SessionInfo]:
        """Return the sessions of the folder."""
        agent = self._require_agent()
        if not agent.sessions.can["list"]:
            raise RpcError(METHOD_NOT_FOUND, translate("this agent does not list its sessions"))
        return await agent.sessions.list(self.options.cwd, limit=_MAX_SESSIONS)

    async def set_option(self, name: str, value: str | bool) -> None:
        """Set an option by its ID or category; a mode also for agents without options."""
        agent = self._require_agent()
        option = self.state.option(name)
        if option is not None:
            await agent.sessions.set_option(self.state.id, option.id, value)
        elif name == "mode" and self.state.modes is not None and isinstance(value, str):
            await agent.sessions.set_mode(self.state.id, value)
            self.state.set_mode(value)
        else:
            raise RpcError(
                METHOD_NOT_FOUND, translate("this agent has no option {name}", name=name)
            )
        self._frontend.refresh()

    async def find_session(self, name: str) -> str:
        """Return the ID of the folder's session that has or begins with `name`.

        Raises:
            InvalidInputError: several IDs begin with `name`.
        """
        from acp_agent.cli.session_lookup import match_id  # noqa: PLC0415 - where a session is named

        if not self._require_agent().sessions.can["list"]:
            return name
        sessions = [
            (session.session_id, session.title or session.cwd)
            for session in await self.list_sessions()
        ]
        return match_id(name, sessions) or name  # may be the full ID of a session of another folder

    async def log_in(self) -> bool:
        """Ask the user to log in; return whether that worked. Raises ConnectionError."""
        return await log_in(self._require_agent(), self._frontend)

    # --- background work

    def run(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run a task in the background and show its error."""
        self._spawn(self._report_errors(work))

    def request_failed(self, text: str) -> None:
        """Show that a request of the agent failed."""
        self._frontend.say(text, "warning")

    async def _report_errors(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        try:
            await work()
        except FAILURES as error:
            self._frontend.say(failure_text(error), "bad")
        except AcpAgentError as error:
            self._frontend.say(translate_rendered(str(error)), "bad")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _start_agent(self) -> Agent:
        return await Agent.start(
            self.options.command, self, cwd=self.options.cwd, timeout=self.options.timeout
        )

    def _require_agent(self) -> Agent:
        if self.agent is None:
            raise ConnectionError
        return self.agent

    async def _session_to_resume(self, name: str) -> str:
        if name != "latest":
            return await self.find_session(name)
        sessions = await self.list_sessions()
        if not sessions:
            raise ChatError(translate("this folder has no sessions yet"))
        return sessions[0].session_id

    async def _apply_settings(self) -> None:
        for name, value in self.options.settings.items():
            await self.set_option(name, value)

    def _turn_ended(self) -> None:
        if self.agent is None:
            return
        self.agent.monitor.reset()
        line = self.agent.monitor.invalid_line
        if line and not self._invalid_line_reported:
            self._invalid_line_reported = True
            text = translate(
                "The agent wrote output that is not a protocol message: {line}", line=line
            )
            self._frontend.say(text, "warning")
