"""What the chat knows of its session, kept up to date by the agent's updates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from msgspec import UNSET, Struct

from protocol.v1 import types as acp

_COMMANDS = 1_000  # slash commands that are offered
PLAN_MARKS = {"completed": "[x]", "in_progress": "[>]", "pending": "[ ]"}


class Choice(Struct, frozen=True, kw_only=True):
    """One value that an option can have."""

    value: str
    name: str
    description: str = ""


class Opened(Protocol):
    """What an agent answers when it opened a session, in whichever way."""

    @property
    def modes(self) -> acp.SessionModeState | None:
        """Its modes, of agents without options."""

    @property
    def config_options(self) -> Sequence[acp.SessionConfigOption] | None:
        """Its configuration options."""


class SessionState:
    """One session, as the agent told of it last.

    Attributes:
        id: its id; empty while there is none.
        title: what it is about, where the agent says.
        commands: the slash commands that the agent has.
        options: its configuration options.
        modes: its modes, of agents without options.
        plan: the tasks of its plan.
        usage: how full its context is, and what it cost.
        prompted: whether something was said in it, so that it is worth going on with.
    """

    def __init__(self) -> None:
        self.id = ""
        self.title = ""
        self.commands: Sequence[acp.AvailableCommand] = ()
        self.options: Sequence[acp.SessionConfigOption] = ()
        self.modes: acp.SessionModeState | None = None
        self.plan: Sequence[acp.PlanEntry] = ()
        self.usage: acp.UsageUpdate | None = None
        self.prompted = False

    def opened(self, session: str, made: Opened) -> None:
        """A session was opened; `made` has its settings."""
        self.id = session
        self.options = made.config_options or ()
        self.modes = made.modes

    def update(self, update: acp.SessionUpdate) -> bool:
        """Take over what an update says of the session; whether it said anything of it."""
        match update:
            case acp.AvailableCommandsUpdate():
                self.commands = update.available_commands[:_COMMANDS]
            case acp.ConfigOptionUpdate():
                self.options = update.config_options
            case acp.CurrentModeUpdate() if self.modes is not None:
                self.modes = acp.SessionModeState(
                    current_mode_id=update.current_mode_id,
                    available_modes=self.modes.available_modes,
                )
            case acp.SessionInfoUpdate() if update.title is not UNSET:
                self.title = update.title or ""
            case acp.UsageUpdate():
                self.usage = update
            case acp.Plan():
                self.plan = update.entries
            case _:
                return False
        return True

    def option(self, name: str) -> acp.SessionConfigOption | None:
        """The option with an id, or the first of a category, such as `mode` or `model`."""
        for option in self.options:
            if option.id == name:
                return option
        return next((option for option in self.options if option.category == name), None)

    def mode_choices(self) -> list[Choice]:
        """The modes of the session."""
        option = self.option("mode")
        if isinstance(option, acp.SessionConfigSelect):
            return list(choices(option))
        if self.modes is None:
            return []
        return [
            Choice(value=mode.id, name=mode.name, description=mode.description or "")
            for mode in self.modes.available_modes
        ]

    @property
    def mode_id(self) -> str:
        """The mode's id, where there are modes."""
        option = self.option("mode")
        if isinstance(option, acp.SessionConfigSelect):
            return option.current_value
        return "" if self.modes is None else self.modes.current_mode_id

    @property
    def mode(self) -> str:
        """The mode's name, where there are modes."""
        current = self.mode_id
        named = (choice.name for choice in self.mode_choices() if choice.value == current)
        return next(named, current)

    @property
    def model(self) -> str:
        """The name of the model, where the agent says."""
        option = self.option("model")
        return current_name(option) if isinstance(option, acp.SessionConfigSelect) else ""


def choices(option: acp.SessionConfigSelect) -> Iterator[Choice]:
    """The values of an option, those of groups with the group's name in front."""
    for entry in option.options:
        match entry:
            case acp.SessionConfigSelectGroup():
                for value in entry.options:
                    yield _choice(value, f"{entry.name}: ")
            case acp.SessionConfigSelectOption():
                yield _choice(entry, "")


def current_name(option: acp.SessionConfigSelect) -> str:
    """The name of the value that an option has."""
    for choice in choices(option):
        if choice.value == option.current_value:
            return choice.name
    return option.current_value


def _choice(value: acp.SessionConfigSelectOption, group: str) -> Choice:
    return Choice(
        value=value.value, name=f"{group}{value.name}", description=value.description or ""
    )
