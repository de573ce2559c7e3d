"""A turn of the agent for an A2A task; it continues while the task waits for the client."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from acp_agent.cli.agent_client import AgentClient, PermissionRequest
from acp_agent.cli.permission_answers import find_option, question_text, response
from acp_agent.cli.screen import block_text
from acp_agent.trust.store import TRUST_OPTION
from protocol.jsonrpc.messages import RpcError
from protocol.v1 import types as acp

_ANSWER_SECONDS = 600.0  # for a question


class SessionOpened(Struct, frozen=True):
    """The session is open."""

    session: str


class TextPiece(Struct, frozen=True):
    """A piece of the model's text; `starts_message` marks the start of a further message."""

    text: str
    starts_message: bool


class CallStarted(Struct, frozen=True):
    """A tool call started."""

    title: str


class Question(Struct, frozen=True):
    """The user is asked whether a call may run; see `TaskTurn.answer`."""

    text: str


class TurnEnd(Struct, frozen=True):
    """The turn ended, with the protocol's stop reason or an error."""

    stop_reason: str = ""
    error: str = ""


Event = SessionOpened | TextPiece | CallStarted | Question | TurnEnd


class TurnOptions(Struct, frozen=True, kw_only=True):
    """The options of a turn.

    Attributes:
        flags: command line flags for the agent.
        cwd: its folder.
        session: the session to continue; "" for a new one.
        mode: the permission mode; None for the session's own.
    """

    flags: Sequence[str]
    cwd: Path
    session: str
    mode: str | None
    prompt: Sequence[acp.ContentBlock]


class TaskTurn:
    """A turn in a separate agent. It starts immediately; call `next` until a `TurnEnd` arrives.

    Attributes:
        has_sent_text: whether a part of the model's text was sent to the client.
    """

    def __init__(self, options: TurnOptions, running: asyncio.Semaphore) -> None:
        self.has_sent_text = False
        self._options = options
        self._running = running
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._answer: asyncio.Future[bool] | None = None
        self._message_started = False  # whether a message has started
        self._call_followed = False  # whether a tool call followed it
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
        return self._answer is not None and not self._answer.done()

    def answer(self, *, allow: bool) -> None:
        """Answer the open question."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(allow)

    async def aclose(self) -> None:
        """End the agent and the turn."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        try:
            async with self._running:
                end = await self._prompt()
        except RpcError as error:
            end = TurnEnd(error=error.message)
        except (OSError, TimeoutError):
            end = TurnEnd(error="the agent ended unexpectedly; run acp-agent doctor")
        self._events.put_nowait(end)

    async def _prompt(self) -> TurnEnd:
        options = self._options
        client = await AgentClient.start(
            options.flags,
            cwd=options.cwd,
            on_update=self._receive_update,
            on_permission=self._ask_permission,
        )
        try:
            await client.open(options.cwd, resume=options.session or None)
            self._events.put_nowait(SessionOpened(client.id))
            if options.mode is not None:
                await client.set_option("mode", options.mode)
            answer = await client.prompt(options.prompt)
        finally:
            await client.aclose()
        return TurnEnd(stop_reason=answer.stop_reason)

    def _receive_update(self, update: acp.SessionUpdate) -> None:
        match update:
            case acp.AgentMessageChunk():
                starts_message = self._message_started and self._call_followed
                self._message_started, self._call_followed = True, False
                self._events.put_nowait(TextPiece(block_text(update.content), starts_message))
            case acp.ToolCall():
                self._call_followed = True
                self._events.put_nowait(CallStarted(update.title))

    async def _ask_permission(self, request: PermissionRequest) -> acp.RequestPermissionResponse:
        """Ask the client. Trust in a folder's files can only be given elsewhere, by the user."""
        allow = False
        if not any(option.option_id == TRUST_OPTION for option in request.options):
            self._answer = asyncio.get_running_loop().create_future()
            self._events.put_nowait(Question(question_text(request)))
            with suppress(TimeoutError):
                async with asyncio.timeout(_ANSWER_SECONDS):
                    allow = await self._answer
            self._answer = None
        return response(find_option(request, "allow_once" if allow else "reject_once"))
