"""Asking the user for permission."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

from msgspec import Meta

from protocol.codec.tolerance import Lenient, OpenUnion, UnknownVariant
from protocol.shared.types import (
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


class PermissionOption(Wire):
    """An answer that the user can give."""

    option_id: PermissionOptionId
    name: str
    kind: PermissionOptionKind


class RequestPermissionSubject(OpenUnion):
    """The subject of a permission request."""

    __slots__ = ()


class ToolCallPermissionSubject(Wire, RequestPermissionSubject, tag="tool_call"):
    """A tool call."""

    tool_call: ToolCallUpdate


class CommandPermissionSubject(Wire, RequestPermissionSubject, tag="command"):
    """A command line, the folder it runs in, and the tool call and terminal it belongs to."""

    command: str
    cwd: AbsolutePath
    tool_call_id: Lenient[ToolCallId | None] = None
    terminal_id: Lenient[TerminalId | None] = None


class OtherPermissionSubject(UnknownVariant, RequestPermissionSubject):
    """A subject of a type that is not known yet."""

    __slots__ = ()


class RequestPermissionRequest(Wire):
    """Ask the user: a title, more about it, what it is for, and at least one answer to choose."""

    session_id: SessionId
    title: str
    options: Annotated[Sequence[PermissionOption], Meta(min_length=1)]
    description: Lenient[str | None] = None
    subject: RequestPermissionSubject | None = None


class RequestPermissionOutcome(OpenUnion):
    """The outcome of a permission request."""

    __slots__ = ()
    discriminator = "outcome"


class CancelledPermissionOutcome(Wire, RequestPermissionOutcome, tag="cancelled"):
    """The request was withdrawn before the user answered."""


class SelectedPermissionOutcome(Wire, RequestPermissionOutcome, tag="selected"):
    """The user chose an option."""

    option_id: PermissionOptionId


class OtherPermissionOutcome(UnknownVariant, RequestPermissionOutcome):
    """An outcome that is not known yet; it allows nothing."""

    __slots__ = ()


class RequestPermissionResponse(Wire):
    """The user's decision."""

    outcome: RequestPermissionOutcome
