"""The chat's own commands, in one list with those of the agent.

Where both have a command of one name, it is the chat's: `/quit` ends the chat whatever the agent
announces. A space before the slash sends the line to the agent.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from shlex import split
from shutil import get_terminal_size
from tempfile import NamedTemporaryFile

from acp_agent.cli.chat.call_lines import details
from acp_agent.cli.chat.chat_command import ChatCommand, Run
from acp_agent.cli.chat.conversation import Conversation
from acp_agent.cli.chat.front import Front
from acp_agent.cli.chat.option_commands import OptionCommands
from acp_agent.cli.chat.session_commands import SessionCommands
from acp_agent.cli.chat.state import PLAN_MARKS
from acp_agent.cli.chat.user_shell import UserShell
from acp_agent.cli.localization import translate
from acp_agent.cli.output import inert
from acp_agent.platform.programs import find_program

_OUTPUT_LINES = 400
_OTHER_NAMES = {"exit": "quit", "resume": "sessions"}


class Commands:
    """Finds and runs the chat's commands.

    Args:
        conversation: what they act on.
        front: where they answer.
        shell: the user's own.
        leave: ends the chat.
    """

    def __init__(
        self,
        conversation: Conversation,
        front: Front,
        shell: UserShell,
        leave: Callable[[], None],
    ) -> None:
        self._conversation = conversation
        self._front = front
        self._shell = shell
        self._leave = leave
        self._all = {command.name: command for command in self._commands()}

    def find(self, text: str) -> tuple[ChatCommand, str] | None:
        """The chat's command in a line, and its argument; None for a line to the agent."""
        if not text.startswith("/") or "\n" in text.strip():
            return None
        name, _, argument = text[1:].strip().partition(" ")
        command = self._all.get(_OTHER_NAMES.get(name, name))
        if command is None or not command.there():
            return None
        return command, argument.strip()

    def all(self) -> list[tuple[str, str]]:
        """Names and descriptions of the chat's commands, then of the agent's."""
        own = {command.name: command.description for command in self._there()}
        return [
            *own.items(),
            *(
                (command.name, command.description)
                for command in self._conversation.state.commands
                if command.name not in own
            ),
        ]

    async def run(self, command: ChatCommand, rest: str) -> None:
        """Run a command. Raises RpcError, ConnectionError, TimeoutError."""
        if command.idle and self._conversation.turns.busy:
            self._front.say(translate("A turn runs; Ctrl-C cancels it."), "warning")
            return
        await command.run(rest)

    def _there(self) -> list[ChatCommand]:
        return [command for command in self._all.values() if command.there()]

    # --- what they do

    async def help(self, _: str) -> None:
        """List the commands and the keys."""
        lines = [
            *(f"  /{name}  {description}" for name, description in self.all()),
            "",
            translate("  Enter sends, Alt-Enter or Ctrl-J begins a new line, @ names a file."),
            *(
                [
                    translate("  !command runs in your own shell; the agent sees what it printed."),
                    translate(
                        "  !!command keeps that from the agent. Ctrl-X: your shell, and back."
                    ),
                ]
                if self._shell.usable
                else []
            ),
            translate("  Shift-Tab changes the mode, Ctrl-R searches what was typed before."),
            translate("  Esc or Ctrl-C cancels the turn; Ctrl-C twice or Ctrl-D quits."),
        ]
        self._front.say("\n".join(lines))

    async def thoughts(self, _: str) -> None:
        """Show what the agent thought last; the front has it."""
        self._front.thoughts()

    async def output(self, _: str) -> None:
        """Show the last call with all that is known of it."""
        call = self._conversation.calls.last
        if call is None:
            self._front.say(translate("There was no tool call yet."))
            return
        lines = call.output_lines()
        if self._shell.usable and len(lines) > get_terminal_size().lines:
            head = details(call.title, call.raw_input)
            if await self._page("\n".join([*head, "", *lines])):
                return
        cut = len(lines) - _OUTPUT_LINES
        head = [translate("... {count} lines before", count=cut)] if cut > 0 else []
        self._front.say("\n".join([*details(call.title, call.raw_input), *head]), "bold")
        self._front.say("\n".join(lines[-_OUTPUT_LINES:]) or translate("(no output)"), "dim")

    async def _page(self, text: str) -> bool:
        """Show a long text in the user's pager; return whether that worked."""
        pager = split(os.environ.get("PAGER", "")) or ["less"]
        program = find_program(pager[0])
        if program is None:
            return False
        with NamedTemporaryFile("w", encoding="utf-8", prefix="acp-agent-", suffix=".txt") as file:
            file.write(f"{inert(text)}\n")
            file.flush()
            return await self._front.outside([program, *pager[1:], file.name], {}) == 0

    async def plan(self, _: str) -> None:
        """Show the plan."""
        entries = self._conversation.state.plan
        if entries:
            self._front.say("\n".join(f"{PLAN_MARKS[one.status]} {one.content}" for one in entries))
        else:
            self._front.say(translate("There is no plan."))

    async def login(self, _: str) -> None:
        """Log in, by a way that the agent has."""
        if await self._conversation.log_in():
            self._front.say(translate("You are logged in."), "good")

    async def restart(self, _: str) -> None:
        """Start the agent again."""
        await self._conversation.restart()

    async def unqueue(self, _: str) -> None:
        """Take back the prompt that waits."""
        text = self._conversation.turns.unqueue()
        if text is None:
            self._front.say(translate("Nothing waits."))
        else:
            self._front.say(translate("Taken back: {text}", text=text))

    async def unshare(self, _: str) -> None:
        """Keep from the agent what the user's commands printed."""
        self._shell.unshare()

    async def quit(self, _: str) -> None:
        """End the chat."""
        self._leave()

    def _commands(self) -> list[ChatCommand]:
        def command(name: str, description: str, run: Run, *, idle: bool = False) -> ChatCommand:
            return ChatCommand(name=name, description=description, run=run, idle=idle)

        return [
            command("help", translate("the commands and keys"), self.help),
            *SessionCommands(self._conversation, self._front).all(),
            *OptionCommands(self._conversation, self._front).all(),
            command("thoughts", translate("the last thoughts in full"), self.thoughts),
            command("output", translate("the last tool call in full"), self.output),
            command("plan", translate("the plan in full"), self.plan),
            ChatCommand(
                name="unshare",
                description=translate("keep what your commands printed from the agent"),
                run=self.unshare,
                there=lambda: self._shell.usable,
            ),
            command("unqueue", translate("take back what waits"), self.unqueue),
            command("login", translate("log in"), self.login, idle=True),
            command("restart", translate("start the agent again"), self.restart),
            command("quit", translate("end the chat"), self.quit),
        ]
