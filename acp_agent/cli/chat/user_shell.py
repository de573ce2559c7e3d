"""The user's shell in the chat: which lines are commands, and what the agent sees of them.

A command and its output are sent with the next prompt, with secrets removed. `!!command` is not
sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from acp_agent.cli.chat.foreground import CommandResult
from acp_agent.cli.chat.frontend import Frontend
from acp_agent.cli.localization import translate
from acp_agent.cli.output import one_line
from acp_agent.platform import posix
from acp_agent.tools.quoting import code_block

_MAX_SHOWN_LENGTH = 60  # characters of a command in the line about it
_MAX_SENT_OUTPUT = 64_000  # characters of output per prompt; the oldest commands are dropped first
SHELL_PROMPT = "$ "


class ShellLine(Struct, frozen=True):
    """A line for the user's shell.

    Attributes:
        text: the command; empty to switch between the shell and the agent.
        shared: whether the agent sees the command and its output.
    """

    text: str
    shared: bool = True

    @property
    def line(self) -> str:
        """Return the line as typed at the agent's prompt."""
        return f"{'!' if self.shared else '!!'}{self.text}"


class UserShell:
    """Runs the user's commands.

    Args:
        usable: whether a person types; lines from a pipe are never commands.

    Attributes:
        on: whether every line is a command.
    """

    def __init__(
        self, frontend: Frontend, cwd: Path, scrub: Callable[[str], str], *, usable: bool
    ) -> None:
        self.on = False
        self.usable = usable
        self._frontend = frontend
        self._cwd = cwd
        self._scrub = scrub
        self._shared: list[CommandResult] = []

    def parse_command(self, text: str) -> ShellLine | None:
        """Return the shell line in a text; None for a prompt.

        At the agent's prompt, a command is a single line that begins with `!`. Several pasted lines
        and a Markdown image are prompts.
        """
        text = text.strip()
        if not self.usable:
            return None
        if self.on and not text.startswith("!"):
            return ShellLine("" if text == "exit" else text)
        if not text.startswith("!") or text.startswith("![") or ("\n" in text and not self.on):
            return None
        return ShellLine(text.lstrip("!").strip(), not text.startswith("!!"))

    def is_command(self, text: str) -> bool:
        """Return whether a text is a command for the shell."""
        command = self.parse_command(text)
        return command is not None and bool(command.text)

    def toggle(self) -> None:
        """Switch to the shell, or back to the agent."""
        self.on = self.usable and not self.on
        self._frontend.refresh()

    async def run(self, command: ShellLine) -> None:
        """Run a command in the terminal, and show how it ended."""
        try:
            result = await self._frontend.run_command(command.text)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            self._frontend.say(translate("Cannot run the command: {why}", why=reason), "bad")
            return
        status = (
            translate("signal {name}", name=posix.signal_name(-result.status))
            if result.status < 0
            else translate("exit status {status}", status=result.status)
        )
        if command.shared:
            self._shared.append(result)
            while sum(len(result_.output) for result_ in self._shared) > _MAX_SENT_OUTPUT:
                self._shared.pop(0)
        self._frontend.say(status, "dim")

    def unshare(self) -> None:
        """Do not send the commands that ran so far."""
        self._shared.clear()
        self._frontend.say(translate("Your commands will not be sent to the agent."))
        self._frontend.refresh()

    @property
    def shared(self) -> str:
        """Return a line about what the next prompt will include; empty for nothing."""
        if not self._shared:
            return ""
        names = translate(", ").join(
            one_line(result.command, _MAX_SHOWN_LENGTH) for result in reversed(self._shared)
        )
        return translate("Sent with your next prompt: output of {commands}", commands=names)

    def take_shared(self) -> Sequence[str]:
        """Return the texts to include in the prompt that is being sent, and clear them."""
        texts = [self._as_text(result) for result in self._shared]
        self._shared = []
        return texts

    def _as_text(self, result: CommandResult) -> str:
        """Return a command for the model, in English like all of the model's input."""
        end = f"status {result.status}" if result.status >= 0 else posix.signal_name(-result.status)
        scope = "the end of what it printed" if result.cut else "what it printed"
        block = code_block(self._scrub(f"$ {result.command}\n{result.output}"), "console")
        return f"I ran a command myself, in {self._cwd}. It ended with {end}; {scope}:\n\n{block}"
