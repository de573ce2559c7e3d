"""Who gets the keys: the question that is asked, or the prompt."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar, overload

from acp_agent.cli.chat.front import Answer
from acp_agent.cli.chat.questions import Entering, Permission, Picking, Question

_T = TypeVar("_T")

_TYPING_SECONDS = 0.5  # without a key before a question takes keys: nobody shall answer by chance


class Desk:
    """The questions that wait for the user, asked one after the other.

    Args:
        turned: called when another question, or none, has the keys.

    Attributes:
        asked: the question that has the keys.
    """

    def __init__(self, turned: Callable[[Question | None], None]) -> None:
        self.asked: Question | None = None
        self._turned = turned
        self._questions: list[Question] = []
        self._pressed_at = 0.0  # when a key was pressed last
        self._typed_at = 0.0  # when something was typed into the prompt

    @property
    def waiting(self) -> Question | None:
        """What is asked at the moment, whether or not it takes keys already."""
        return self._questions[0] if self._questions else None

    def pressed(self) -> None:
        """A key was pressed: what is asked next has to wait a moment."""
        self._pressed_at = time.monotonic()
        if self.asked is None:
            self._typed_at = self._pressed_at

    def expect(self) -> None:
        """The user gave a command, and waits for what it asks."""
        self._pressed_at = self._typed_at = 0.0

    @overload
    async def ask(self, question: Permission, *, first: bool = False) -> Answer | None: ...

    @overload
    async def ask(self, question: Picking | Entering, *, first: bool = False) -> str | None: ...

    async def ask(self, question: Question, *, first: bool = False) -> Answer | str | None:
        """Ask, before what waits already if `first`; return None where there is no answer."""
        self._questions.insert(0 if first else len(self._questions), question)
        self.sync()
        try:
            return await question.answer
        finally:
            self._withdraw(question)

    def choose(self, letter: str) -> None:
        """Answer a permission request by its letter; any other key answers nothing."""
        if isinstance(self.asked, Permission):
            answer = self.asked.answers.get(letter.lower())
            if answer is not None:
                self._answer(self.asked, self.asked.answer, answer)

    def accept(self, typed: str) -> None:
        """Take what is picked, or what was typed."""
        question = self.asked
        if isinstance(question, Picking):
            item = question.picked(typed)
            if item is not None:
                self._answer(question, question.answer, item.value)
        elif isinstance(question, Entering):
            self._answer(question, question.answer, typed)

    def decline(self, question: Question | None) -> None:
        """Leave a list or a text without an answer."""
        if isinstance(question, Picking | Entering):
            self._answer(question, question.answer, None)

    def move(self, by: int, typed: str) -> None:
        """Go up or down in a list."""
        if isinstance(self.asked, Picking):
            self.asked.move(by, typed)

    def refuse_permissions(self) -> None:
        """Leave every permission request without an answer."""
        for question in list(self._questions):
            if isinstance(question, Permission):
                self._answer(question, question.answer, None)

    def sync(self) -> None:
        """Let the keys go where they belong."""
        question = self.waiting
        if question is not None and question is not self.asked:
            # No key shall allow anything by chance; a list or a text takes no harm from one that
            # was meant for the list or text before it.
            last = self._pressed_at if isinstance(question, Permission) else self._typed_at
            left = _TYPING_SECONDS - (time.monotonic() - last)
            if left > 0:
                asyncio.get_running_loop().call_later(left, self.sync)
                question = None
        if question is not self.asked:
            self.asked = question
            self._turned(question)

    def _answer(self, question: Question, answer: asyncio.Future[_T], value: _T) -> None:
        """Give an answer; the next key is for what comes after the question."""
        if not answer.done():
            answer.set_result(value)
        self._withdraw(question)

    def _withdraw(self, question: Question) -> None:
        if question in self._questions:
            self._questions.remove(question)
        self.sync()
