"""The tools of `acp-agent mcp serve`: prompt the agent in a folder, and read its sessions."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_urlsafe
from typing import Annotated, Any, Literal

import mcp_types as types
from mcp import MCPError
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import NoBackChannelError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS, is_version_at_least
from pydantic import BaseModel, Field

from acp_agent.cli.localization import translate
from acp_agent.cli.serving.prompt_run import (
    ANSWER_SECONDS,
    PromptOptions,
    PromptRun,
    Question,
    TurnEnd,
)
from acp_agent.cli.session_lookup import full_id, open_store
from acp_agent.cli.sessions import user_secrets
from acp_agent.errors import AcpAgentError
from acp_agent.ids import SessionId
from acp_agent.session.history.transcript import transcript
from acp_agent.session.store.event_codec import readable_events
from acp_agent.session.store.read_queries import MAX_PAGE
from acp_agent.session.store.records import SessionRecord
from acp_agent.workspace.scrub import scrub

_MAX_PROMPTS = 4  # prompts that run concurrently
_MAX_TEXT_LENGTH = 50_000  # characters of a session that one call returns
_PROGRESS_SECONDS = 5.0  # between two reports: clients end calls that seem to hang
_PERMISSION = "permission"  # the key of a question in a result that requires input

Mode = Literal["ask", "accept-edits", "draft", "plan"]
ServedContext = Context[Any, Any]


class PromptAnswer(BaseModel):
    """How a prompt ended."""

    session_id: str
    stop_reason: str
    text: str
    refused: list[str]


class ListedSession(BaseModel):
    """A saved session."""

    session_id: str
    title: str
    folder: str
    turns: int


class SessionList(BaseModel):
    """Saved sessions, the most recently used first."""

    sessions: list[ListedSession]


class SessionText(BaseModel):
    """A part of a conversation; `next_start` is where the rest begins, if there is any."""

    text: str
    next_start: int | None


class AgentTools:
    """The tools, for sessions in and below some folders.

    Args:
        folders: absolute paths without symlinks.
        model: the model of new sessions; None for the configured one.
    """

    def __init__(self, folders: Sequence[Path], model: str | None) -> None:
        self._folders = tuple(folders)
        self._flags = [] if model is None else ["--model", model]
        self._running = asyncio.Semaphore(_MAX_PROMPTS)
        self._waiting = WaitingRuns()

    async def run_prompt(
        self,
        context: ServedContext,
        prompt: Annotated[str, Field(min_length=1, description="What the agent is to do.")],
        folder: Annotated[str, Field(description="Its folder. Empty: the first served one.")] = "",
        session_id: Annotated[str, Field(description="A session to continue.")] = "",
        mode: Annotated[
            Mode | None, Field(description="plan only reads; accept-edits edits files unasked.")
        ] = None,
    ) -> PromptAnswer | types.InputRequiredResult:
        """Let the coding agent work on a prompt until it is done."""
        if context.request_state is not None:
            waiting = self._waiting.pop(context.request_state)
            if waiting is None:
                raise ToolError("the question has expired; call run_prompt again with session_id")
            run, answer = waiting, (context.input_responses or {}).get(_PERMISSION)
            run.answer(allow=_is_allowed(answer))
        else:
            run = await self._start(context, prompt, folder, session_id, mode)
        reporting = asyncio.create_task(_report_progress(context))
        try:
            return await self._follow(context, run)
        except asyncio.CancelledError:
            await run.aclose()
            raise
        finally:
            reporting.cancel()

    async def _follow(
        self, context: ServedContext, run: PromptRun
    ) -> PromptAnswer | types.InputRequiredResult:
        """Wait for the end of a prompt, and ask the client's user about calls."""
        while True:
            event = (await run.next())[-1]
            if isinstance(event, TurnEnd):
                if event.error:
                    raise ToolError(event.error)
                return PromptAnswer(
                    session_id=event.session,
                    stop_reason=event.stop_reason,
                    text=event.text,
                    refused=event.refused,
                )
            if not isinstance(event, Question):
                continue
            if is_version_at_least(context.protocol_version or "", MODERN_PROTOCOL_VERSIONS[0]):
                return types.InputRequiredResult(
                    input_requests={_PERMISSION: types.ElicitRequest(params=_form(event.text))},
                    request_state=self._waiting.add(run),
                )
            run.answer(allow=await _ask_user(context, event.text))

    async def _start(
        self,
        context: ServedContext,
        prompt: str,
        folder: str,
        session_id: str,
        mode: Mode | None,
    ) -> PromptRun:
        """Start a prompt in a new or a saved session.

        Raises:
            ToolError: the folder is not served, or there is no such session.
        """
        cwd = await asyncio.to_thread(self._folder, folder)
        if session_id:
            record = await self._record(session_id)
            session_id, cwd = record.id, Path(record.cwd)
        capabilities = context.client_capabilities
        elicitation = None if capabilities is None else capabilities.elicitation
        can_ask = elicitation is not None and (
            elicitation.form is not None or elicitation.url is None
        )
        options = PromptOptions(
            flags=self._flags,
            cwd=cwd,
            session=session_id,
            mode=mode,
            prompt=prompt,
            can_ask=can_ask,
        )
        return PromptRun(options, self._running)

    async def list_sessions(
        self, limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 20
    ) -> SessionList:
        """List the saved sessions of the served folders, the most recently used first."""
        records: list[SessionRecord] = []
        async with open_store() as store:
            if store is not None:
                records = (await store.list(limit=MAX_PAGE)).sessions
        secrets = await asyncio.to_thread(user_secrets)
        visible_records = [record for record in records if self._serves(Path(record.cwd))][:limit]
        return SessionList(
            sessions=[
                ListedSession(
                    session_id=record.id,
                    title=scrub(record.title or "", secrets),
                    folder=record.cwd,
                    turns=record.turns,
                )
                for record in visible_records
            ]
        )

    async def read_session(
        self, session_id: str, start: Annotated[int, Field(ge=0)] = 0
    ) -> SessionText:
        """Read the conversation of a saved session, from a character on."""
        record = await self._record(session_id)
        async with open_store() as store:
            assert store is not None
            stored = await store.read_all(record.id)
        secrets = await asyncio.to_thread(user_secrets)

        def text() -> str:
            passages = transcript(readable_events(stored), thoughts=False)
            return scrub(
                "\n\n".join(f"[{passage.kind}]\n{passage.text}" for passage in passages), secrets
            )

        conversation = await asyncio.to_thread(text)
        end = start + _MAX_TEXT_LENGTH
        return SessionText(
            text=conversation[start:end], next_start=end if end < len(conversation) else None
        )

    async def _record(self, name: str) -> SessionRecord:
        """Return a session of the served folders. Raises ToolError if there is none."""
        with suppress(AcpAgentError):
            session_id = await full_id(name)
            async with open_store() as store:
                record = None if store is None else await store.get(SessionId(session_id))
            if record is not None and self._serves(Path(record.cwd)):
                return record
        raise ToolError(f"there is no session {name!r}; list_sessions has those there are")

    def _folder(self, name: str) -> Path:
        """Return a served folder, without symlinks.

        Raises:
            ToolError: it is not a folder, or is not served.
        """
        folder = Path(os.path.realpath(self._folders[0] / name))
        if not self._serves(folder):
            roots = ", ".join(map(str, self._folders))
            raise ToolError(f"{folder} is not served; served are {roots}")
        if not folder.is_dir():
            raise ToolError(f"{folder} is not a directory")
        return folder

    def _serves(self, folder: Path) -> bool:
        real = Path(os.path.realpath(folder))
        return any(real.is_relative_to(root) for root in self._folders)


class WaitingRuns:
    """Prompts that wait for a client to repeat its call with an answer.

    Since version 2026-07-28 of the Model Context Protocol a server cannot ask during a call: the
    call ends with the question, and the client repeats it (Multi Round-Trip Requests). Prompts that
    nobody continues are cancelled when their question expires.
    """

    def __init__(self) -> None:
        self._runs: dict[str, PromptRun] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def add(self, run: PromptRun) -> str:
        """Keep a prompt; return the state that the client sends back."""
        state = token_urlsafe(16)
        self._runs[state] = run
        asyncio.get_running_loop().call_later(ANSWER_SECONDS, self._expire, state)
        return state

    def pop(self, state: str) -> PromptRun | None:
        """Return a waiting prompt, once; None if there is none."""
        return self._runs.pop(state, None)

    def _expire(self, state: str) -> None:
        run = self.pop(state)
        if run is not None:
            task = asyncio.create_task(run.aclose())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)


async def _ask_user(context: ServedContext, message: str) -> bool:
    """Return whether the client's user allows a call once; False if nobody answers."""
    form = _form(message)
    with suppress(MCPError, NoBackChannelError, TimeoutError):
        async with asyncio.timeout(ANSWER_SECONDS):
            result = await context.session.elicit_form(
                form.message, form.requested_schema, related_request_id=context.request_id
            )
        return _is_allowed(result)
    return False


def _is_allowed(answer: types.InputResponse | None) -> bool:
    return (
        isinstance(answer, types.ElicitResult)
        and answer.action == "accept"
        and (answer.content or {}).get("allow") is True
    )


def _form(message: str) -> types.ElicitRequestFormParams:
    allow = {"type": "boolean", "title": translate("Allow this once"), "default": False}
    schema = {"type": "object", "properties": {"allow": allow}, "required": ["allow"]}
    return types.ElicitRequestFormParams(message=message, requested_schema=schema)


async def _report_progress(context: ServedContext) -> None:
    """Report that a prompt runs, to clients that want to know, until cancelled."""
    with suppress(MCPError):
        for step in itertools.count(1):
            await asyncio.sleep(_PROGRESS_SECONDS)
            await context.report_progress(step)
