"""A prompt of another program, on which an agent of its own works.

The agent continues while the program waits for its user, also if the call that sent the prompt
ends with the question.
"""

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

ANSWER_SECONDS = 600.0  # for a question


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
    """The user is asked whether a call may run; see `PromptRun.answer`."""

    text: str


class TurnEnd(Struct, frozen=True, kw_only=True):
    """The turn ended, with the protocol's stop reason or an error.

    `text` is the model's last message, and `refused` has the titles of the refused calls.
    """

    session: str = ""
    stop_reason: str = ""
    error: str = ""
    text: str = ""
    refused: list[str] = []


Event = SessionOpened | TextPiece | CallStarted | Question | TurnEnd


class PromptOptions(Struct, frozen=True, kw_only=True):
    """A prompt and the session for it.

    Attributes:
        flags: command line flags for the agent.
        cwd: its folder.
        session: the session to continue; "" for a new one.
        mode: the permission mode; None for the session's own.
        can_ask: whether the program can ask its user; otherwise calls are refused.
    """

    flags: Sequence[str]
    cwd: Path
    session: str
    mode: str | None
    prompt: str | Sequence[acp.ContentBlock]
    can_ask: bool = True


class PromptRun:
    """A running prompt. It starts immediately; call `next` until a `TurnEnd` arrives.

    Args:
        running: limits how many prompts run concurrently.

    Attributes:
        has_sent_text: whether a part of the model's text was sent to the client.
    """

    def __init__(self, options: PromptOptions, running: asyncio.Semaphore) -> None:
        self.has_sent_text = False
        self._options = options
        self._running = running
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._question_lock = asyncio.Lock()
        self._answer: asyncio.Future[bool] | None = None
        self._text = ""
        self._call_followed = False  # whether a tool call followed the text
        self._refused: list[str] = []
        self._task = asyncio.create_task(self._run())

    async def next(self) -> Sequence[Event]:
        """Return the events since the last call, at least one; a question is the last."""
        events = [await self._events.get()]
        while not self._events.empty() and not isinstance(events[-1], Question):
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
        return TurnEnd(
            session=client.id,
            stop_reason=answer.stop_reason,
            text=self._text,
            refused=self._refused,
        )

    def _receive_update(self, update: acp.SessionUpdate) -> None:
        match update:
            case acp.AgentMessageChunk():
                text = block_text(update.content)
                starts_message = bool(self._text) and self._call_followed
                self._text = text if starts_message else self._text + text
                self._call_followed = False
                self._events.put_nowait(TextPiece(text, starts_message))
            case acp.ToolCall():
                self._call_followed = True
                self._events.put_nowait(CallStarted(update.title))

    async def _ask_permission(self, request: PermissionRequest) -> acp.RequestPermissionResponse:
        """Ask the user of the program.

        Trust in a folder's files is given in an editor or with `acp-agent trust`, because the
        program may accept everything.
        """
        allow = False
        is_trust = any(option.option_id == TRUST_OPTION for option in request.options)
        if self._options.can_ask and not is_trust:
            async with self._question_lock:
                self._answer = asyncio.get_running_loop().create_future()
                self._events.put_nowait(Question(question_text(request)))
                with suppress(TimeoutError):
                    async with asyncio.timeout(ANSWER_SECONDS):
                        allow = await self._answer
                self._answer = None
        if not allow:
            self._refused.append(request.title)
        return response(find_option(request, "allow_once" if allow else "reject_once"))
