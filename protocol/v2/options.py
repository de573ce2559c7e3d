"""Configuration options and slash commands of a session, and the base of its updates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

from msgspec import Meta

from protocol.codec.tolerance import (
    Lenient,
    LenientItems,
    OpenUnion,
    SkipInvalidItems,
    UnknownVariant,
)
from protocol.shared.types import (
    SessionConfigGroupId,
    SessionConfigId,
    SessionConfigValueId,
    SessionId,
    Wire,
)


class SessionUpdate(OpenUnion):
    """One thing that happened in a session.

    The variants derive from it. An agent only sends them, and imports those that it sends.
    """

    __slots__ = ()
    discriminator = "sessionUpdate"
    variant_modules = (
        "protocol.v2.updates",
        "protocol.v2.tool_calls",
        "protocol.v2.states",
        "protocol.v2.unstable",
    )


class OtherSessionUpdate(UnknownVariant, SessionUpdate):
    """An update of a kind not known yet."""

    __slots__ = ()


class UpdateSessionNotification(Wire):
    """The parameters of `session/update`."""

    session_id: SessionId
    update: SessionUpdate


# "mode", "model", "model_config", "thought_level", or a word that later versions add.
SessionConfigOptionCategory: TypeAlias = str


class SessionConfigSelectEntry(OpenUnion):
    """A value to choose, `SessionConfigSelectOption`, or a `SessionConfigSelectGroup` of them."""

    __slots__ = ()

    @classmethod
    def find_variant(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """Return a group where it is named as one, else an option."""
        return SessionConfigSelectGroup if "groupId" in value else SessionConfigSelectOption


class SessionConfigSelectOption(Wire, SessionConfigSelectEntry):
    """One value of an option."""

    value: SessionConfigValueId
    name: str
    description: Lenient[str | None] = None


class SessionConfigSelectGroup(Wire, SessionConfigSelectEntry):
    """Values of an option under one heading: at least one, where we are the sender."""

    group_id: SessionConfigGroupId
    name: str
    # No lower limit: of a peer's group, all values may be ones that are to be skipped.
    options: LenientItems[Sequence[SessionConfigSelectOption]]


SessionConfigSelectOptions: TypeAlias = Annotated[
    Sequence[SessionConfigSelectEntry], Meta(min_length=1)
]


class SessionConfigOption(OpenUnion):
    """An option: one value out of several, on or off, or something not known yet."""

    __slots__ = ()


class _ConfigOption(Wire, SessionConfigOption):
    config_id: SessionConfigId
    name: str
    description: Lenient[str | None] = None
    category: Lenient[SessionConfigOptionCategory | None] = None


class SessionConfigSelect(_ConfigOption, tag="select"):
    """An option with one value out of several; all are options or all are groups."""

    current_value: SessionConfigValueId
    options: SessionConfigSelectOptions

    def __post_init__(self) -> None:
        groups = sum(isinstance(entry, SessionConfigSelectGroup) for entry in self.options)
        if groups not in {0, len(self.options)}:
            raise ValueError("options: must be all groups or none")


class SessionConfigBoolean(_ConfigOption, tag="boolean"):
    """An option that is on or off."""

    current_value: bool


class OtherConfigOption(UnknownVariant, SessionConfigOption):
    """An option of a type not known yet."""

    __slots__ = ()
    required_strings = ("configId", "name")


class ConfigOptionUpdate(Wire, SessionUpdate, tag="config_option_update"):
    """All configuration options, as they are now."""

    config_options: SkipInvalidItems[Sequence[SessionConfigOption]]


class SetSessionConfigOptionRequest(OpenUnion):
    """Give an option a value, whose type says what it is."""

    __slots__ = ()

    @classmethod
    def find_variant(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By the value's type."""
        variant = super().find_variant(value)
        if variant is OtherSetSessionConfigOption and "value" not in value:
            raise ValueError("value: is required")
        return variant


class _SetConfigOption(Wire, SetSessionConfigOptionRequest):
    session_id: SessionId
    config_id: SessionConfigId


class SetSessionConfigOptionId(_SetConfigOption, tag="id"):
    """Choose the value of this id."""

    value: SessionConfigValueId


class SetSessionConfigOptionBoolean(_SetConfigOption, tag="boolean"):
    """Put it on or off."""

    value: bool


class OtherSetSessionConfigOption(UnknownVariant, SetSessionConfigOptionRequest):
    """A value of a type not known yet."""

    __slots__ = ()
    required_strings = ("sessionId", "configId")


class SetSessionConfigOptionResponse(Wire):
    """All options of the session, as they are now."""

    config_options: SkipInvalidItems[Sequence[SessionConfigOption]]


class AvailableCommandInput(OpenUnion):
    """The input of a command."""

    __slots__ = ()


class TextCommandInput(Wire, AvailableCommandInput, tag="text"):
    """All text behind the command's name is its input; `hint` shows while there is none."""

    hint: str


class OtherCommandInput(UnknownVariant, AvailableCommandInput):
    """Input of a type not known yet."""

    __slots__ = ()


class AvailableCommand(OpenUnion):
    """A command that the user calls by its name."""

    __slots__ = ()


class Command(Wire, AvailableCommand, tag="command"):
    """A slash command, named without its slash; without an input it takes none."""

    name: str
    description: str
    input: Lenient[AvailableCommandInput | None] = None


class OtherCommand(UnknownVariant, AvailableCommand):
    """A command of a type not known yet."""

    __slots__ = ()
    required_strings = ("name", "description")


class AvailableCommandsUpdate(Wire, SessionUpdate, tag="available_commands_update"):
    """All commands, as they are now."""

    available_commands: SkipInvalidItems[Sequence[AvailableCommand]]
