"""A conversation's front in a terminal that can move its cursor."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from acp_agent.cli.chat.calls import ShownCall
from acp_agent.cli.chat.front import Answer, Field, How, Item
from acp_agent.cli.chat.lending import Lending
from acp_agent.cli.chat.questions import (
    INSTEAD,
    ListQuestion,
    PermissionQuestion,
    QuestionQueue,
    TextQuestion,
    refusal_of,
)
from acp_agent.cli.chat.transcript import Transcript
from acp_agent.cli.chat.turns import how_said, stop_reason
from acp_agent.cli.chat.user_command import Ran
from acp_agent.cli.localization import translate
from acp_agent.cli.screen import Style
from protocol.v1 import types as acp


class TerminalFront:
    """Puts what is said on the screen, what is asked to the user, and programs into the terminal.

    Args:
        transcript: what is on the screen.
        questions: what the user is asked.
        lending: has the terminal for other programs.
        redraw: has the parts that change drawn anew, soon.

    Attributes:
        began: when the turn that runs began; None while none runs.
        person: there is somebody to ask.
    """

    def __init__(
        self,
        transcript: Transcript,
        questions: QuestionQueue,
        lending: Lending,
        redraw: Callable[[], None],
    ) -> None:
        self.began: float | None = None
        self.person = True
        self._transcript = transcript
        self._questions = questions
        self._lending = lending
        self._redraw = redraw

    def show(self, update: acp.SessionUpdate) -> None:
        """Show one update."""
        self._transcript.show(update)
        self._redraw()

    def say(self, text: str, style: Style = "") -> None:
        """Show something of our own."""
        self._transcript.say(text, style)
        self._redraw()

    def said(self, text: str, how: How) -> None:
        """Show what the user said."""
        self._transcript.user(text, how_said(how))
        self._redraw()

    def thoughts(self) -> None:
        """Show the last thoughts."""
        self._transcript.thoughts()

    def replaying(self, session: str) -> None:
        """An earlier conversation begins, or has ended."""
        self._transcript.replaying(session)

    def turn_began(self) -> None:
        """A turn runs."""
        self.began = time.monotonic()
        self._redraw()

    def turn_ended(self, reason: str, *, told: bool) -> None:
        """No turn runs any more."""
        self.began = None
        self._transcript.finish()
        if reason and reason != "end_turn" and not told:
            self._transcript.say(stop_reason(reason), "warning")
        self._redraw()

    def changed(self) -> None:
        """Something in the toolbar changed."""
        self._redraw()

    async def ask(
        self, call: ShownCall, options: Sequence[acp.PermissionOption], warning: str
    ) -> Answer | None:
        """Ask whether a call may run, and where the user rejects it so, what to do instead."""
        question = PermissionQuestion(call, options, warning)
        letter = await self._questions.ask(question)
        while letter == INSTEAD and (refusal := refusal_of(options)) is not None:
            field = Field(title=translate("What should the agent do instead?"))
            text = (await self._questions.ask(TextQuestion(field), first=True) or "").strip()
            if text:
                return Answer(refusal, text)
            question = PermissionQuestion(call, options, warning)
            letter = await self._questions.ask(question, first=True)
        return None if letter is None else Answer(question.options[letter])

    async def pick(self, title: str, items: Sequence[Item], description: str = "") -> str | None:
        """Let the user pick one of several."""
        return await self._questions.ask(ListQuestion(title, items, description))

    async def enter(self, field: Field) -> str | None:
        """Let the user enter a text."""
        return await self._questions.ask(TextQuestion(field))

    async def outside(self, command: Sequence[str], environ: Mapping[str, str]) -> int:
        """Run a program that has the terminal for itself."""
        return await self._lending.run(command, environ)

    async def run_command(self, command: str) -> Ran:
        """Run a command of the user's in the terminal."""
        return await self._lending.run_command(command)
