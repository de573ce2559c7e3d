"""Tool calls, the changes to files that they show, terminals, and requests for permission."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

from msgspec import UNSET, Meta, UnsetType

from protocol.codec.tolerance import (
    Lenient,
    LenientItems,
    OpenUnion,
    SkipInvalidItems,
    UnknownVariant,
)
from protocol.shared.types import (
    AbsolutePath,
    Int64,
    MediaType,
    PermissionOptionId,
    SessionId,
    TerminalId,
    ToolCallId,
    Upsert,
    Wire,
)
from protocol.v2.content import ContentBlock
from protocol.v2.options import SessionUpdate

# "text", "binary", "directory", "symlink", or a word that later versions add.
DiffFileType: TypeAlias = str
DiffPatchFormat: TypeAlias = str  # "git_patch", or a word that later versions add


class DiffChange(OpenUnion):
    """A change of a file."""

    __slots__ = ()
    discriminator = "operation"


class _Change(Wire, DiffChange):
    """`DiffPathChange`: the kind of file is the one after the operation."""

    path: AbsolutePath
    file_type: Lenient[DiffFileType | None] = None
    mime_type: Lenient[MediaType | None] = None


class _PairChange(_Change):
    """`DiffPathPairChange`: `path` is the new one."""

    old_path: AbsolutePath


class DiffAddChange(_Change, tag="add"):
    """The file was created."""


class DiffDeleteChange(_Change, tag="delete"):
    """The file was deleted."""


class DiffModifyChange(_Change, tag="modify"):
    """The content of the file changed."""


class DiffMoveChange(_PairChange, tag="move"):
    """The file was moved."""


class DiffCopyChange(_PairChange, tag="copy"):
    """The file was copied."""


class OtherDiffChange(UnknownVariant, DiffChange):
    """A change of a type that is not known yet."""

    __slots__ = ()


class DiffPatch(Wire):
    """The text of a patch in a format such as Git's."""

    format: DiffPatchFormat
    text: str


# "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other",
# or a word that later versions add.
ToolKind: TypeAlias = str
# "pending", "in_progress", "paused", "completed", "failed", "cancelled", or a word that later
# versions add.
ToolCallStatus: TypeAlias = str


class ToolCallContent(OpenUnion):
    """A part of what a tool call shows."""

    __slots__ = ()


class Content(Wire, ToolCallContent, tag="content"):
    """A content block."""

    content: ContentBlock


class Diff(Wire, ToolCallContent, tag="diff"):
    """Changes to files, and a patch of some or all of them."""

    changes: SkipInvalidItems[Sequence[DiffChange]]
    patch: Lenient[DiffPatch | None] = None


class Terminal(Wire, ToolCallContent, tag="terminal"):
    """A terminal, which `terminal_update` and `terminal_output_chunk` tell about."""

    terminal_id: TerminalId


class SessionReference(Wire, ToolCallContent, tag="session"):
    """UNSTABLE. A session that a tool call works with, and that the client knows already."""

    session_id: SessionId


class OtherToolCallContent(UnknownVariant, ToolCallContent):
    """Content of a type not known yet."""

    __slots__ = ()


class ToolCallLocation(Wire):
    """A file that a tool call works on; lines count from 1."""

    path: AbsolutePath
    line: Lenient[Annotated[int, Meta(ge=1, le=2**32 - 1)] | None] = None


class ToolCallCancelCapabilities(Wire):
    """The client may send `tool_call/cancel`."""


class ToolCallCapabilities(Wire):
    """What the client may do with a tool call now."""

    cancel: Lenient[ToolCallCancelCapabilities | None] = None


class ToolCallUpdate(Upsert):
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


class ToolCallProgress(ToolCallUpdate, SessionUpdate, tag="tool_call_update"):
    """A `ToolCallUpdate` on its way as a session update."""


class ToolCallContentChunk(Wire, SessionUpdate, tag="tool_call_content_chunk"):
    """A part that is appended to what the tool call of this id shows."""

    tool_call_id: ToolCallId
    content: ToolCallContent


Cells = Annotated[int, Meta(ge=1, le=2**16 - 1)]


class TerminalOutput(Wire):
    """All bytes that a terminal was sent, in base64; they replace those before."""

    data: str


class TerminalExitStatus(Wire):
    """How a command ended: its exit code, or the signal that ended it (`SIGTERM`), if known."""

    exit_code: Lenient[Int64 | None] = None
    signal: Lenient[str | None] = None


class TerminalSize(Wire):
    """The size of a command's terminal in cells."""

    cols: Cells
    rows: Cells


class TerminalCancelCapabilities(Wire):
    """The client may send `terminal/cancel`."""


class TerminalCapabilities(Wire):
    """What the client may do with a terminal now."""

    cancel: Lenient[TerminalCancelCapabilities | None] = None


class TerminalUpdate(Upsert, SessionUpdate, tag="terminal_update"):
    """A terminal, or what changed about it. With an exit status, even an empty one, it ended."""

    terminal_id: TerminalId
    command: Lenient[str | UnsetType | None] = UNSET
    cwd: Lenient[AbsolutePath | UnsetType | None] = UNSET
    output: Lenient[TerminalOutput | UnsetType | None] = UNSET
    exit_status: Lenient[TerminalExitStatus | UnsetType | None] = UNSET
    size: Lenient[TerminalSize | UnsetType | None] = UNSET
    capabilities: Lenient[TerminalCapabilities | UnsetType | None] = UNSET


class TerminalOutputChunk(Wire, SessionUpdate, tag="terminal_output_chunk"):
    """Bytes, in base64, that are appended to what the terminal was sent.

    A character, and an escape sequence, may be split between two chunks.
    """

    terminal_id: TerminalId
    data: str


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
