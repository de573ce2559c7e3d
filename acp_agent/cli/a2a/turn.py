"""A turn of the agent for an A2A task; it continues while the task waits for the client."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from acp_agent.cli.agent_client import AgentClient, Asked
from acp_agent.cli.permission_answers import option_of_kind, question_text, response
from acp_agent.cli.screen import block_text
from acp_agent.trust.items import TRUST_OPTION
from protocol.jsonrpc.errors import RpcError
from protocol.v1 import types as acp

_ANSWER_SECONDS = 600.0  # for a question


class Opened(Struct, frozen=True):
    """The session is open."""

    session: str


class TextPiece(Struct, frozen=True):
    """A piece of the model's text; `begins` marks the start of a further message."""

    text: str
    begins: bool


class CallBegan(Struct, frozen=True):
    """A tool call started."""

    title: str


class Question(Struct, frozen=True):
    """The user is asked whether a call may run; see `TaskTurn.answer`."""

    text: str


class Ended(Struct, frozen=True):
    """The turn ended, with the protocol's stop reason or an error."""

    stop_reason: str = ""
    error: str = ""


Event = Opened | TextPiece | CallBegan | Question | Ended


class Work(Struct, frozen=True, kw_only=True):
    """The options of a turn.

    Attributes:
        flags: command line flags for the agent.
        cwd: its folder.
        session: the session to continue; "" for a new one.
        mode: the permission mode; None for the session's own.
        prompt: the prompt.
    """

    flags: Sequence[str]
    cwd: Path
    session: str
    mode: str | None
    prompt: Sequence[acp.ContentBlock]


class TaskTurn:
    """A turn in a separate agent. It starts immediately; call `next` until it returns `Ended`.

    Args:
        work: the options.
        running: limits the concurrent turns.

    Attributes:
        is_told: whether a part of the model's text was sent to the client.
    """

    def __init__(self, work: Work, running: asyncio.Semaphore) -> None:
        self.is_told = False
        self._work = work
        self._running = running
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._answered: asyncio.Future[bool] | None = None
        self._said = False  # whether a message has started
        self._broken = False  # whether a tool call followed it
        self._task = asyncio.create_task(self._run())

    async def next(self) -> Sequence[Event]:
        """Return the events since the last call, at least one."""
        events = [await self._events.get()]
        while not self._events.empty():
            events.append(self._events.get_nowait())
        return events

    @property
    def waits(self) -> bool:
        """Return whether it waits for an answer."""
        return self._answered is not None and not self._answered.done()

    def answer(self, *, allow: bool) -> None:
        """Answer the open question."""
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(allow)

    async def aclose(self) -> None:
        """End the agent and the turn."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        try:
            async with self._running:
                end = await self._prompted()
        except RpcError as error:
            end = Ended(error=error.message)
        except (OSError, TimeoutError):
            end = Ended(error="the agent ended unexpectedly; run acp-agent doctor")
        self._events.put_nowait(end)

    async def _prompted(self) -> Ended:
        work = self._work
        client = await AgentClient.start(
            work.flags, cwd=work.cwd, on_update=self._updated, on_permission=self._asked
        )
        try:
            await client.open(work.cwd, resume=work.session or None)
            self._events.put_nowait(Opened(client.id))
            if work.mode is not None:
                await client.set_option("mode", work.mode)
            answer = await client.prompt(work.prompt)
        finally:
            await client.aclose()
        return Ended(stop_reason=answer.stop_reason)

    def _updated(self, update: acp.SessionUpdate) -> None:
        match update:
            case acp.AgentMessageChunk():
                begins = self._said and self._broken
                self._said, self._broken = True, False
                self._events.put_nowait(TextPiece(block_text(update.content), begins))
            case acp.ToolCall():
                self._broken = True
                self._events.put_nowait(CallBegan(update.title))
            case _:
                pass

    async def _asked(self, asked: Asked) -> acp.RequestPermissionResponse:
        """Ask the client. Trust in a folder's files can only be given elsewhere, by the user."""
        allow = False
        if not any(option.option_id == TRUST_OPTION for option in asked.options):
            self._answered = asyncio.get_running_loop().create_future()
            self._events.put_nowait(Question(question_text(asked)))
            with suppress(TimeoutError):
                async with asyncio.timeout(_ANSWER_SECONDS):
                    allow = await self._answered
            self._answered = None
        return response(option_of_kind(asked, "allow_once" if allow else "reject_once"))
