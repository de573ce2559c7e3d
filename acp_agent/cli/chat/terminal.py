"""The chat in a terminal that can move its cursor.

Complete parts are written once; the rows at the bottom are redrawn with each frame.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TextIO

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_input

from acp_agent.cli.chat.commands import Commands
from acp_agent.cli.chat.completion import ChatCompleter
from acp_agent.cli.chat.conversation import QUIT_SECONDS, ChatError, ChatOptions, Conversation
from acp_agent.cli.chat.foreground import Foreground
from acp_agent.cli.chat.history import PromptHistory
from acp_agent.cli.chat.keys import key_bindings
from acp_agent.cli.chat.layout import Panes, make_style, toolbar
from acp_agent.cli.chat.mentions import dropped_files, mention
from acp_agent.cli.chat.questions import (
    DETAILS,
    ListQuestion,
    PermissionQuestion,
    Question,
    QuestionQueue,
    TextQuestion,
)
from acp_agent.cli.chat.rendering import Renderer
from acp_agent.cli.chat.session_state import Choice
from acp_agent.cli.chat.terminal_frontend import TerminalFrontend
from acp_agent.cli.chat.terminal_output import FrameOutput, color_depth, terminal_colours
from acp_agent.cli.chat.transcript import Transcript
from acp_agent.cli.chat.user_shell import SHELL_PROMPT, ShellLine, UserShell
from acp_agent.cli.localization import translate
from acp_agent.cli.output import FAILED, INTERRUPTED, complain
from acp_agent.cli.signals import ending_signals

_FRAME_SECONDS = 0.04  # between two frames
_MODE_SECONDS = 0.7  # after the last Shift-Tab, to skip the modes in between
_MAX_PASTE = 2_000_000  # characters of a paste; the rest is dropped


class TerminalChat:
    """A conversation in a terminal; start it with `run`."""

    def __init__(self, options: ChatOptions, history: PromptHistory, out: TextIO) -> None:
        colours, monochrome = terminal_colours(out)
        unicode = (out.encoding or "").lower().replace("-", "") == "utf8"
        renderer = Renderer(colours, monochrome=monochrome, unicode=unicode)
        self._history = history
        self._status = 0
        self._error_text = ""
        self._ready = False  # true once the agent runs and a session is open
        self._quit_until = 0.0  # after this time, Ctrl-C no longer quits
        self._next_mode: Choice | None = None
        self._mode_timer: asyncio.TimerHandle | None = None
        self.questions = QuestionQueue(self._on_question_change)
        self._output = FrameOutput(
            out, term=os.environ.get("TERM", ""), depth=color_depth(colours, monochrome=monochrome)
        )
        self._transcript = Transcript(
            renderer,
            calls=lambda: self._conversation.calls,
            width=lambda: self._output.get_size().columns,
            commit=self._commit,
            cwd=options.cwd,
        )
        self._foreground = Foreground(self._release_terminal, options.cwd, screen=out)
        self.frontend = TerminalFrontend(
            self._transcript, self.questions, self._foreground, self._redraw
        )
        self._shell = UserShell(self.frontend, options.cwd, history.scrub, usable=True)
        self._conversation = Conversation(options, self.frontend, self._shell.take_shared)
        self._commands = Commands(self._conversation, self.frontend, self._shell, self.leave)
        self._prompt = Buffer(
            completer=ChatCompleter(
                self._commands.all,
                options.cwd,
                self._shell.is_command,
                self._conversation.resources,
            ),
            complete_while_typing=True,
            history=InMemoryHistory(history.load()),
            multiline=True,
            name="prompt",
        )
        self._answer = Buffer(multiline=False, name="answer")
        self._answer.on_text_changed += lambda _: self._on_filter_change()
        self._panes = Panes(
            prompt=self._prompt,
            answer=self._answer,
            questions=self.questions,
            transcript=self._transcript,
            renderer=renderer,
            size=self._size,
            status=self._status_texts,
            toolbar=lambda width: toolbar(
                self._conversation.state, width, waiting=len(self._conversation.turns.queue)
            ),
            mark=lambda: SHELL_PROMPT if self._shell.on else "> ",
        )
        self._app: Application[None] = Application(
            layout=self._panes.layout(),
            key_bindings=key_bindings(self, self.questions, self._prompt, self._answer),
            style=make_style(),
            input=create_input(),
            output=self._output,
            color_depth=self._output.get_default_color_depth(),
            erase_when_done=True,
            min_redraw_interval=_FRAME_SECONDS,
            before_render=lambda _: self._begin_frame(),
            after_render=lambda _: self._output.release(),
        )
        self._app.ttimeoutlen = 0.1
        self._app.timeoutlen = 0.3
        self._app.key_processor.before_key_press += lambda _: self.questions.key_pressed()

    async def run(self) -> int:
        """Chat until the user leaves; return the exit status."""
        opening = asyncio.create_task(self._open())
        ticking = asyncio.create_task(self._tick())
        lost_terminal = False
        asyncio.get_running_loop().set_exception_handler(self._on_loop_error)
        try:
            with ending_signals(self.leave):
                await self._app.run_async(handle_sigint=True, set_exception_handler=False)
        except EOFError:
            lost_terminal = True
            self._foreground.close()
        except Exception as error:  # noqa: BLE001 - shown in one line, as a traceback helps nobody
            self._fail(error)
            self._output.write_raw("\r")
            self._output.erase_down()
        finally:
            for task in (opening, ticking):
                task.cancel()
            await asyncio.gather(opening, ticking, return_exceptions=True)
            quick = lost_terminal or self._status > FAILED or not self._ready
            await self._conversation.aclose(quick=quick)
            self._write_remaining()
        if self._error_text:
            complain(self._error_text)
        return self._status

    def leave(self, status: int = 0) -> None:
        """End the chat."""
        self._status = status
        self._foreground.close()
        with contextlib.suppress(Exception):  # it is already ending
            self._app.exit()

    # --- keys

    def submit(self) -> None:
        """Handle the input: a command of the chat, a shell command or a prompt."""
        text = self._prompt.text.strip("\n")
        if not text.strip():
            return
        chat_command = self._commands.find(text)
        command = self._shell.parse_command(text) if chat_command is None else None
        if command is not None and command.text:
            space = " " if text[0].isspace() else ""  # excludes it from the history
            self._prompt.text = text = f"{space}{command.line}"  # as recalled by the arrow keys
        self._history.append(text)
        self._prompt.reset(append_to_history=True)
        if command is not None:
            self._run_in_shell(command)
        elif chat_command is not None:
            self._transcript.user(text.strip())
            self.questions.skip_delay()
            self._conversation.run(lambda: self._commands.run(*chat_command))
        else:
            self._conversation.turns.submit(text.strip())

    def _run_in_shell(self, command: ShellLine) -> None:
        if command.text:
            self._transcript.user(command.text, prompt=SHELL_PROMPT)
            self._conversation.run(lambda: self._shell.run(command))
        else:
            self._shell.toggle()

    def paste(self, text: str) -> None:
        """Insert a pasted text; mention files that were dropped on the terminal."""
        pasted = text[:_MAX_PASTE].replace("\r\n", "\n").replace("\r", "\n")
        if len(text) > _MAX_PASTE:
            self.frontend.say(
                translate(("The pasted text was cut after {count} characters."), count=_MAX_PASTE),
                "bad",
            )
        files = dropped_files(pasted)
        self._prompt.insert_text(" ".join(map(mention, files)) + " " if files else pasted)

    def interrupt(self) -> None:
        """Handle Ctrl-C: decline a question, cancel the turn, clear the prompt or quit.

        Each press does one of these. If nothing is left, the first one warns and the second quits.
        """
        question = self.questions.waiting
        if self._foreground.busy:
            return  # Ctrl-C is for the program that uses the terminal
        if isinstance(question, ListQuestion | TextQuestion):
            self.questions.decline(question)
        elif self.cancel():
            pass
        elif self._conversation.turns.busy or not self._ready:
            self.leave(INTERRUPTED)
        elif self._prompt.text:
            self._prompt.reset()
        elif self._shell.on:
            self._shell.toggle()
        elif time.monotonic() < self._quit_until:
            self.leave()
        else:
            self._quit_until = time.monotonic() + QUIT_SECONDS
            asyncio.get_running_loop().call_later(QUIT_SECONDS, self._redraw)
            self._redraw()

    def cancel(self) -> bool:
        """Cancel the turn and its permission requests; return whether there was one."""
        if not self._conversation.turns.cancel():
            return False
        self.questions.cancel_permissions()
        return True

    def next_mode(self) -> None:
        """Select the next mode; it takes effect after a short delay without another press."""
        modes = self._conversation.state.mode_choices()
        if not modes:
            return
        current = self._next_mode or self._conversation.state.mode
        self._next_mode = modes[(modes.index(current) + 1) % len(modes) if current in modes else 0]
        if self._mode_timer is not None:
            self._mode_timer.cancel()
        self._mode_timer = asyncio.get_running_loop().call_later(_MODE_SECONDS, self._enter_mode)
        self._redraw()

    def _enter_mode(self) -> None:
        mode, self._next_mode = self._next_mode, None
        if mode is not None and not mode.current:
            self._conversation.run(lambda: self._conversation.set_option("mode", mode.value))
        self._redraw()

    def toggle_shell(self) -> None:
        """Switch between the agent and the user's shell."""
        self._shell.toggle()

    def end_of_input(self) -> None:
        """Handle Ctrl-D: leave the shell, or the chat."""
        if self._shell.on:
            self._shell.toggle()
        else:
            self.leave()

    def press_letter(self, letter: str) -> None:
        """Answer a permission request by its letter, or show the call in full."""
        question = self.questions.active
        if letter == DETAILS and isinstance(question, PermissionQuestion):
            self._transcript.details(question.call)
            self._redraw()
        else:
            self.questions.press_letter(letter)

    # --- drawing

    def _size(self) -> tuple[int, int]:
        size = self._output.get_size()
        return size.columns, size.rows

    def _status_texts(self) -> list[str]:
        texts = [self._activity(), self._shell.shared]
        if time.monotonic() < self._quit_until:
            texts.append(translate("Press Ctrl-C again to quit."))
        if self._next_mode is not None:
            texts.append(translate("Mode: {mode}", mode=self._next_mode.name))
        if self._shell.on:
            texts.append(translate("Your shell; Ctrl-X returns to the agent."))
        return texts

    def _activity(self) -> str:
        if not self._ready:
            return "" if self.questions.waiting else translate("Starting the agent ...")
        if self._conversation.agent is None:
            return translate("The agent is not running; restart it with /restart.")
        if self._conversation.turns.cancelling:
            return translate("Cancelling the turn; press Ctrl-C again to quit immediately.")
        if self.frontend.turn_started_at is not None:
            seconds = int(time.monotonic() - self.frontend.turn_started_at)
            return translate("Working, {seconds} s; Esc cancels.", seconds=seconds)
        return ""

    def _redraw(self) -> None:
        self._app.invalidate()

    def _begin_frame(self) -> None:
        self._panes.refresh()
        needed = self._app.layout.container.preferred_height(*self._size()).preferred
        self._output.start_frame(self._app.renderer, needed)

    def _commit(self, lines: Sequence[str]) -> None:
        self._output.queue_lines(lines)
        self._redraw()

    def _on_question_change(self, question: Question | None) -> None:
        default = question.field.default if isinstance(question, TextQuestion) else ""
        self._answer.text = default
        self._answer.cursor_position = len(default)
        self._panes.focus(self._app.layout)
        self._redraw()

    def _on_filter_change(self) -> None:
        question = self.questions.waiting
        if isinstance(question, ListQuestion) and self._answer.text:
            question.index = 0

    # --- start and end

    async def _open(self) -> None:
        try:
            await self._conversation.start()
        except ChatError as error:
            self._transcript.say(f"acp-agent: {error}", "bad")
            self.leave(FAILED)
            return
        self._ready = True
        agent = self._conversation.agent
        name = agent.name if agent is not None else ""
        self.frontend.say(
            translate(
                "{agent} in {folder}; /help lists commands and keys.",
                agent=name or "acp-agent",
                folder=self._conversation.options.cwd,
            ),
            "dim",
        )
        if self._conversation.options.prompt:
            self._conversation.turns.submit(self._conversation.options.prompt)
        self._conversation.turns.send_next()

    @asynccontextmanager
    async def _release_terminal(self) -> AsyncIterator[None]:
        """Clear the drawing and write the pending lines."""
        async with in_terminal():
            self._output.write_above()
            self._output.flush()
            yield

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(1)
            if self.frontend.turn_started_at is not None:
                self._redraw()

    def _write_remaining(self) -> None:
        """Write the rest of the transcript, and how to continue."""
        self._transcript.finish()
        state = self._conversation.state
        if state.prompted and self._conversation.resumable:
            command = f"{self._conversation.options.chat_command} --resume {state.id}"
            self._transcript.say(translate("Continue with: {command}", command=command), "dim")
        self._output.write_above()
        self._output.release()

    def _on_loop_error(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """End the chat, because drawing or a key binding failed."""
        error = context.get("exception")
        if isinstance(error, Exception) and context.get("handle") is not None:
            self._fail(error)
            self.leave(FAILED)

    def _fail(self, error: Exception) -> None:
        self._status = FAILED
        self._error_text = f"the chat failed, which is a bug ({type(error).__name__}: {error})"
