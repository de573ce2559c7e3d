"""The chat's own commands, combined in one list with the agent's.

If both have a command with the same name, the chat's takes precedence: `/quit` always ends the
chat. A leading space sends the line to the agent.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterator
from shlex import split
from shutil import get_terminal_size
from tempfile import NamedTemporaryFile
from typing import Any

from msgspec import Struct

from acp_agent.cli.chat.call_lines import details
from acp_agent.cli.chat.conversation import Conversation
from acp_agent.cli.chat.frontend import Frontend
from acp_agent.cli.chat.session_commands import SessionCommands
from acp_agent.cli.chat.session_state import PLAN_MARKS
from acp_agent.cli.chat.user_shell import UserShell
from acp_agent.cli.localization import translate
from acp_agent.cli.output import terminal_text
from acp_agent.platform.programs import find_program

_MAX_OUTPUT_LINES = 400
_ALIASES = {"exit": "quit", "resume": "sessions"}


class ChatCommand(Struct, frozen=True):
    """A command of the chat.

    Attributes:
        name: its name, without the slash.
        run: runs it with the text after the name. Raises RpcError, ConnectionError, TimeoutError.
        idle: whether it requires that no turn runs.
        available: whether the agent supports the methods it needs.
    """

    name: str
    description: str
    run: Callable[[str], Coroutine[Any, Any, None]]
    idle: bool = False
    available: Callable[[], bool] = lambda: True


class Commands:
    """Finds and runs the chat's commands."""

    def __init__(
        self,
        conversation: Conversation,
        frontend: Frontend,
        shell: UserShell,
        leave: Callable[[], None],
    ) -> None:
        self._conversation = conversation
        self._frontend = frontend
        self._shell = shell
        self._leave = leave
        self._commands = {command.name: command for command in self._make()}

    def _make(self) -> Iterator[ChatCommand]:
        sessions = SessionCommands(self._conversation, self._frontend)
        can = self._conversation.agent_can
        yield ChatCommand("help", translate("list commands and keys"), self._help)
        yield ChatCommand(
            "sessions", translate("open an earlier session"), sessions.open, idle=True
        )
        yield ChatCommand("new", translate("start a new session"), sessions.create, idle=True)
        yield ChatCommand(
            "fork",
            translate("continue in a copy of this session"),
            sessions.fork,
            idle=True,
            available=lambda: can("fork"),
        )
        yield ChatCommand(
            "rename",
            translate("rename this session"),
            sessions.rename,
            available=lambda: can("rename"),
        )
        yield ChatCommand(
            "delete",
            translate("delete a session"),
            sessions.delete,
            idle=True,
            available=lambda: can("delete"),
        )
        yield ChatCommand("mode", translate("change the mode"), sessions.mode)
        yield ChatCommand("model", translate("change the model"), sessions.model)
        yield ChatCommand("options", translate("change any option"), sessions.options)
        yield ChatCommand("thoughts", translate("show the last thoughts in full"), self._thoughts)
        yield ChatCommand("output", translate("show the last tool call in full"), self._output)
        yield ChatCommand("plan", translate("show the plan in full"), self._plan)
        yield ChatCommand(
            "unshare",
            translate("do not send the commands you ran"),
            self._unshare,
            available=lambda: self._shell.usable,
        )
        yield ChatCommand("unqueue", translate("remove the last queued prompt"), self._unqueue)
        yield ChatCommand("login", translate("log in"), self._login, idle=True)
        yield ChatCommand("restart", translate("restart the agent"), self._restart)
        yield ChatCommand("quit", translate("end the chat"), self._quit)

    def find(self, text: str) -> tuple[ChatCommand, str] | None:
        """Return a line's chat command and argument; None if the line is for the agent."""
        if not text.startswith("/") or "\n" in text.strip():
            return None
        name, _, argument = text[1:].strip().partition(" ")
        command = self._commands.get(_ALIASES.get(name, name))
        if command is None or not command.available():
            return None
        return command, argument.strip()

    def all(self) -> list[tuple[str, str]]:
        """Return names and descriptions of the chat's commands, then of the agent's."""
        chat_commands = {
            command.name: command.description
            for command in self._commands.values()
            if command.available()
        }
        agent_commands = self._conversation.state.commands
        further_commands = [
            (command.name, command.description)
            for command in agent_commands
            if command.name not in chat_commands
        ]
        return [*chat_commands.items(), *further_commands]

    async def run(self, command: ChatCommand, argument: str) -> None:
        """Run a command. Raises RpcError, ConnectionError, TimeoutError."""
        if command.idle and self._conversation.turns.busy:
            self._frontend.say(translate("A turn is running; Ctrl-C cancels it."), "warning")
            return
        await command.run(argument)

    async def _help(self, _: str) -> None:
        lines = [f"  /{name}  {description}" for name, description in self.all()]
        lines += [
            "",
            translate("  Enter sends, Alt-Enter or Ctrl-J starts a new line, @ links a file."),
        ]
        if self._shell.usable:
            lines += [
                translate(
                    "  !command runs in your shell; its output is sent with your next prompt."
                ),
                translate(
                    "  !!command runs without sending its output. Ctrl-X switches to your shell "
                    "and back."
                ),
            ]
        lines += [
            translate("  Shift-Tab changes the mode, Ctrl-R searches earlier prompts."),
            translate("  Esc or Ctrl-C cancels the turn; Ctrl-C twice or Ctrl-D quits."),
        ]
        self._frontend.say("\n".join(lines))

    async def _thoughts(self, _: str) -> None:
        self._frontend.show_thoughts()

    async def _output(self, _: str) -> None:
        call = self._conversation.calls.last
        if call is None:
            self._frontend.say(translate("No tool call yet."))
            return
        lines = call.output_lines()
        head = details(call.title, call.raw_input)
        is_long = self._shell.usable and len(lines) > get_terminal_size().lines
        if is_long and await self._page("\n".join([*head, "", *lines])):
            return
        hidden = len(lines) - _MAX_OUTPUT_LINES
        if hidden > 0:
            head.append(translate("... {count} earlier lines", count=hidden))
        self._frontend.say("\n".join(head), "bold")
        self._frontend.say("\n".join(lines[-_MAX_OUTPUT_LINES:]) or translate("(no output)"), "dim")

    async def _page(self, text: str) -> bool:
        """Show a long text in the user's pager; return whether that worked."""
        pager = split(os.environ.get("PAGER", "")) or ["less"]
        program = find_program(pager[0])
        if program is None:
            return False
        with NamedTemporaryFile("w", encoding="utf-8", prefix="acp-agent-", suffix=".txt") as file:
            file.write(f"{terminal_text(text)}\n")
            file.flush()
            return await self._frontend.run_program([program, *pager[1:], file.name], {}) == 0

    async def _plan(self, _: str) -> None:
        lines = [f"{PLAN_MARKS[e.status]} {e.content}" for e in self._conversation.state.plan]
        self._frontend.say("\n".join(lines) or translate("No plan yet."))

    async def _unshare(self, _: str) -> None:
        self._shell.unshare()

    async def _unqueue(self, _: str) -> None:
        text = self._conversation.turns.unqueue()
        if text is None:
            self._frontend.say(translate("No prompts are queued."))
        else:
            self._frontend.say(translate("Removed from the queue: {text}", text=text))

    async def _login(self, _: str) -> None:
        if await self._conversation.log_in():
            self._frontend.say(translate("You are logged in."), "good")

    async def _restart(self, _: str) -> None:
        await self._conversation.restart()

    async def _quit(self, _: str) -> None:
        self._leave()
