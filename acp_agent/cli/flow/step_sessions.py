"""The sessions of a run's steps, with their settings and permissions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from acp_agent.cli.agent_client import PermissionRequest
from acp_agent.cli.flow.agent import FlowAgent, StepSession
from acp_agent.cli.flow.journal import RunJournal, SessionOpened
from acp_agent.cli.flow.view import FlowView
from acp_agent.cli.permission_answers import Allowed, Answers, AutomaticAnswer
from acp_agent.cli.session_lookup import open_store
from acp_agent.errors import InvalidInputError, SessionNotFoundError
from acp_agent.events import AgentText, ToolCalled, TurnEnded, UserMessage
from acp_agent.extensions.workflows.types import Step, StepMode, Workflow
from acp_agent.ids import SessionId
from protocol.v1 import types as acp

# From the strictest to the most permissive: a file can only be stricter than the user's choice.
_MODES: Mapping[StepMode, int] = {"plan": 0, "draft": 1, "ask": 2, "accept-edits": 3, "full": 4}


class RunOptions(Struct, frozen=True, kw_only=True):
    """The user's options for a run. They override the file's defaults, but not its steps."""

    cwd: Path
    model: str | None = None
    agent: str | None = None
    mode: str | None = None
    allow: Allowed = "ask"


class StepSessions:
    """Opens the sessions of a run, in one agent that is started with the first one."""

    def __init__(
        self, workflow: Workflow, journal: RunJournal, options: RunOptions, view: FlowView
    ) -> None:
        self._workflow = workflow
        self._journal = journal
        self._options = options
        self._view = view
        self._agent: FlowAgent | None = None
        self._start_lock = asyncio.Lock()
        self._permission_lock = asyncio.Lock()
        self._permission_step = ""
        self._sessions: dict[str, StepSession] = {}  # by step; "" is the shared session
        ask = view.ask
        self._answers = Answers(
            options.allow,
            show=self._show_answer,
            ask=None if ask is None else lambda request: ask(self._permission_step, request),
        )

    @property
    def started(self) -> bool:
        """Return whether an agent was started."""
        return self._agent is not None

    @property
    def unanswered(self) -> Sequence[PermissionRequest]:
        """Return the requests that were refused because there was nobody to ask."""
        return tuple(self._answers.unanswered)

    async def aclose(self, *, timeout: float) -> None:
        """End the agent."""
        if self._agent is not None:
            await self._agent.aclose(timeout=timeout)

    async def for_step(self, step: Step) -> StepSession:
        """Return the session of a step, with the step's settings.

        Raises:
            RpcError: the agent refused, or cannot start.
            InvalidInputError: the file requests a more permissive mode than the user's.
        """
        key = step.id if step.separate_session else ""
        session = self._sessions.get(key)
        if session is None:
            session = await self._open(key, step)
            self._sessions[key] = session
        base = session.settings.get("mode", "ask")
        mode = step.mode or self._options.mode or self._workflow.mode or base
        ceiling = self._options.mode or base
        if _MODES.get(_mode(mode), 0) > _MODES.get(_mode(ceiling), 4):
            raise InvalidInputError(
                f"the file wants the mode {mode}, which only you can choose; add --mode {mode}"
            )
        await session.set_option("mode", mode)
        model = step.model or self._options.model or self._workflow.model
        if model is not None:
            await session.set_option("model", model)
        elif not session.has_agent and "model" in session.settings:
            await session.set_option("model", session.settings["model"])
        return session

    async def _open(self, key: str, step: Step) -> StepSession:
        agent = await self._ensure_agent()
        existing = self._journal.record.sessions.get(key)
        if existing is not None:
            session = await agent.resume(existing.session, self._options.cwd, existing.settings)
            history = await read_prompts(existing.session, 0)
            session.prompts = 0 if history is None else history.prompts
            return session
        session = await agent.new_session(self._options.cwd)
        agent_name = step.agent or self._options.agent or self._workflow.agent
        if agent_name is not None:
            await session.set_option("agent", agent_name)
            session.settings["agent"] = agent_name
        self._journal.write(SessionOpened(session=session.id, step=key, settings=session.settings))
        return session

    async def _ensure_agent(self) -> FlowAgent:
        async with self._start_lock:
            if self._agent is None:
                self._agent = await FlowAgent.start(
                    cwd=self._options.cwd,
                    model=self._options.model,
                    on_permission=self._request_permission,
                )
            return self._agent

    async def _request_permission(
        self, session: StepSession, request: PermissionRequest
    ) -> acp.RequestPermissionResponse:
        async with self._permission_lock:
            self._permission_step = session.step
            return await self._answers(request)

    def _show_answer(self, request: PermissionRequest, answer: AutomaticAnswer) -> None:
        self._view.show_answer(self._permission_step, request, answer)


def _mode(name: str) -> StepMode:
    return next((mode for mode in _MODES if mode == name), "plan")


class PromptHistory(Struct, frozen=True):
    """The number of prompts in a session, and the complete answer to one of them, if any."""

    prompts: int
    answer: str | None


async def read_prompts(session: str, before: int) -> PromptHistory | None:
    """Return the answer to the prompt after `before` others; None if there is no such session.

    Raises:
        StoreError: the sessions cannot be read.
    """
    async with open_store() as store:
        if store is None:
            return None
        try:
            events = await store.read_all(SessionId(session))
        except SessionNotFoundError:
            return None
    prompts, answer, text, complete = 0, None, "", False
    for event in (stored.event for stored in events):
        match event:
            case UserMessage(steering=False):
                prompts += 1
                text, complete = "", False
            case AgentText():
                text = event.text if complete else text + event.text
                complete = False
            case ToolCalled():
                complete = True
            case TurnEnded(stop_reason="end_turn") if prompts == before + 1:
                answer = text
    return PromptHistory(prompts, answer)
