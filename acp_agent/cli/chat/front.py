"""What a conversation needs of the terminal: a screen that shows it, and a user to be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from acp_agent.cli.chat.calls import ShownCall
from acp_agent.cli.chat.user_command import Ran
from acp_agent.cli.screen import Style
from protocol.v1 import types as acp

# What became of words: a turn, part of one, later, once there is an agent with a session.
How = Literal["sent", "steered", "queued", "early"]


class Item(Struct, frozen=True, kw_only=True):
    """Something to pick; `name` is what is shown, `current` what holds now."""

    value: str
    name: str
    description: str = ""
    current: bool = False


class Field(Struct, frozen=True, kw_only=True):
    """A text to be entered: what it is for, what it may be, and why the last try was refused."""

    title: str
    description: str = ""
    default: str = ""
    complaint: str = ""


class Answer(Struct, frozen=True):
    """The answer to a permission request; `instead` is what the agent should do instead of it."""

    option: acp.PermissionOption
    instead: str = ""


class Front(Protocol):
    """A terminal, whatever it can do. Every text is the agent's and is shown inert.

    Attributes:
        person: whether there is somebody to ask.
    """

    person: bool

    def show(self, update: acp.SessionUpdate) -> None:
        """Show one update."""

    def say(self, text: str, style: Style = "") -> None:
        """Show something of our own; it may have several lines."""

    def said(self, text: str, how: How) -> None:
        """Show what the user said."""

    def thoughts(self) -> None:
        """Show in full what the agent thought last."""

    def replaying(self, session: str) -> None:
        """What is shown from now on is an earlier conversation; empty: not any more."""

    def turn_began(self) -> None:
        """A turn runs."""

    def turn_ended(self, reason: str, *, told: bool) -> None:
        """No turn runs any more.

        `reason` is its stop reason, empty where it failed; `told` whether the agent has told it.
        """

    def changed(self) -> None:
        """Something that is always in sight changed: the mode, the plan, what waits."""

    async def ask(
        self, call: ShownCall, options: Sequence[acp.PermissionOption], warning: str
    ) -> Answer | None:
        """Ask whether a call may run; None where the user does not answer."""

    async def pick(self, title: str, items: Sequence[Item], description: str = "") -> str | None:
        """Let the user pick one of several; None where nothing is picked."""

    async def enter(self, field: Field) -> str | None:
        """Let the user enter a text; None where nothing is entered."""

    async def outside(self, command: Sequence[str], environ: Mapping[str, str]) -> int:
        """Run a program that has the terminal for itself; its exit status."""

    async def run_command(self, command: str) -> Ran:
        """Run a command of the user's in the terminal. Raises OSError."""
