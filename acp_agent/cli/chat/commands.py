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
from acp_agent.cli.chat.frontend import Field, Frontend
from acp_agent.cli.chat.session_state import PLAN_MARKS, Choice, choices
from acp_agent.cli.chat.user_shell import UserShell
from acp_agent.cli.localization import translate
from acp_agent.cli.output import terminal_text
from acp_agent.platform.posix import find_program
from protocol.v1 import types as acp

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


class SessionCommands:
    """Each method is a command; its argument is the text after the command's name."""

    def __init__(self, conversation: Conversation, frontend: Frontend) -> None:
        self._conversation = conversation
        self._frontend = frontend

    async def open(self, session: str) -> None:
        """Open an earlier session: the named one, or one that the user picks."""
        session_id = (
            await self._conversation.find_session(session) if session else await self._pick()
        )
        if session_id and (session or session_id != self._conversation.state.id):
            await self._conversation.load(session_id)

    async def create(self, _: str) -> None:
        """Create a session."""
        if await self._conversation.create_session():
            self._frontend.say(translate("Started a new session."), "good")

    async def fork(self, _: str) -> None:
        """Continue in a copy of the session; both contain the conversation so far."""
        before = self._conversation.state.id
        await self._conversation.fork()
        text = translate("Continuing in a copy; return with /sessions {before}.", before=before)
        self._frontend.say(text, "good")

    async def rename(self, title: str) -> None:
        """Set the title of the open session; ask for it if it is empty."""
        if not title:
            field = Field(title=translate("Title"), default=self._conversation.state.title)
            title = (await self._frontend.enter_text(field) or "").strip()
        if title:
            stored_title = await self._conversation.rename(title)
            self._frontend.say(
                translate("Renamed the session: {title}", title=stored_title), "good"
            )

    async def delete(self, session: str) -> None:
        """Delete the named session, or one that the user picks, after a confirmation."""
        current = self._conversation.state.id
        if session:
            session_id: str | None = await self._conversation.find_session(session)
        else:
            session_id = await self._pick() if self._conversation.agent_can("list") else current
        if not session_id or not await self._confirm_delete(session_id, current):
            return
        if await self._conversation.delete(session_id):
            self._frontend.say(translate("Deleted the session."), "good")
            if session_id == current:
                self._frontend.say(translate("Started a new session."), "good")

    async def mode(self, value: str) -> None:
        """Change the mode."""
        await self._change("mode", value)

    async def model(self, value: str) -> None:
        """Change the model."""
        await self._change("model", value)

    async def options(self, argument: str) -> None:
        """Change any option of the session."""
        name, _, value = argument.partition(" ")
        if not name:
            items = [
                Choice(option.id, option.name, option.description or "")
                for option in self._conversation.state.options
            ]
            if not items:
                self._frontend.say(translate("This agent has no options."))
                return
            name = await self._frontend.pick(translate("Options"), items) or ""
        if name:
            await self._change(name, value.strip())

    async def _confirm_delete(self, session: str, current: str) -> bool:
        items = [
            Choice("no", translate("Cancel"), current=True),
            Choice("yes", translate("Delete permanently")),
        ]
        which = translate("the open session") if session == current else session
        title = translate("Delete this session? ({which})", which=which)
        return await self._frontend.pick(title, items) == "yes"

    async def _pick(self) -> str | None:
        current = self._conversation.state.id
        items = [
            Choice(
                session.session_id,
                session.title or translate("(untitled)"),
                (session.updated_at or "")[:16].replace("T", " "),
                session.session_id == current,
            )
            for session in await self._conversation.list_sessions()
        ]
        if not items:
            self._frontend.say(translate("This folder has no sessions yet."))
            return None
        return await self._frontend.pick(translate("Sessions of this folder"), items)

    async def _change(self, name: str, value: str) -> None:
        state = self._conversation.state
        option = state.option(name)
        if isinstance(option, acp.SessionConfigBoolean):
            await self._switch(option, value)
            return
        if isinstance(option, acp.SessionConfigSelect):
            title, offered = option.name, list(choices(option))
        elif name == "mode" and state.modes is not None:
            title, offered = translate("Mode"), state.mode_choices()
        else:
            self._frontend.say(translate("This agent has no option {name}.", name=name), "warning")
            return
        picked = value or await self._frontend.pick(title, offered)
        if picked:
            # The agent checks values that it does not list, such as other models.
            unlisted = Choice(picked, picked)
            choice = next(
                (choice_ for choice_ in offered if picked in {choice_.value, choice_.name}),
                unlisted,
            )
            await self._conversation.set_option(name, choice.value)
            self._frontend.say(f"{title}: {choice.name}", "good")

    async def _switch(self, option: acp.SessionConfigBoolean, value: str) -> None:
        offered = [
            Choice("on", translate("on"), current=option.current_value),
            Choice("off", translate("off"), current=not option.current_value),
        ]
        picked = value or await self._frontend.pick(option.name, offered)
        if picked in {"on", "off"}:
            await self._conversation.set_option(option.id, picked == "on")
