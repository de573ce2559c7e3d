"""The chat without a terminal, or in one that cannot move its cursor."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TextIO

from acp_agent.cli.agent_client import PermissionRequest
from acp_agent.cli.chat.call_lines import details
from acp_agent.cli.chat.commands import Commands
from acp_agent.cli.chat.conversation import QUIT_SECONDS, ChatError, ChatOptions, Conversation
from acp_agent.cli.chat.foreground import Foreground
from acp_agent.cli.chat.frontend import Answer, Field, PromptStatus
from acp_agent.cli.chat.history import PromptHistory
from acp_agent.cli.chat.questions import DETAILS, assign_letters, find_rejection
from acp_agent.cli.chat.session_state import Choice, ShownCall
from acp_agent.cli.chat.standard_streams import LineInput, stop_on_write_error
from acp_agent.cli.chat.turns import status_text
from acp_agent.cli.chat.user_shell import SHELL_PROMPT, UserShell
from acp_agent.cli.localization import translate
from acp_agent.cli.output import FAILED, INTERRUPTED, complain, one_line, terminal_text
from acp_agent.cli.screen import Paint, Screen, Style, block_text, painter
from acp_agent.cli.signals import ending_signals, interrupts
from protocol.v1 import types as acp

_MAX_ATTEMPTS = 3  # to answer a question


class LineChat:
    """A conversation that reads and writes plain lines; implements `Frontend`.

    If the input is not a terminal, each line is a prompt that waits for the previous one,
    permission requests are refused, and the chat ends at the end of input.
    """

    def __init__(self, options: ChatOptions, history: PromptHistory, out: TextIO) -> None:
        self.interactive = sys.stdin.isatty()
        self._shell = UserShell(self, options.cwd, history.scrub, usable=self.interactive)
        self._conversation = Conversation(options, self, self._shell.take_shared)
        self._history = history
        self._paint = stop_on_write_error(painter(out), out, self._on_write_error)
        self._screen = Screen(self._paint, cwd=options.cwd)
        self._questions = LineQuestions(
            self._screen,
            self._paint,
            lambda: self._conversation.state.id,
            interactive=self.interactive,
        )
        self.ask_permission = self._questions.ask_permission
        self.pick = self._questions.pick
        self.enter_text = self._questions.enter_text
        self._input = LineInput(terminal=self.interactive)
        self._foreground = Foreground(self._release_terminal, options.cwd, screen=out)
        self.run_program = self._foreground.run_program
        self.run_command = self._foreground.run_command
        self._commands = Commands(self._conversation, self, self._shell, self._leave)
        self._idle = asyncio.Event()
        self._idle.set()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._ready = False
        self._quit_until = 0.0  # when a second Ctrl-C no longer quits
        self._status = 0
        self._main: asyncio.Task[int] | None = None

    async def run(self) -> int:
        """Chat until the input ends or the user leaves; return the exit status."""
        self._main = asyncio.current_task()
        was_cancelled = False
        reading = asyncio.create_task(self._read_lines())
        try:
            with interrupts(self._interrupt), ending_signals(self._leave):
                return await self._chat()
        except asyncio.CancelledError:
            was_cancelled = True
            return self._status
        finally:
            self._foreground.close()
            self._input.stop()
            reading.cancel()
            await self._conversation.aclose(quick=was_cancelled and self._conversation.turns.busy)

    async def _chat(self) -> int:
        try:
            await self._conversation.start()
        except ChatError as error:
            for part in str(error).splitlines():
                complain(part)
            return FAILED
        self._ready = True
        if self._conversation.options.prompt:
            self._conversation.turns.submit(self._conversation.options.prompt)
        else:
            self._show_prompt_mark()
        while (line := await self._lines.get()) is not None:
            self._submit(line)
            if not self.interactive:
                await self._idle.wait()
        await self._idle.wait()
        return 0

    async def _read_lines(self) -> None:
        """Pass each line to the open question, or to the chat."""
        self._input.start()
        line: str | None = ""
        while line is not None:
            line = await self._input.next()
            if self._questions.waiting:
                self._questions.answer(line)
            if line is None or not self._questions.waiting:
                self._lines.put_nowait(line)

    def _submit(self, line: str) -> None:
        text = line.strip()
        if not text:
            self._show_prompt_mark()
            return
        chat_command = self._commands.find(line)
        command = self._shell.parse_command(text) if chat_command is None else None
        is_command = command is not None and command.text
        self._history.append(command.line if command and is_command else line.rstrip("\r\n"))
        if chat_command is not None:
            self._run_outside_turn(lambda: self._commands.run(*chat_command))
        elif command is None:
            self._conversation.turns.submit(text)
        elif is_command:
            self._run_outside_turn(lambda: self._shell.run(command))
        else:
            self._shell.toggle()
            self._show_prompt_mark()

    def _run_outside_turn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a task outside a turn, then show the prompt again."""

        async def run() -> None:
            try:
                await work()
            finally:
                if not self._conversation.turns.busy:
                    self._idle.set()
                    self._show_prompt_mark()

        self._idle.clear()
        self._conversation.run(run)

    def _interrupt(self) -> None:
        if self._foreground.busy:
            return  # Ctrl-C is for the program that uses the terminal
        if self._conversation.turns.cancel():
            self.say(
                translate("Cancelling the turn; press Ctrl-C again to quit immediately."), "warning"
            )
            if self._questions.waiting:
                self._questions.answer(None)
            return
        if self._conversation.turns.busy or not self._ready:
            self._leave(INTERRUPTED)
        elif time.monotonic() < self._quit_until:
            self._leave()
        else:
            self._quit_until = time.monotonic() + QUIT_SECONDS
            self.say(translate("Press Ctrl-C again to quit."), "warning")
            self._show_prompt_mark()

    def _on_write_error(self, error: OSError) -> None:
        """End the chat, because output is no longer possible."""
        if isinstance(error, BrokenPipeError):  # the reader has exited, as `head` does
            self._leave()
            return
        complain(translate("cannot write the output: {reason}", reason=error.strerror or error))
        self._leave(FAILED)

    def _leave(self, status: int = 0) -> None:
        self._status = status
        if self._main is not None:
            self._main.cancel()

    def _show_prompt_mark(self) -> None:
        if self.interactive and not self._conversation.turns.busy:
            self._screen.close_line()
            if self._shell.shared:
                self.say(self._shell.shared, "dim")
            self._paint(SHELL_PROMPT if self._shell.on else "> ", "")

    @asynccontextmanager
    async def _release_terminal(self) -> AsyncIterator[None]:
        self._screen.close_line()
        with self._input.paused():
            yield

    # --- implementation of Frontend

    def show(self, update: acp.SessionUpdate) -> None:
        """Show one update."""
        if isinstance(update, acp.UserMessageChunk):
            self._screen.say(f"> {terminal_text(block_text(update.content))}", "bold")
            return
        self._screen.update(update)

    def say(self, text: str, style: Style = "") -> None:
        """Show a message of the chat itself."""
        for line in terminal_text(text).split("\n"):
            self._screen.say(line, style)

    def show_prompt(self, text: str, status: PromptStatus) -> None:
        """Show when the agent receives a prompt; the terminal has already echoed its text."""
        if status != "sent":
            self.say(f"{one_line(text)} {status_text(status)}", "dim")
        elif not self.interactive:
            self._screen.say(f"> {terminal_text(text)}", "bold")

    def show_thoughts(self) -> None:
        """Say that thoughts are already shown."""
        self.say(translate("Thoughts are shown as they arrive."))

    def start_replay(self) -> None:
        """Do nothing; earlier conversations are shown as they arrive."""

    def end_replay(self) -> None:
        """Do nothing."""

    def turn_started(self) -> None:
        """Show that a turn started."""
        self._idle.clear()

    def turn_ended(self, reason: str, *, explained: bool) -> None:
        """Show the stop reason and the usage, even if the agent explained it."""
        del explained
        if reason:
            self._screen.show_end(reason)
        if not self._conversation.turns.queue:
            self._idle.set()
        self._show_prompt_mark()

    def refresh(self) -> None:
        """Do nothing; nothing is displayed permanently."""


class LineQuestions:
    """Asks one question at a time; `answer` receives the user's lines.

    Args:
        session: returns the ID of the open session.
        interactive: whether there is a user; otherwise every question is refused.
    """

    def __init__(
        self, screen: Screen, paint: Paint, session: Callable[[], str], *, interactive: bool
    ) -> None:
        self._screen = screen
        self._paint = paint
        self._session = session
        self._interactive = interactive
        self._question_lock = asyncio.Lock()
        self._answers: asyncio.Queue[str | None] = asyncio.Queue()

    @property
    def waiting(self) -> bool:
        """Return whether a question is open."""
        return self._question_lock.locked()

    def answer(self, line: str | None) -> None:
        """Pass a line as the answer; None abandons the question."""
        self._answers.put_nowait(line)

    async def ask_permission(
        self, call: ShownCall, options: Sequence[acp.PermissionOption], warning: str
    ) -> Answer | None:
        """Ask for a letter; text after a rejection's letter says what to do instead."""
        async with self._question_lock:
            self._clear_answers()
            request = acp.RequestPermissionRequest(
                session_id=self._session(),
                tool_call=acp.ToolCallUpdate(tool_call_id=call.id, content=_content(call)),
                options=options,
            )
            permission = PermissionRequest(
                title=call.title, kind=call.kind, options=tuple(options), request=request
            )
            by_letter = assign_letters(options)
            refusal = find_rejection(options)
            refused = None if refusal is None else Answer(refusal)
            if not self._interactive:
                self._screen.show_answer(permission, translate("Refused: nobody to ask"))
                return refused
            self._screen.permission(permission)
            if warning:
                self._say(f"  ! {warning}", "bad")
            for _ in range(_MAX_ATTEMPTS):
                for letter, option in by_letter.items():
                    self._say(f"  [{letter}] {one_line(option.name)}", "warning")
                self._say(f"  [{DETAILS}] {translate('details')}", "dim")
                if refusal is not None:
                    self._say(
                        f"  {translate('You can add a reason after the letter of a rejection.')}",
                        "dim",
                    )
                line = await self._next_line("  ? ")
                if line is None:
                    return None
                if line == DETAILS:
                    self._say("\n".join(details(call.title, call.raw_input)))
                elif line.lower() in by_letter:
                    return Answer(by_letter[line.lower()])
                letter, _, instruction = line.partition(" ")
                if refusal is not None and by_letter.get(letter.lower()) is refusal:
                    return Answer(refusal, instruction.strip())
            self._say(translate("Refused: no answer"), "warning")
            return refused

    async def pick(
        self, title: str, choices: Sequence[Choice], description: str = ""
    ) -> str | None:
        """Ask the user to pick by number; an empty line picks nothing."""
        if not self._interactive:
            return None
        async with self._question_lock:
            self._clear_answers()
            self._say(f"? {one_line(title)} {one_line(description)}".rstrip(), "warning")
            for number, item in enumerate(choices, 1):
                mark = " *" if item.current else ""
                self._say(f"  {number}) {one_line(item.name)}{mark}  {one_line(item.description)}")
            for _ in range(_MAX_ATTEMPTS):
                typed = await self._next_line(translate("  number: "))
                if not typed:
                    return None
                if typed.isdecimal() and 1 <= int(typed) <= len(choices):
                    return choices[int(typed) - 1].value
            return None

    async def enter_text(self, field: Field) -> str | None:
        """Ask the user for a line; None at the end of input."""
        if not self._interactive:
            return None
        async with self._question_lock:
            self._clear_answers()
            self._say(f"? {one_line(field.title)} {one_line(field.description)}", "warning")
            if field.complaint:
                self._say(f"  ! {field.complaint}", "bad")
            default = f" [{one_line(field.default)}]" if field.default else ""
            line = await self._next_line(f"  >{default} ")
            return field.default if line == "" else line

    async def _next_line(self, prompt: str) -> str | None:
        self._screen.close_line()
        self._paint(prompt, "")
        line = await self._answers.get()
        return None if line is None else line.strip()

    def _clear_answers(self) -> None:
        self._answers = asyncio.Queue()

    def _say(self, text: str, style: Style = "") -> None:
        for line in terminal_text(text).split("\n"):
            self._screen.say(line, style)


def _content(call: ShownCall) -> list[acp.ToolCallContent]:
    text = "\n".join(call.output_lines())
    content: list[acp.ToolCallContent] = list(call.diffs)
    if text:
        content.append(acp.Content(content=acp.TextContent(text=text)))
    return content
