"""Updates of a session, which the agent sends as `session/update`.

`plan_update` and `plan_removed` are only for a client that advertises `plan`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, UnsetType

from protocol.codec.tolerance import Lenient, LenientItems
from protocol.shared.types import (
    CompactionId,
    Cost,
    MessageId,
    PlanId,
    SessionId,
    SessionModeId,
    TerminalId,
    ToolCallId,
    UInt32,
    UInt64,
    Wire,
)
from protocol.v1.content import ContentBlock
from protocol.v1.sessions import SessionConfigOption
from protocol.v1.unstable_subagents import SessionMessage, SessionMessageChunk, SubagentUpdate


class ContentChunk(Wire):
    """A piece of a message; pieces with the same message id belong together."""

    content: ContentBlock
    message_id: Lenient[MessageId | None] = None


class UserMessageChunk(ContentChunk, tag_field="sessionUpdate", tag="user_message_chunk"):
    """A piece of the user's message, in a replay."""


class AgentMessageChunk(ContentChunk, tag_field="sessionUpdate", tag="agent_message_chunk"):
    """A piece of the agent's answer."""


class AgentThoughtChunk(ContentChunk, tag_field="sessionUpdate", tag="agent_thought_chunk"):
    """A piece of the agent's thoughts."""


ToolKind: TypeAlias = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
ToolCallStatus: TypeAlias = Literal["pending", "in_progress", "completed", "failed"]


class Content(Wire, tag_field="type", tag="content"):
    """A content block as part of what a tool call shows."""

    content: ContentBlock


class Diff(Wire, tag_field="type", tag="diff"):
    """A changed file: absolute path, old text (None: the file is new) and new text."""

    path: str
    new_text: str
    old_text: Lenient[str | None] = None


class Terminal(Wire, tag_field="type", tag="terminal"):
    """A live terminal of the client's."""

    terminal_id: TerminalId


class SessionReference(Wire, tag_field="type", tag="session"):
    """UNSTABLE. A session that a tool call works with, and that the client knows already."""

    session_id: SessionId


ToolCallContent: TypeAlias = Content | Diff | Terminal | SessionReference


class ToolCallLocation(Wire):
    """A file that a tool call works on: absolute path and line."""

    path: str
    line: Lenient[UInt32 | None] = None


class ToolCall(Wire, tag_field="sessionUpdate", tag="tool_call"):
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


class ToolCallUpdate(Wire):
    """A change of a tool call; UNSET is unchanged, a list replaces the one before.

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


class ToolCallProgress(ToolCallUpdate, tag_field="sessionUpdate", tag="tool_call_update"):
    """A `ToolCallUpdate` on its way as a session update."""


PlanEntryPriority: TypeAlias = Literal["high", "medium", "low"]
PlanEntryStatus: TypeAlias = Literal["pending", "in_progress", "completed"]


class PlanEntry(Wire):
    """One task of a plan."""

    content: str
    priority: PlanEntryPriority
    status: PlanEntryStatus


class Plan(Wire, tag_field="sessionUpdate", tag="plan"):
    """The whole plan; it replaces the one before."""

    entries: LenientItems[Sequence[PlanEntry]]


class PlanItems(Wire, tag_field="type", tag="items"):
    """UNSTABLE. A plan that is a list of tasks."""

    plan_id: PlanId
    entries: LenientItems[Sequence[PlanEntry]]


class PlanFile(Wire, tag_field="type", tag="file"):
    """UNSTABLE. A plan in a file, which the client opens by its address."""

    plan_id: PlanId
    uri: str


class PlanMarkdown(Wire, tag_field="type", tag="markdown"):
    """UNSTABLE. A plan that is a text in Markdown, and the absolute path of its file."""

    plan_id: PlanId
    content: str
    path: str | None = None


PlanUpdateContent: TypeAlias = PlanItems | PlanFile | PlanMarkdown


class PlanUpdate(Wire, tag_field="sessionUpdate", tag="plan_update"):
    """UNSTABLE. A whole plan; it replaces the one of the same id."""

    plan: PlanUpdateContent


class PlanRemoved(Wire, tag_field="sessionUpdate", tag="plan_removed"):
    """UNSTABLE. A plan is no longer there."""

    plan_id: PlanId


class UnstructuredCommandInput(Wire):
    """All text behind a command's name is its input; `hint` shows while there is none."""

    hint: str


AvailableCommandInput: TypeAlias = UnstructuredCommandInput


class AvailableCommand(Wire):
    """A slash command that the user can type."""

    name: str
    description: str
    input: Lenient[AvailableCommandInput | None] = None


class AvailableCommandsUpdate(Wire, tag_field="sessionUpdate", tag="available_commands_update"):
    """All slash commands, as they are now."""

    available_commands: LenientItems[Sequence[AvailableCommand]]


class CurrentModeUpdate(Wire, tag_field="sessionUpdate", tag="current_mode_update"):
    """The session is in another mode."""

    current_mode_id: SessionModeId


class ConfigOptionUpdate(Wire, tag_field="sessionUpdate", tag="config_option_update"):
    """All configuration options, as they are now."""

    config_options: LenientItems[Sequence[SessionConfigOption]]


class SessionInfoUpdate(Wire, tag_field="sessionUpdate", tag="session_info_update"):
    """A change of a session's description: UNSET is unchanged, None is removed."""

    title: Lenient[str | UnsetType | None] = UNSET
    updated_at: Lenient[str | UnsetType | None] = UNSET


class UsageUpdate(Wire, tag_field="sessionUpdate", tag="usage_update"):
    """Tokens in the context now, tokens that it can hold, and what the session cost so far."""

    used: UInt64
    size: UInt64
    cost: Lenient[Cost | None] = None


NoticeSeverity: TypeAlias = str  # "info", "warning", "error", or a word that later versions add


class Notice(Wire, tag_field="sessionUpdate", tag="notice"):
    """A notice for the user, outside the conversation."""

    severity: NoticeSeverity
    title: Annotated[str, Meta(min_length=1)]
    description: Lenient[str | None] = None


# "in_progress", "completed", "failed", "cancelled", or a word that later versions add.
CompactionStatus: TypeAlias = str


class CompactionUpdate(Wire, tag_field="sessionUpdate", tag="compaction_update"):
    """The state of a compaction; UNSET is unchanged."""

    compaction_id: CompactionId
    status: CompactionStatus
    summary: LenientItems[Sequence[ContentBlock] | UnsetType | None] = UNSET
    error: Lenient[str | UnsetType | None] = UNSET


class CompactionSummaryChunk(Wire, tag_field="sessionUpdate", tag="compaction_summary_chunk"):
    """A piece of the summary of a compaction."""

    compaction_id: CompactionId
    content: ContentBlock


SessionUpdate: TypeAlias = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCall
    | ToolCallProgress
    | Plan
    | AvailableCommandsUpdate
    | CurrentModeUpdate
    | ConfigOptionUpdate
    | SessionInfoUpdate
    | UsageUpdate
    | Notice
    | CompactionUpdate
    | CompactionSummaryChunk
    # UNSTABLE from here on.
    | PlanUpdate
    | PlanRemoved
    | SubagentUpdate
    | SessionMessage
    | SessionMessageChunk
)


class SessionNotification(Wire):
    """The parameters of `session/update`."""

    session_id: SessionId
    update: SessionUpdate
