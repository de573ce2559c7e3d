"""Slash commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from protocol.codec.marks import Lenient, SkipInvalidItems
from protocol.codec.open_union import OpenUnion, UnknownVariant, string_in
from protocol.v2.base import Wire
from protocol.v2.session_update import SessionUpdate


class AvailableCommandInput(OpenUnion):
    """What a command takes."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its type."""
        return TextCommandInput if string_in(value, "type") == "text" else OtherCommandInput


class TextCommandInput(
    Wire, AvailableCommandInput, frozen=True, kw_only=True, tag_field="type", tag="text"
):
    """All text behind the command's name is its input; `hint` shows while there is none."""

    hint: str


class OtherCommandInput(UnknownVariant, AvailableCommandInput):
    """Input of a type not known yet."""

    __slots__ = ()


class AvailableCommand(OpenUnion):
    """Something that the user can call by its name."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its type; each has a name and a description."""
        if string_in(value, "type") == "command":
            return Command
        string_in(value, "name")
        string_in(value, "description")
        return OtherCommand


class Command(Wire, AvailableCommand, frozen=True, kw_only=True, tag_field="type", tag="command"):
    """A slash command, named without its slash; without an input it takes none."""

    name: str
    description: str
    input: Lenient[AvailableCommandInput | None] = None


class OtherCommand(UnknownVariant, AvailableCommand):
    """A command of a type not known yet."""

    __slots__ = ()


class AvailableCommandsUpdate(
    Wire,
    SessionUpdate,
    frozen=True,
    kw_only=True,
    tag_field="sessionUpdate",
    tag="available_commands_update",
):
    """All commands, as they are now."""

    available_commands: SkipInvalidItems[Sequence[AvailableCommand]]
