"""The chat line by line: where there is no terminal, or one that cannot move its cursor."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TextIO

from acp_agent.cli.chat.commands import Commands
from acp_agent.cli.chat.conversation import Conversation
from acp_agent.cli.chat.front import How
from acp_agent.cli.chat.history import PromptHistory
from acp_agent.cli.chat.lending import Lending
from acp_agent.cli.chat.line_input import LineInput
from acp_agent.cli.chat.line_output import until_unread
from acp_agent.cli.chat.line_questions import LineQuestions
from acp_agent.cli.chat.turns import how_said
from acp_agent.cli.chat.user_command import Ran
from acp_agent.cli.chat.user_shell import SHELL_PROMPT, UserShell
from acp_agent.cli.chat.wishes import QUIT_SECONDS, ChatError, Wishes
from acp_agent.cli.localization import translate
from acp_agent.cli.output import FAILED, INTERRUPTED, complain, inert, one_line
from acp_agent.cli.screen import Screen, Style, block_text, painter
from acp_agent.cli.signals import ending_signals, interrupts
from protocol.v1 import types as acp


class LineChat:
    """The front of a conversation that reads and writes lines; `run` it.

    Where input is no terminal, each line is a prompt of its own that waits for the one before, what
    needs permission is refused, and the chat ends with its input.

    Args:
        wishes: how the conversation is to begin.
        history: keeps what was typed.
        out: where it is shown.
    """

    def __init__(self, wishes: Wishes, history: PromptHistory, out: TextIO) -> None:
        self.person = sys.stdin is not None and sys.stdin.isatty()
        self._shell = UserShell(self, wishes.cwd, history.scrub, usable=self.person)
        self.conversation = Conversation(wishes, self, self._shell.take_shared)
        self._history = history
        self._paint = until_unread(painter(out), out, self._unread)
        self._cwd = wishes.cwd
        self._screen = Screen(self._paint, cwd=wishes.cwd)
        self._questions = LineQuestions(
            self._screen, self._paint, lambda: self.conversation.state.id, person=self.person
        )
        self.ask, self.pick = self._questions.ask, self._questions.pick
        self.enter = self._questions.enter
        self._input = LineInput(terminal=self.person)
        self._lending = Lending(self._free, wishes.cwd, screen=out)
        self._commands = Commands(self.conversation, self, self._shell, self._leave)
        self._idle = asyncio.Event()
        self._idle.set()
        self._prompts: asyncio.Queue[str | None] = asyncio.Queue()
        self._ready = False
        self._quit_until = 0.0  # when a second Ctrl-C no longer quits
        self._status = 0
        self._me: asyncio.Task[int] | None = None

    async def run(self) -> int:
        """Chat until the input ends or the user leaves; the exit status."""
        self._me = asyncio.current_task()
        hurry = False
        sorting = asyncio.create_task(self._sort())
        try:
            with interrupts(self._interrupt), ending_signals(self._leave):
                return await self._chat()
        except asyncio.CancelledError:
            hurry = True
            return self._status
        finally:
            self._lending.close()
            self._input.stop()
            sorting.cancel()
            await self.conversation.aclose(hurry=hurry and self.conversation.turns.busy)

    async def _chat(self) -> int:
        try:
            await self.conversation.begin()
        except ChatError as error:
            for part in str(error).splitlines():
                complain(part)
            return FAILED
        self._ready = True
        if self.conversation.wishes.prompt:
            self.conversation.turns.submit(self.conversation.wishes.prompt)
        else:
            self._prompt()
        while (line := await self._prompts.get()) is not None:
            self._take(line)
            if not self.person:
                await self._idle.wait()
        await self._idle.wait()
        return 0

    async def _sort(self) -> None:
        """What is typed while something is asked is for that, and else a prompt."""
        self._input.start()
        line: str | None = ""
        while line is not None:
            line = await self._input.next()
            if self._questions.waiting:
                self._questions.take(line)
            if line is None or not self._questions.waiting:
                self._prompts.put_nowait(line)

    def _take(self, line: str) -> None:
        text = line.strip()
        if not text:
            self._prompt()
            return
        found = self._commands.find(line)
        command = self._shell.command_in(text) if found is None else None
        self._history.append(command.line if command else line.rstrip("\r\n"))
        if command is not None and command.text:
            self._beside(lambda: self._shell.run(command))
        elif command is not None:
            self._shell.toggle()
            self._prompt()
        elif found is not None:
            self._beside(lambda: self._commands.run(*found))
        else:
            self.conversation.turns.submit(text)

    def _beside(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do something that is no turn, and prompt again."""
        self._idle.clear()
        self.conversation.run(lambda: self._then_prompt(work))

    async def _then_prompt(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        finally:
            if not self.conversation.turns.busy:
                self._idle.set()
                self._prompt()

    def _interrupt(self) -> None:
        if self._lending.lent:
            return  # it is for the program that has the terminal
        if self.conversation.turns.cancel():
            self.say(translate("Cancelling the turn; Ctrl-C once more quits."), "warning")
            if self._questions.waiting:
                self._questions.take(None)
            return
        if self.conversation.turns.busy or not self._ready:
            self._leave(INTERRUPTED)
        elif time.monotonic() < self._quit_until:
            self._leave()
        else:
            self._quit_until = time.monotonic() + QUIT_SECONDS
            self.say(translate("Press Ctrl-C again to quit."), "warning")
            self._prompt()

    def _unread(self, error: OSError) -> None:
        """Nothing can be shown any more: a reader that went away ended the chat, as any command."""
        if isinstance(error, BrokenPipeError):
            self._leave()
            return
        complain(translate("the chat cannot be shown: {reason}", reason=error.strerror or error))
        self._leave(FAILED)

    def _leave(self, status: int = 0) -> None:
        self._status = status
        if self._me is not None:
            self._me.cancel()

    def _prompt(self) -> None:
        if self.person and not self.conversation.turns.busy:
            self._screen.close_line()
            if self._shell.shared:
                self.say(self._shell.shared, "dim")
            self._paint(SHELL_PROMPT if self._shell.on else "> ", "")

    # --- what the conversation wants of its front

    def show(self, update: acp.SessionUpdate) -> None:
        """Show one update."""
        if isinstance(update, acp.UserMessageChunk):
            self._screen.say(f"> {inert(block_text(update.content))}", "bold")
            return
        self._screen.update(update)

    def say(self, text: str, style: Style = "") -> None:
        """Show something of our own."""
        for line in inert(text).split("\n"):
            self._screen.say(line, style)

    def said(self, text: str, how: How) -> None:
        """Say what became of words that began no turn; those that did are on the screen."""
        if how != "sent":
            self.say(f"{one_line(text)} {how_said(how)}", "dim")
        elif not self.person:
            self._screen.say(f"> {inert(text)}", "bold")

    def thoughts(self) -> None:
        """Say that thoughts were shown already."""
        self.say(translate("Thoughts are shown as they come."))

    def replaying(self, session: str) -> None:
        """An earlier conversation is shown as it comes."""

    def turn_began(self) -> None:
        """A turn runs."""
        self._idle.clear()

    def turn_ended(self, reason: str, *, told: bool) -> None:
        """No turn runs any more. The reason is said in any case, among the figures of its end."""
        del told
        if reason:
            self._screen.ended(reason)
        if not self.conversation.turns.queue:
            self._idle.set()
        self._prompt()

    def changed(self) -> None:
        """There is no toolbar."""

    async def outside(self, command: Sequence[str], environ: Mapping[str, str]) -> int:
        """Run a program that has the terminal for itself."""
        return await self._lending.run(command, environ)

    async def run_command(self, command: str) -> Ran:
        """Run a command of the user's in the terminal."""
        return await self._lending.run_command(command)

    @asynccontextmanager
    async def _free(self) -> AsyncIterator[None]:
        self._screen.close_line()
        with self._input.left_alone():
            yield
