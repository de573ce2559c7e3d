"""Terminals of the agent's, which a client only shows."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from protocol.codec.marks import Lenient
from protocol.v2.base import AbsolutePath, Int64, TerminalId, Upsert, Wire
from protocol.v2.session_update import SessionUpdate

Cells = Annotated[int, Meta(ge=1, le=2**16 - 1)]


class TerminalOutput(Wire, frozen=True, kw_only=True):
    """All bytes that a terminal was sent, in base64; they replace those before."""

    data: str


class TerminalExitStatus(Wire, frozen=True, kw_only=True):
    """How a command ended: its exit code, or the signal that ended it (`SIGTERM`), if known."""

    exit_code: Lenient[Int64 | None] = None
    signal: Lenient[str | None] = None


class TerminalSize(Wire, frozen=True, kw_only=True):
    """How many cells the terminal has that the command writes to."""

    cols: Cells
    rows: Cells


class TerminalCancelCapabilities(Wire, frozen=True, kw_only=True):
    """The client may send `terminal/cancel`."""


class TerminalCapabilities(Wire, frozen=True, kw_only=True):
    """What the client may do to a terminal, at this moment."""

    cancel: Lenient[TerminalCancelCapabilities | None] = None


class TerminalUpdate(
    Upsert,
    SessionUpdate,
    frozen=True,
    kw_only=True,
    tag_field="sessionUpdate",
    tag="terminal_update",
):
    """A terminal, or what changed about it. With an exit status, even an empty one, it ended."""

    terminal_id: TerminalId
    command: Lenient[str | UnsetType | None] = UNSET
    cwd: Lenient[AbsolutePath | UnsetType | None] = UNSET
    output: Lenient[TerminalOutput | UnsetType | None] = UNSET
    exit_status: Lenient[TerminalExitStatus | UnsetType | None] = UNSET
    size: Lenient[TerminalSize | UnsetType | None] = UNSET
    capabilities: Lenient[TerminalCapabilities | UnsetType | None] = UNSET


class TerminalOutputChunk(
    Wire,
    SessionUpdate,
    frozen=True,
    kw_only=True,
    tag_field="sessionUpdate",
    tag="terminal_output_chunk",
):
    """Bytes, in base64, that are appended to what the terminal was sent.

    A character, and an escape sequence, may be split between two chunks.
    """

    terminal_id: TerminalId
    data: str
