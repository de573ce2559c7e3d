"""Tool calls as a client shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

from msgspec import UNSET, Meta, UnsetType

from protocol.codec.marks import Lenient, LenientItems, SkipInvalidItems
from protocol.codec.open_union import OpenUnion, UnknownVariant, string_in
from protocol.v2.base import AbsolutePath, TerminalId, ToolCallId, Upsert, Wire
from protocol.v2.content import ContentBlock
from protocol.v2.diffs import DiffChange, DiffPatch
from protocol.v2.session_update import SessionUpdate

# "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other",
# or a word that later versions add.
ToolKind: TypeAlias = str
# "pending", "in_progress", "paused", "completed", "failed", "cancelled", or a word that later
# versions add.
ToolCallStatus: TypeAlias = str


class ToolCallContent(OpenUnion):
    """A part of what a tool call shows."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its type."""
        return _CONTENT.get(string_in(value, "type"), OtherToolCallContent)


class Content(Wire, ToolCallContent, frozen=True, kw_only=True, tag_field="type", tag="content"):
    """A content block."""

    content: ContentBlock


class Diff(Wire, ToolCallContent, frozen=True, kw_only=True, tag_field="type", tag="diff"):
    """Changes to files, and a patch of some or all of them."""

    changes: SkipInvalidItems[Sequence[DiffChange]]
    patch: Lenient[DiffPatch | None] = None


class Terminal(Wire, ToolCallContent, frozen=True, kw_only=True, tag_field="type", tag="terminal"):
    """A terminal, which `terminal_update` and `terminal_output_chunk` tell about."""

    terminal_id: TerminalId


class OtherToolCallContent(UnknownVariant, ToolCallContent):
    """Content of a type not known yet."""

    __slots__ = ()


_CONTENT: dict[str, type[ToolCallContent]] = {
    "content": Content,
    "diff": Diff,
    "terminal": Terminal,
}


class ToolCallLocation(Wire, frozen=True, kw_only=True):
    """A file that a tool call works on; lines count from 1."""

    path: AbsolutePath
    line: Lenient[Annotated[int, Meta(ge=1, le=2**32 - 1)] | None] = None


class ToolCallCancelCapabilities(Wire, frozen=True, kw_only=True):
    """The client may send `tool_call/cancel`."""


class ToolCallCapabilities(Wire, frozen=True, kw_only=True):
    """What the client may do to a tool call, at this moment."""

    cancel: Lenient[ToolCallCancelCapabilities | None] = None


class ToolCallUpdate(Upsert, frozen=True, kw_only=True):
    """A tool call, or what changed about it; a list replaces the one before.

    This is the form inside a permission request; `ToolCallProgress` is the same as an update.
    """

    tool_call_id: ToolCallId
    title: Lenient[str | UnsetType | None] = UNSET
    name: Lenient[str | UnsetType | None] = UNSET
    kind: Lenient[ToolKind | UnsetType | None] = UNSET
    status: Lenient[ToolCallStatus | UnsetType | None] = UNSET
    content: LenientItems[Sequence[ToolCallContent] | UnsetType | None] = UNSET
    locations: LenientItems[Sequence[ToolCallLocation] | UnsetType | None] = UNSET
    raw_input: Lenient[Any] = UNSET
    raw_output: Lenient[Any] = UNSET
    capabilities: Lenient[ToolCallCapabilities | UnsetType | None] = UNSET


class ToolCallProgress(
    ToolCallUpdate,
    SessionUpdate,
    frozen=True,
    kw_only=True,
    tag_field="sessionUpdate",
    tag="tool_call_update",
):
    """A `ToolCallUpdate` on its way as a session update."""


class ToolCallContentChunk(
    Wire,
    SessionUpdate,
    frozen=True,
    kw_only=True,
    tag_field="sessionUpdate",
    tag="tool_call_content_chunk",
):
    """A part that is appended to what the tool call of this id shows."""

    tool_call_id: ToolCallId
    content: ToolCallContent
