"""Prompts that run for MCP clients, in one call or across several.

Since version 2026-07-28 of the Model Context Protocol a server cannot ask during a call: the call
ends with the question, and the client repeats it with the answer (Multi Round-Trip Requests).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

from msgspec import Struct

ANSWER_SECONDS = 600.0  # for the answer to a question

T = TypeVar("T")
Ask = Callable[[str], Awaitable[bool]]


class Question(Struct, frozen=True):
    """A question to the user, and the future of the answer."""

    message: str
    answer: asyncio.Future[bool]


class PromptRun(Generic[T]):
    """A running prompt, whose questions wait until a call passes them on."""

    def __init__(self, work: Callable[[Ask], Coroutine[Any, Any, T]]) -> None:
        self._questions: asyncio.Queue[Question] = asyncio.Queue()
        self._task = asyncio.create_task(work(self._ask))

    async def next_event(self) -> T | Question:
        """Wait for the next question or the end; if cancelled, cancel the prompt.

        Raises: whatever ended the prompt.
        """
        asking = asyncio.create_task(self._questions.get())
        try:
            await asyncio.wait([self._task, asking], return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else self._task.result()
        except asyncio.CancelledError:
            await self.cancel()
            raise
        finally:
            asking.cancel()

    async def cancel(self) -> None:
        """Cancel the prompt, and wait until it has ended."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _ask(self, message: str) -> bool:
        question = Question(message, asyncio.get_running_loop().create_future())
        self._questions.put_nowait(question)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await question.answer
        except TimeoutError:
            return False


class WaitingRuns(Generic[T]):
    """Prompts that wait for a client to repeat its call with an answer.

    Those that nobody continues are cancelled when their question expires.
    """

    def __init__(self) -> None:
        self._runs: dict[str, tuple[PromptRun[T], Question]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def add(self, run: PromptRun[T], question: Question) -> str:
        """Keep a prompt; return the state that the client sends back."""
        state = secrets.token_urlsafe(16)
        self._runs[state] = (run, question)
        asyncio.get_running_loop().call_later(ANSWER_SECONDS, self._expire, state)
        return state

    def pop(self, state: str) -> tuple[PromptRun[T], Question] | None:
        """Return a waiting prompt and its question, once; None if there is none."""
        return self._runs.pop(state, None)

    def _expire(self, state: str) -> None:
        waiting = self.pop(state)
        if waiting is not None:
            task = asyncio.create_task(waiting[0].cancel())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
