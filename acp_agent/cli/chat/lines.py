"""The chat line by line: where there is no terminal, or one that cannot move its cursor."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import TextIO

from acp_agent.cli.chat.call_lines import details
from acp_agent.cli.chat.calls import ShownCall
from acp_agent.cli.chat.chat_command import ChatCommand
from acp_agent.cli.chat.commands import Commands, no_command
from acp_agent.cli.chat.conversation import Conversation
from acp_agent.cli.chat.front import Field, How, Item
from acp_agent.cli.chat.history import PromptHistory
from acp_agent.cli.chat.line_input import LineInput
from acp_agent.cli.chat.questions import DETAILS, letters
from acp_agent.cli.chat.turns import how_said
from acp_agent.cli.chat.wishes import ChatError, Wishes
from acp_agent.cli.editor import Asked
from acp_agent.cli.inert import inert, one_line
from acp_agent.cli.interrupts import ending_signals, interrupts
from acp_agent.cli.output import FAILED, INTERRUPTED, complain
from acp_agent.cli.screen import Screen, Style, block_text, painter
from acp_agent.cli.words import words
from protocol.v1 import types as acp

_ATTEMPTS = 3


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
        self.conversation = Conversation(wishes, self)
        self._history = history
        self._out = out
        self._cwd = wishes.cwd
        self._screen = Screen(painter(out), cwd=wishes.cwd)
        self._person = sys.stdin is not None and sys.stdin.isatty()
        self._input = LineInput()
        self._commands = Commands(self.conversation, self, self._leave)
        self._idle = asyncio.Event()
        self._idle.set()
        self._asking = asyncio.Lock()
        self._prompts: asyncio.Queue[str | None] = asyncio.Queue()
        self._answers: asyncio.Queue[str | None] = asyncio.Queue()
        self._ready = False
        self._elsewhere = False  # whether another program has the terminal
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
        self._prompt()
        while (line := await self._prompts.get()) is not None:
            self._take(line)
            if not self._person:
                await self._idle.wait()
        await self._idle.wait()
        return 0

    async def _sort(self) -> None:
        """What is typed while something is asked is for that, and else a prompt."""
        self._input.start()
        line: str | None = ""
        while line is not None:
            line = await self._input.next()
            if self._asking.locked():
                self._answers.put_nowait(line)
            if line is None or not self._asking.locked():
                self._prompts.put_nowait(line)

    def _take(self, line: str) -> None:
        text = line.strip()
        if not text:
            self._prompt()
            return
        self._history.append(line.rstrip("\r\n"))
        found = self._commands.find(text)
        if found is None:
            if self._commands.mistyped(text):
                self.say(no_command(text), "warning")
                self._prompt()
            else:
                self.conversation.turns.submit(text)
        else:
            self._idle.clear()
            self.conversation.run(lambda: self._command(*found))

    async def _command(self, command: ChatCommand, rest: str) -> None:
        try:
            await self._commands.run(command, rest)
        finally:
            if not self.conversation.turns.busy:
                self._idle.set()
                self._prompt()

    def _interrupt(self) -> None:
        if self._elsewhere:
            return  # it is for the program that has the terminal
        if self.conversation.turns.cancel():
            self.say(words("Cancelling the turn; Ctrl-C once more quits."), "warning")
            if self._asking.locked():
                self._answers.put_nowait(None)
            return
        self._leave(INTERRUPTED if self.conversation.turns.busy or not self._ready else 0)

    def _leave(self, status: int = 0) -> None:
        self._status = status
        if self._me is not None:
            self._me.cancel()

    def _prompt(self) -> None:
        if self._person and not self.conversation.turns.busy:
            self._screen.close_line()
            self._out.write("> ")
            self._out.flush()

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
        elif not self._person:
            self._screen.say(f"> {inert(text)}", "bold")

    def thoughts(self) -> None:
        """Say that thoughts were shown already."""
        self.say(words("Thoughts are shown as they come."))

    def replaying(self, session: str) -> None:
        """An earlier conversation is shown as it comes."""

    def turn_began(self) -> None:
        """A turn runs."""
        self._idle.clear()

    def turn_ended(self, reason: str) -> None:
        """No turn runs any more."""
        if reason:
            self._screen.ended(reason)
        if not self.conversation.turns.queue:
            self._idle.set()
        self._prompt()

    def changed(self) -> None:
        """There is no toolbar."""

    async def ask(
        self, call: ShownCall, options: Sequence[acp.PermissionOption], warning: str
    ) -> acp.PermissionOption | None:
        """Ask by letters; where nobody can be asked it is refused."""
        async with self._asking:
            self._answers = asyncio.Queue()
            request = acp.RequestPermissionRequest(
                session_id=self.conversation.state.id,
                tool_call=acp.ToolCallUpdate(tool_call_id=call.id, content=_content(call)),
                options=options,
            )
            asked = Asked(title=call.title, kind=call.kind, options=tuple(options), request=request)
            by_letter = letters(options)
            refusal = next((one for one in options if one.kind == "reject_once"), None)
            if not self._person:
                self._screen.answered(asked, words("refused: nobody can be asked here"))
                return refusal
            self._screen.permission(asked)
            if warning:
                self.say(f"  ! {warning}", "bad")
            for _ in range(_ATTEMPTS):
                for letter, option in by_letter.items():
                    self.say(f"  [{letter}] {one_line(option.name)}", "warning")
                self.say(f"  [{DETAILS}] {words('details')}", "dim")
                line = await self._next_line("  ? ")
                if line is None:
                    return None
                if line == DETAILS:
                    self.say("\n".join(details(call.title, call.raw_input)))
                elif line.lower() in by_letter:
                    return by_letter[line.lower()]
            self.say(words("No answer; it is refused."), "warning")
            return refusal

    async def pick(self, title: str, items: Sequence[Item], description: str = "") -> str | None:
        """Let the user pick by number; an empty line leaves."""
        if not self._person:
            return None
        async with self._asking:
            self._answers = asyncio.Queue()
            self.say(f"? {one_line(title)} {one_line(description)}".rstrip(), "warning")
            for number, item in enumerate(items, 1):
                mark = " *" if item.current else ""
                self.say(f"  {number}) {one_line(item.name)}{mark}  {one_line(item.description)}")
            for _ in range(_ATTEMPTS):
                typed = await self._next_line(words("  number: "))
                if not typed:
                    return None
                if typed.isdecimal() and 1 <= int(typed) <= len(items):
                    return items[int(typed) - 1].value
            return None

    async def enter(self, field: Field) -> str | None:
        """Let the user enter a line; the end of input leaves."""
        if not self._person:
            return None
        async with self._asking:
            self._answers = asyncio.Queue()
            self.say(f"? {one_line(field.title)} {one_line(field.description)}", "warning")
            if field.complaint:
                self.say(f"  ! {field.complaint}", "bad")
            shown = f" [{one_line(field.default)}]" if field.default else ""
            line = await self._next_line(f"  >{shown} ")
            return field.default if line == "" else line

    async def outside(self, command: Sequence[str], environ: Mapping[str, str]) -> int:
        """Run a program that has the terminal for itself."""
        variables = {**os.environ, **environ}
        self._elsewhere = True
        try:
            done = await asyncio.to_thread(subprocess.run, command, env=variables, check=False)
        except OSError:
            return FAILED
        finally:
            self._elsewhere = False
        status: int = done.returncode
        return status

    async def _next_line(self, prompt: str) -> str | None:
        self._screen.close_line()
        self._out.write(prompt)
        self._out.flush()
        line = await self._answers.get()
        return None if line is None else line.strip()


def _content(call: ShownCall) -> list[acp.ToolCallContent]:
    text = "\n".join(call.output_lines())
    shown: list[acp.ToolCallContent] = list(call.diffs)
    if text:
        shown.append(acp.Content(content=acp.TextContent(text=text)))
    return shown
