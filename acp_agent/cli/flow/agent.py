"""The agent of a run: a child process with as many sessions as the steps need."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from acp_agent.acp_client.process import EXIT_SECONDS, START_SECONDS, AgentChild
from acp_agent.cli.agent_client import AgentSession, PermissionRequest, start_acp_agent
from protocol.jsonrpc.handlers import Call, Handler
from protocol.jsonrpc.messages import INVALID_REQUEST, RpcError
from protocol.v1 import methods, types as acp

_DEFAULT_AGENT = "default"  # the program's own agent
_MAX_EARLY_UPDATES = 100  # updates that are stored for a session whose ID is not known yet
_BUSY_SECONDS = 10.0  # limit for an agent to exit after its client is gone
_BUSY_RETRY_SECONDS = 0.1
_COMMANDS_SECONDS = 10.0  # for a command to appear in the list

OnStepPermission = Callable[
    ["StepSession", PermissionRequest], Awaitable[acp.RequestPermissionResponse]
]


class StepSession(AgentSession):
    """A session of a run.

    Attributes:
        settings: the initial values of its options.
        prompts: how many prompts it has received.
    """

    def __init__(self, child: AgentChild, id_: str, settings: Mapping[str, str]) -> None:
        super().__init__(child, id_)
        self.settings = dict(settings)
        self.current = dict(settings)
        self.step = ""
        self.prompts = 0
        self._commands: set[str] = set()
        self._commands_received = asyncio.Event()

    async def prompt(self, content: str | Sequence[acp.ContentBlock]) -> acp.PromptResponse:
        """Send a prompt and wait for the end of the turn; see `AgentSession.prompt`."""
        self.prompts += 1
        return await super().prompt(content)

    @property
    def has_agent(self) -> bool:
        """Return whether it runs as an agent, which may have its own model."""
        return self.settings.get("agent", _DEFAULT_AGENT) != _DEFAULT_AGENT

    async def set_option(self, option: str, value: str) -> None:
        """Set an option, unless it already has the value. Raises RpcError."""
        # An agent's own model applies only from its first turn on.
        is_reported = not (self.has_agent and option == "model")
        if is_reported and self.current.get(option) == value:
            return
        answer = await self.with_option(option, value)
        self.current |= {option: value, **_values(answer.config_options)}

    async def has_command(self, *names: str) -> str | None:
        """Return the first of some commands that the session supports.

        A session first reports the built-in commands, and the others after reading them.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_COMMANDS_SECONDS):
                while self._commands.isdisjoint(names):
                    self._commands_received.clear()
                    await self._commands_received.wait()
        return next((name for name in names if name in self._commands), None)

    def receive_update(self, update: acp.SessionUpdate) -> None:
        """Apply an update of the session."""
        if isinstance(update, acp.AvailableCommandsUpdate):
            self._commands = {command.name for command in update.available_commands}
            self._commands_received.set()
        super().receive_update(update)


class FlowAgent:
    """An agent that was started for a run; end it with `aclose`."""

    def __init__(self, on_permission: OnStepPermission) -> None:
        self._on_permission = on_permission
        self._sessions: dict[str, StepSession] = {}
        self._early: dict[str, list[acp.SessionUpdate]] = {}
        self._child: AgentChild

    @classmethod
    async def start(cls, *, cwd: Path, model: str | None, on_permission: OnStepPermission) -> Self:
        """Start `acp-agent` and initialize it. Raises RpcError, ConnectionError, TimeoutError."""
        agent = cls(on_permission)
        flags = [] if model is None else ["--model", model]
        handlers: Mapping[str, Handler] = {
            methods.SESSION_UPDATE.name: agent._receive_update,
            methods.REQUEST_PERMISSION.name: agent._request_permission,
        }
        agent._child = await start_acp_agent(flags, handlers, cwd=cwd)
        return agent

    async def new_session(self, cwd: Path) -> StepSession:
        """Create a session in `cwd`. Raises RpcError."""
        response = await self._child.connection.request(
            methods.SESSION_NEW,
            acp.NewSessionRequest(cwd=str(cwd), mcp_servers=[]),
            timeout=START_SECONDS,
        )
        return self._register(
            StepSession(self._child, response.session_id, _values(response.config_options))
        )

    async def resume(self, id_: str, cwd: Path, settings: Mapping[str, str]) -> StepSession:
        """Resume a session. Raises RpcError.

        Args:
            settings: the initial values of its options.
        """
        answer = await self._resume_when_free(id_, cwd)
        session = StepSession(self._child, id_, settings)
        session.current = _values(answer.config_options)
        return self._register(session)

    async def _resume_when_free(self, id_: str, cwd: Path) -> acp.ResumeSessionResponse:
        """Open a session; wait while an agent whose client was killed still holds it."""
        deadline = asyncio.get_running_loop().time() + _BUSY_SECONDS
        while True:
            try:
                return await self._child.connection.request(
                    methods.SESSION_RESUME,
                    acp.ResumeSessionRequest(session_id=id_, cwd=str(cwd)),
                    timeout=START_SECONDS,
                )
            except RpcError as error:
                late = asyncio.get_running_loop().time() > deadline
                if error.code != INVALID_REQUEST or late:
                    raise
            await asyncio.sleep(_BUSY_RETRY_SECONDS)

    async def aclose(self, *, timeout: float = EXIT_SECONDS) -> None:
        """Close the connection, which ends the agent; kill it after `timeout` seconds."""
        await self._child.aclose(timeout=timeout)

    def _register(self, session: StepSession) -> StepSession:
        self._sessions[session.id] = session
        for update in self._early.pop(session.id, []):
            session.receive_update(update)
        return session

    def _receive_update(self, params: acp.SessionNotification) -> None:
        session = self._sessions.get(params.session_id)
        if session is not None:
            session.receive_update(params.update)
            return
        early = self._early.setdefault(params.session_id, [])
        if len(early) < _MAX_EARLY_UPDATES:
            early.append(params.update)

    async def _request_permission(
        self, params: acp.RequestPermissionRequest, _: Call
    ) -> acp.RequestPermissionResponse:
        session = self._sessions.get(params.session_id)
        if session is None:
            return acp.RequestPermissionResponse(outcome=acp.CancelledPermissionOutcome())
        return await session.request_permission(
            params, functools.partial(self._on_permission, session)
        )


def _values(options: Sequence[acp.SessionConfigOption] | None) -> dict[str, str]:
    """Return the current values of a session's options, by ID."""
    return {
        option.id: option.current_value
        for option in options or ()
        if isinstance(option, acp.SessionConfigSelect)
    }
