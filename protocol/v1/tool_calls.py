"""Tool calls as an editor shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, UnsetType

from protocol.codec.marks import Lenient, LenientItems
from protocol.v1.base import TerminalId, ToolCallId, UInt32, Wire
from protocol.v1.content import ContentBlock

ToolKind: TypeAlias = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
ToolCallStatus: TypeAlias = Literal["pending", "in_progress", "completed", "failed"]


class Content(Wire, frozen=True, kw_only=True, tag_field="type", tag="content"):
    """A content block as part of what a tool call shows."""

    content: ContentBlock


class Diff(Wire, frozen=True, kw_only=True, tag_field="type", tag="diff"):
    """A changed file: absolute path, old text (None: the file is new) and new text."""

    path: str
    new_text: str
    old_text: Lenient[str | None] = None


class Terminal(Wire, frozen=True, kw_only=True, tag_field="type", tag="terminal"):
    """A live terminal of the client's."""

    terminal_id: TerminalId


ToolCallContent: TypeAlias = Content | Diff | Terminal


class ToolCallLocation(Wire, frozen=True, kw_only=True):
    """A file that a tool call works on: absolute path and line."""

    path: str
    line: Lenient[UInt32 | None] = None


class ToolCall(Wire, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="tool_call"):
    """A new tool call. Without a kind it is `other`, without a status `pending`."""

    tool_call_id: ToolCallId
    title: str
    name: Lenient[str | None] = None
    kind: Lenient[ToolKind | UnsetType] = UNSET
    status: Lenient[ToolCallStatus | UnsetType] = UNSET
    content: LenientItems[Sequence[ToolCallContent]] = ()
    locations: LenientItems[Sequence[ToolCallLocation]] = ()
    raw_input: Lenient[Any] = None
    raw_output: Lenient[Any] = None


class ToolCallUpdate(Wire, frozen=True, kw_only=True):
    """What changed about a tool call; UNSET is unchanged, a list replaces the one before.

    This is the form inside a permission request; `ToolCallProgress` is the same as an update.
    """

    tool_call_id: ToolCallId
    kind: Lenient[ToolKind | UnsetType | None] = UNSET
    status: Lenient[ToolCallStatus | UnsetType | None] = UNSET
    title: Lenient[str | UnsetType | None] = UNSET
    name: Lenient[str | UnsetType | None] = UNSET
    content: LenientItems[Sequence[ToolCallContent] | UnsetType | None] = UNSET
    locations: LenientItems[Sequence[ToolCallLocation] | UnsetType | None] = UNSET
    raw_input: Lenient[Any] = UNSET
    raw_output: Lenient[Any] = UNSET


class ToolCallProgress(
    ToolCallUpdate, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="tool_call_update"
):
    """A `ToolCallUpdate` on its way as a session update."""
