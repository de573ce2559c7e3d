"""The frontend of a conversation in a terminal that can move its cursor."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from acp_agent.cli.chat.foreground import Foreground
from acp_agent.cli.chat.frontend import Answer, Field, PromptStatus
from acp_agent.cli.chat.questions import (
    REJECT_WITH_TEXT,
    ListQuestion,
    PermissionQuestion,
    QuestionQueue,
    TextQuestion,
    find_rejection,
)
from acp_agent.cli.chat.session_state import Choice, ShownCall
from acp_agent.cli.chat.transcript import Transcript
from acp_agent.cli.chat.turns import status_text, stop_reason
from acp_agent.cli.localization import translate
from acp_agent.cli.screen import Style
from protocol.v1 import types as acp


class TerminalFrontend:
    """Implements `Frontend` with a transcript, questions, and programs in the terminal.

    Attributes:
        turn_started_at: when the running turn started; None if none runs.
    """

    def __init__(
        self,
        transcript: Transcript,
        questions: QuestionQueue,
        foreground: Foreground,
        redraw: Callable[[], None],
    ) -> None:
        self.turn_started_at: float | None = None
        self.interactive = True
        self._transcript = transcript
        self._questions = questions
        self.refresh = redraw
        self.show_thoughts = transcript.show_thoughts
        self.start_replay = transcript.start_replay
        self.end_replay = transcript.end_replay
        self.run_program = foreground.run_program
        self.run_command = foreground.run_command

    def show(self, update: acp.SessionUpdate) -> None:
        """Show one update."""
        self._transcript.show(update)
        self.refresh()

    def say(self, text: str, style: Style = "") -> None:
        """Show a message of the chat itself."""
        self._transcript.say(text, style)
        self.refresh()

    def show_prompt(self, text: str, status: PromptStatus) -> None:
        """Show the user's prompt."""
        self._transcript.user(text, status_text(status))
        self.refresh()

    def turn_started(self) -> None:
        """Show that a turn started."""
        self.turn_started_at = time.monotonic()
        self.refresh()

    def turn_ended(self, reason: str, *, explained: bool) -> None:
        """Show that the turn ended."""
        self.turn_started_at = None
        self._transcript.finish()
        if reason and reason != "end_turn" and not explained:
            self._transcript.say(stop_reason(reason), "warning")
        self.refresh()

    async def ask_permission(
        self, call: ShownCall, options: Sequence[acp.PermissionOption], warning: str
    ) -> Answer | None:
        """Ask whether a call may run, and on request what the agent should do instead."""
        question = PermissionQuestion(call, options, warning)
        letter = await self._questions.ask(question)
        while letter == REJECT_WITH_TEXT and (refusal := find_rejection(options)) is not None:
            field = Field(title=translate("What should the agent do instead?"))
            text = (await self._questions.ask(TextQuestion(field), first=True) or "").strip()
            if text:
                return Answer(refusal, text)
            question = PermissionQuestion(call, options, warning)
            letter = await self._questions.ask(question, first=True)
        return None if letter is None else Answer(question.options[letter])

    async def pick(
        self, title: str, choices: Sequence[Choice], description: str = ""
    ) -> str | None:
        """Ask the user to pick one of several choices."""
        return await self._questions.ask(ListQuestion(title, choices, description))

    async def enter_text(self, field: Field) -> str | None:
        """Ask the user for a text."""
        return await self._questions.ask(TextQuestion(field))
