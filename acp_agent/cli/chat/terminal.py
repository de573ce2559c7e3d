"""The chat in a terminal that can move its cursor: a few lines at the bottom are drawn anew."""

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

from acp_agent.cli.chat.colours import colour_depth, colours_of
from acp_agent.cli.chat.commands import Commands
from acp_agent.cli.chat.completion import ChatCompleter
from acp_agent.cli.chat.conversation import Conversation
from acp_agent.cli.chat.frames import FrameOutput
from acp_agent.cli.chat.history import PromptHistory
from acp_agent.cli.chat.keys import key_bindings
from acp_agent.cli.chat.layout import Panes, make_layout, make_style
from acp_agent.cli.chat.lending import Lending
from acp_agent.cli.chat.questions import (
    DETAILS,
    ListQuestion,
    PermissionQuestion,
    Question,
    QuestionQueue,
    TextQuestion,
)
from acp_agent.cli.chat.rendering import Renderer
from acp_agent.cli.chat.state import Choice
from acp_agent.cli.chat.terminal_front import TerminalFront
from acp_agent.cli.chat.transcript import Transcript
from acp_agent.cli.chat.user_shell import SHELL_PROMPT, ShellLine, UserShell
from acp_agent.cli.chat.wishes import QUIT_SECONDS, ChatError, Wishes
from acp_agent.cli.localization import translate
from acp_agent.cli.output import FAILED, INTERRUPTED, complain
from acp_agent.cli.signals import ending_signals

_FRAME_SECONDS = 0.04  # between two frames
_MODE_SECONDS = 0.7  # after the last Shift-Tab, so that no mode is entered on the way to another


class TerminalChat:
    """A conversation in a terminal; `run` it.

    Args:
        wishes: how the conversation is to begin.
        history: what was typed before.
        out: the terminal.
    """

    def __init__(self, wishes: Wishes, history: PromptHistory, out: TextIO) -> None:
        colours, monochrome = colours_of(out)
        unicode = (out.encoding or "").lower().replace("-", "") == "utf8"
        self.renderer = Renderer(colours, monochrome=monochrome, unicode=unicode)
        self._history = history
        self._status = 0
        self._fault = ""
        self._ready = False
        self._quit_until = 0.0  # when a second Ctrl-C no longer quits
        self._next_mode: Choice | None = None
        self._mode_timer: asyncio.TimerHandle | None = None
        self.questions = QuestionQueue(self._turned)
        self._output = FrameOutput(
            out,
            term=os.environ.get("TERM", ""),
            colours=colour_depth(colours, monochrome=monochrome),
        )
        self.transcript = Transcript(
            self.renderer,
            find=lambda: self.conversation.calls,
            width=lambda: self._output.get_size().columns,
            commit=self._commit,
            cwd=wishes.cwd,
        )
        self._lending = Lending(self._free, wishes.cwd, screen=out)
        self.front = TerminalFront(self.transcript, self.questions, self._lending, self._redraw)
        self.shell = UserShell(self.front, wishes.cwd, history.scrub, usable=True)
        self.conversation = Conversation(wishes, self.front, self.shell.take_shared)
        self.commands = Commands(self.conversation, self.front, self.shell, self.leave)
        self.input = Buffer(
            completer=ChatCompleter(self.commands.all, wishes.cwd, self.shell.is_command),
            complete_while_typing=True,
            history=InMemoryHistory(history.load()),
            multiline=True,
            name="prompt",
        )
        self.answer = Buffer(multiline=False, name="answer")
        self.answer.on_text_changed += lambda _: self._filtered()
        self.panes = Panes(self)
        self._app: Application[None] = Application(
            layout=make_layout(self.panes),
            key_bindings=key_bindings(self),
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
        """Chat until the user leaves; the exit status."""
        opening = asyncio.create_task(self._open())
        ticking = asyncio.create_task(self._tick())
        ended = False
        asyncio.get_running_loop().set_exception_handler(self._broke)
        try:
            with ending_signals(self.leave):
                await self._app.run_async(handle_sigint=True, set_exception_handler=False)
        except EOFError:  # the terminal is gone
            ended = True
            self._lending.close()
        except Exception as error:  # noqa: BLE001 - a line says it, where a traceback helps nobody
            self._fail(error)
            self._output.write_raw("\r")
            self._output.erase_down()
        finally:
            for task in (opening, ticking):
                task.cancel()
            await asyncio.gather(opening, ticking, return_exceptions=True)
            hurry = ended or self._status > FAILED or not self._ready
            await self.conversation.aclose(hurry=hurry)
            self._write_rest()
        if self._fault:
            complain(self._fault)
        return self._status

    def leave(self, status: int = 0) -> None:
        """End the chat."""
        self._status = status
        self._lending.close()
        with contextlib.suppress(Exception):  # it is ending already
            self._app.exit()

    # --- what the keys do

    def submit(self) -> None:
        """Take what was typed: a command of the chat's, or words to the agent."""
        text = self.input.text.strip("\n")
        if not text.strip():
            return
        found = self.commands.find(text)
        command = self.shell.command_in(text) if found is None else None
        if command is not None and command.text:
            space = " " if text[0].isspace() else ""  # which keeps it out of the history
            self.input.text = text = f"{space}{command.line}"  # the arrow keys bring it back so
        self._history.append(text)
        self.input.reset(append_to_history=True)
        if command is not None:
            self._run_in_shell(command)
        elif found is not None:
            self.transcript.user(text.strip())
            self.questions.skip_delay()
            self.conversation.run(lambda: self.commands.run(*found))
        else:
            self.conversation.turns.submit(text.strip())

    def _run_in_shell(self, command: ShellLine) -> None:
        if command.text:
            self.transcript.user(command.text, prompt=SHELL_PROMPT)
            self.conversation.run(lambda: self.shell.run(command))
        else:
            self.shell.toggle()

    def interrupt(self) -> None:
        """Ctrl-C: leave a question, cancel the turn, empty the prompt, or quit; one at a time.

        With nothing to cancel or to empty, the first Ctrl-C warns and a second one quits.
        """
        question = self.questions.waiting
        if self._lending.lent:
            return  # it is for the program that has the terminal
        if isinstance(question, ListQuestion | TextQuestion):
            self.questions.decline(question)
        elif self.cancel():
            pass
        elif self.conversation.turns.busy or not self._ready:
            self.leave(INTERRUPTED)
        elif self.input.text:
            self.input.reset()
        elif self.shell.on:
            self.shell.toggle()
        elif self.quitting:
            self.leave()
        else:
            self._quit_until = time.monotonic() + QUIT_SECONDS
            asyncio.get_running_loop().call_later(QUIT_SECONDS, self._redraw)
            self._redraw()

    def cancel(self) -> bool:
        """Cancel the turn, and what it asks permission for; return whether there was one."""
        if not self.conversation.turns.cancel():
            return False
        self.questions.cancel_permissions()
        return True

    def next_mode(self) -> None:
        """Move to the next mode, which takes effect once no further one was chosen for a moment."""
        modes = self.conversation.state.mode_choices()
        if not modes:
            return
        at = self._next_mode.value if self._next_mode else self.conversation.state.mode_id
        ids = [mode.value for mode in modes]
        self._next_mode = modes[(ids.index(at) + 1) % len(modes) if at in ids else 0]
        if self._mode_timer is not None:
            self._mode_timer.cancel()
        self._mode_timer = asyncio.get_running_loop().call_later(_MODE_SECONDS, self._enter_mode)
        self._redraw()

    def _enter_mode(self) -> None:
        mode, self._next_mode = self._next_mode, None
        if mode is not None and mode.value != self.conversation.state.mode_id:
            self.conversation.run(lambda: self.conversation.set_option("mode", mode.value))
        self._redraw()

    def end_of_input(self) -> None:
        """Ctrl-D: leave the shell, or the chat."""
        if self.shell.on:
            self.shell.toggle()
        else:
            self.leave()

    def choose(self, letter: str) -> None:
        """Answer a permission request by its letter, or show all that is known of the call."""
        question = self.questions.active
        if letter == DETAILS and isinstance(question, PermissionQuestion):
            self.transcript.details(question.call)
            self._app.invalidate()
        else:
            self.questions.press_letter(letter)

    # --- what the panes show

    @property
    def quitting(self) -> bool:
        """Whether the next Ctrl-C quits."""
        return time.monotonic() < self._quit_until

    @property
    def chosen_mode(self) -> str:
        """The name of the mode that Shift-Tab chose and that takes effect in a moment, or empty."""
        return "" if self._next_mode is None else self._next_mode.name

    @property
    def ready(self) -> bool:
        """Whether the agent is there and a session is open."""
        return self._ready

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of the terminal."""
        size = self._output.get_size()
        return size.columns, size.rows

    # --- how it works

    async def _open(self) -> None:
        try:
            await self.conversation.begin()
        except ChatError as error:
            self.transcript.say(f"acp-agent: {error}", "bad")
            self.leave(FAILED)
            return
        self._ready = True
        self._greet()
        if self.conversation.wishes.prompt:
            self.conversation.turns.submit(self.conversation.wishes.prompt)
        self.conversation.turns.go_on()

    def _redraw(self) -> None:
        self._app.invalidate()

    @asynccontextmanager
    async def _free(self) -> AsyncIterator[None]:
        """The terminal without anything drawn in it, and with the lines that wait written."""
        async with in_terminal():
            self._output.write_above()
            self._output.flush()
            yield

    def _greet(self) -> None:
        agent = self.conversation.agent
        name = agent.name if agent is not None else ""
        self.transcript.say(
            translate(
                "{agent} in {folder}; /help lists commands and keys.",
                agent=name or "acp-agent",
                folder=self.conversation.wishes.cwd,
            ),
            "dim",
        )
        self._app.invalidate()

    def _turned(self, question: Question | None) -> None:
        """Another question, or none, has the keys."""
        default = question.field.default if isinstance(question, TextQuestion) else ""
        self.answer.text = default
        self.answer.cursor_position = len(default)
        self.panes.focus(self._app.layout)
        self._app.invalidate()

    def _filtered(self) -> None:
        question = self.questions.waiting
        if isinstance(question, ListQuestion) and self.answer.text:
            question.index = 0

    def _commit(self, lines: Sequence[str]) -> None:
        self._output.above(lines)
        self._app.invalidate()

    def _begin_frame(self) -> None:
        self.panes.refresh()
        columns, rows = self.size
        needed = self._app.layout.container.preferred_height(columns, rows).preferred
        self._output.begin(self._app.renderer, needed)

    def _write_rest(self) -> None:
        """Write what no frame took any more, and how to go on."""
        self.transcript.finish()
        state = self.conversation.state
        if state.prompted and self.conversation.resumable:
            command = f"{self.conversation.wishes.again} --resume {state.id}"
            self.transcript.say(translate("Continue with: {command}", command=command), "dim")
        self._output.write_above()
        self._output.release()

    def _broke(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Something of the chat's own failed while it drew or took a key: say so, and end."""
        error = context.get("exception")
        if isinstance(error, Exception) and context.get("handle") is not None:
            self._fail(error)
            self.leave(FAILED)

    def _fail(self, error: Exception) -> None:
        self._status = FAILED
        self._fault = f"broke by a fault of its own ({type(error).__name__}: {error})"

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(1)
            if self.front.began is not None:
                self._app.invalidate()
