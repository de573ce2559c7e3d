"""The user's own shell in the chat: which lines are its commands, and what the agent hears of them.

What a command printed is the user's. It goes along with a prompt only where the user says so, and
then without what is known to be a secret or looks like one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from acp_agent.cli.chat.front import Front
from acp_agent.cli.chat.user_command import Ran
from acp_agent.cli.output import one_line
from acp_agent.cli.words import words
from acp_agent.platform import posix
from acp_agent.tools.quoting import fenced

_SHOWN = 60  # characters of a command in a line about it
MARK = "!"
SHELL_PROMPT = "$ "


class UserShell:
    """Commands of the user's own.

    Args:
        front: has the terminal that they run in.
        cwd: the folder that they run in.
        scrub: takes secrets out of a text.
        usable: whether a person is there; what comes through a pipe is never a command.

    Attributes:
        on: whether every line is a command, until it is turned off again.
    """

    def __init__(
        self, front: Front, cwd: Path, scrub: Callable[[str], str], *, usable: bool
    ) -> None:
        self.on = False
        self.usable = usable
        self._front = front
        self._cwd = cwd
        self._scrub = scrub
        self._last: Ran | None = None
        self._along: list[Ran] = []

    def command_in(self, text: str) -> str | None:
        """The command that a text is: empty for one that turns the shell on or off, None for words.

        Outside of the shell a command is one line behind `!`. A pasted text of several lines, and
        a picture in Markdown, are words.
        """
        if not self.usable:
            return None
        text = text.strip()
        if self.on and not text.startswith(MARK):
            return "" if text == "exit" else text
        if not text.startswith(MARK) or text.startswith(f"{MARK}["):
            return None
        return None if "\n" in text and not self.on else text.removeprefix(MARK).strip()

    def toggle(self) -> None:
        """Turn to the shell, or back to the agent."""
        self.on = self.usable and not self.on
        self._front.changed()

    async def run(self, command: str) -> None:
        """Run a command in the terminal, and say how it ended."""
        try:
            ran = await self._front.run_command(command)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            self._front.say(words("The command could not be run: {why}", why=reason), "bad")
            return
        how = (
            words("signal {name}", name=posix.signal_name(-ran.status))
            if ran.status < 0
            else words("exit status {status}", status=ran.status)
        )
        self._last = ran
        if ran.output:
            how = words("{how}; :share lets the agent have what it printed", how=how)
        self._front.say(how, "dim")

    def share(self) -> None:
        """Let what the last command printed go along with the next prompt, or take that back."""
        last = self._last
        if last is None:
            self._front.say(words("You have run no command yet; !command runs one."), "warning")
        elif last in self._along:
            self._along.remove(last)
            text = words("What {command} printed stays here.", command=_short(last))
            self._front.say(text)
        else:
            self._along.append(last)
        self._front.changed()

    @property
    def along(self) -> str:
        """What goes along with the next prompt, in a line for the user; empty for nothing."""
        if not self._along:
            return ""
        names = words(", ").join(_short(ran) for ran in self._along)
        return words("Goes along with your next prompt: what {commands} printed.", commands=names)

    def take(self) -> Sequence[str]:
        """What goes along with a prompt that leaves now, as texts for the model."""
        texts = [self._told(ran) for ran in self._along]
        self._along = []
        return texts

    def _told(self, ran: Ran) -> str:
        """What the model is told, in English like all that it is."""
        end = f"status {ran.status}" if ran.status >= 0 else posix.signal_name(-ran.status)
        part = "the end of what it printed" if ran.cut else "what it printed"
        printed = fenced(self._scrub(f"$ {ran.command}\n{ran.output}"), "console")
        return f"I ran a command myself, in {self._cwd}. It ended with {end}; {part}:\n\n{printed}"


def _short(ran: Ran) -> str:
    return one_line(ran.command, _SHOWN)
