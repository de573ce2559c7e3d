"""Asking the user for permission."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

from msgspec import Meta

from protocol.codec.marks import Lenient
from protocol.codec.open_union import OpenUnion, UnknownVariant, string_in
from protocol.v2.base import (
    AbsolutePath,
    PermissionOptionId,
    SessionId,
    TerminalId,
    ToolCallId,
    Wire,
)
from protocol.v2.tool_calls import ToolCallUpdate

# "allow_once", "allow_always", "reject_once", "reject_always", or a word that later versions add.
PermissionOptionKind: TypeAlias = str


class PermissionOption(Wire, frozen=True, kw_only=True):
    """An answer that the user can give."""

    option_id: PermissionOptionId
    name: str
    kind: PermissionOptionKind


class RequestPermissionSubject(OpenUnion):
    """What the permission is for."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its type."""
        match string_in(value, "type"):
            case "tool_call":
                return ToolCallPermissionSubject
            case "command":
                return CommandPermissionSubject
            case _:
                return OtherPermissionSubject


class ToolCallPermissionSubject(
    Wire, RequestPermissionSubject, frozen=True, kw_only=True, tag_field="type", tag="tool_call"
):
    """A tool call."""

    tool_call: ToolCallUpdate


class CommandPermissionSubject(
    Wire, RequestPermissionSubject, frozen=True, kw_only=True, tag_field="type", tag="command"
):
    """A command line, the folder it runs in, and the tool call and terminal it belongs to."""

    command: str
    cwd: AbsolutePath
    tool_call_id: Lenient[ToolCallId | None] = None
    terminal_id: Lenient[TerminalId | None] = None


class OtherPermissionSubject(UnknownVariant, RequestPermissionSubject):
    """Something not known yet."""

    __slots__ = ()


class RequestPermissionRequest(Wire, frozen=True, kw_only=True):
    """Ask the user: a title, more about it, what it is for, and at least one answer to choose."""

    session_id: SessionId
    title: str
    options: Annotated[Sequence[PermissionOption], Meta(min_length=1)]
    description: Lenient[str | None] = None
    subject: RequestPermissionSubject | None = None


class RequestPermissionOutcome(OpenUnion):
    """What came of it."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its name."""
        match string_in(value, "outcome"):
            case "selected":
                return SelectedPermissionOutcome
            case "cancelled":
                return CancelledPermissionOutcome
            case _:
                return OtherPermissionOutcome


class CancelledPermissionOutcome(
    Wire,
    RequestPermissionOutcome,
    frozen=True,
    kw_only=True,
    tag_field="outcome",
    tag="cancelled",
):
    """It was withdrawn before the user answered."""


class SelectedPermissionOutcome(
    Wire,
    RequestPermissionOutcome,
    frozen=True,
    kw_only=True,
    tag_field="outcome",
    tag="selected",
):
    """The user chose an option."""

    option_id: PermissionOptionId


class OtherPermissionOutcome(UnknownVariant, RequestPermissionOutcome):
    """Something not known yet; it allows nothing."""

    __slots__ = ()


class RequestPermissionResponse(Wire, frozen=True, kw_only=True):
    """What the user said."""

    outcome: RequestPermissionOutcome
