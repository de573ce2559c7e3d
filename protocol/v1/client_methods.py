"""Requests of the agent to the client: files, terminals, permissions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from protocol.codec.tolerance import Lenient, NullAsDefault
from protocol.shared.types import (
    Bare,
    EnvVariable,
    PermissionOptionId,
    SessionId,
    TerminalId,
    UInt32,
    UInt64,
    Wire,
)
from protocol.v1.updates import ToolCallUpdate


class ReadTextFileRequest(Wire):
    """Read a file as the editor has it; `line` counts from 1, `limit` is a number of lines."""

    session_id: SessionId
    path: str
    line: UInt32 | None = None
    limit: UInt32 | None = None


class ReadTextFileResponse(Wire):
    """The content of the file."""

    content: str


class WriteTextFileRequest(Wire):
    """Write a whole file through the editor."""

    session_id: SessionId
    path: str
    content: str


class WriteTextFileResponse(Wire):
    """The file is written."""


PermissionOptionKind: TypeAlias = Literal[
    "allow_once", "allow_always", "reject_once", "reject_always"
]


class PermissionOption(Wire):
    """An answer that the user can give."""

    option_id: PermissionOptionId
    name: str
    kind: PermissionOptionKind


class RequestPermissionRequest(Wire):
    """Ask the user whether a tool call may run."""

    session_id: SessionId
    tool_call: ToolCallUpdate
    options: Sequence[PermissionOption]


class CancelledPermissionOutcome(Bare, tag_field="outcome", tag="cancelled"):
    """The turn was cancelled before the user answered."""


class SelectedPermissionOutcome(Wire, tag_field="outcome", tag="selected"):
    """The user chose an option."""

    option_id: PermissionOptionId


RequestPermissionOutcome: TypeAlias = CancelledPermissionOutcome | SelectedPermissionOutcome


class RequestPermissionResponse(Wire):
    """The user's decision."""

    outcome: RequestPermissionOutcome


class CreateTerminalRequest(Wire):
    """Run a command in a terminal of the client's; the limit is in bytes."""

    session_id: SessionId
    command: str
    args: NullAsDefault[Sequence[str]] = ()
    env: NullAsDefault[Sequence[EnvVariable]] = ()
    cwd: str | None = None
    output_byte_limit: UInt64 | None = None


class CreateTerminalResponse(Wire):
    """The terminal in which it runs."""

    terminal_id: TerminalId


class TerminalOutputRequest(Wire):
    """Ask for the output of a terminal so far."""

    session_id: SessionId
    terminal_id: TerminalId


class TerminalExitStatus(Wire):
    """How a command ended: its exit code, or the signal that ended it."""

    exit_code: Lenient[UInt32 | None] = None
    signal: Lenient[str | None] = None


class TerminalOutputResponse(Wire):
    """The output, whether its beginning was cut off, and how the command ended if it did."""

    output: str
    truncated: bool
    exit_status: Lenient[TerminalExitStatus | None] = None


class ReleaseTerminalRequest(Wire):
    """End what runs in a terminal and free it."""

    session_id: SessionId
    terminal_id: TerminalId


class ReleaseTerminalResponse(Wire):
    """The terminal is released."""


class WaitForTerminalExitRequest(Wire):
    """Wait until the command ends."""

    session_id: SessionId
    terminal_id: TerminalId


class WaitForTerminalExitResponse(Wire):
    """How the command ended: its exit code, or the signal that ended it."""

    exit_code: Lenient[UInt32 | None] = None
    signal: Lenient[str | None] = None


class KillTerminalRequest(Wire):
    """End what runs in a terminal and keep its output."""

    session_id: SessionId
    terminal_id: TerminalId


class KillTerminalResponse(Wire):
    """The command is killed."""
