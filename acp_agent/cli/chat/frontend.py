"""The interface between a conversation and the terminal that shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from acp_agent.cli.chat.foreground import CommandResult
from acp_agent.cli.chat.session_state import Choice, ShownCall
from acp_agent.cli.screen import Style
from protocol.v1 import types as acp

# A new turn; part of the running turn; after that turn; after the agent has started.
PromptStatus = Literal["sent", "steered", "queued", "early"]


class Field(Struct, frozen=True, kw_only=True):
    """A text to enter. `complaint` says why the previous input was refused."""

    title: str
    description: str = ""
    default: str = ""
    complaint: str = ""


class Answer(Struct, frozen=True):
    """The answer to a permission request. `instruction` says what to do instead of the call."""

    option: acp.PermissionOption
    instruction: str = ""


class Frontend(Protocol):
    """A terminal. It escapes every text that it shows.

    Attributes:
        interactive: whether there is a user to ask.
    """

    interactive: bool

    def show(self, update: acp.SessionUpdate) -> None:
        """Show one update of the session."""

    def say(self, text: str, style: Style = "") -> None:
        """Show a message of the chat itself, of one or more lines."""

    def show_prompt(self, text: str, status: PromptStatus) -> None:
        """Show a prompt and when the agent receives it."""

    def show_thoughts(self) -> None:
        """Show the agent's last thoughts in full."""

    def start_replay(self) -> None:
        """Start showing an earlier conversation."""

    def end_replay(self) -> None:
        """Stop showing an earlier conversation."""

    def turn_started(self) -> None:
        """Show that a turn started."""

    def turn_ended(self, reason: str, *, explained: bool) -> None:
        """Show that the turn ended.

        Args:
            reason: the stop reason; empty if the turn failed.
            explained: whether the agent has explained it.
        """

    def refresh(self) -> None:
        """Redraw the mode, the plan and the queue."""

    async def ask_permission(
        self, call: ShownCall, options: Sequence[acp.PermissionOption], warning: str
    ) -> Answer | None:
        """Ask whether a call may run; return None if the user does not answer."""

    async def pick(
        self, title: str, choices: Sequence[Choice], description: str = ""
    ) -> str | None:
        """Ask the user to pick one of several; return None if nothing is picked."""

    async def enter_text(self, field: Field) -> str | None:
        """Ask the user for a text; return None if nothing is entered."""

    async def run_program(self, command: Sequence[str], environ: Mapping[str, str]) -> int:
        """Run a program in the terminal; return its exit status."""

    async def run_command(self, command: str) -> CommandResult:
        """Run the user's command in the terminal. Raises OSError."""
