"""What an agent tells about a session while it works: `session/update`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

from msgspec import UNSET, Meta, UnsetType

from protocol.codec.marks import Lenient, LenientItems
from protocol.v1.base import CompactionId, MessageId, SessionId, SessionModeId, UInt64, Wire
from protocol.v1.config_options import SessionConfigOption
from protocol.v1.content import ContentBlock
from protocol.v1.plans import Plan, PlanRemoved, PlanUpdate
from protocol.v1.subagents import SessionMessage, SessionMessageChunk, SubagentUpdate
from protocol.v1.tool_calls import ToolCall, ToolCallProgress

NoticeSeverity: TypeAlias = str  # "info", "warning", "error", or a word that later versions add
# "in_progress", "completed", "failed", "cancelled", or a word that later versions add.
CompactionStatus: TypeAlias = str


class ContentChunk(Wire, frozen=True, kw_only=True):
    """A piece of a message; pieces with the same message id belong together."""

    content: ContentBlock
    message_id: Lenient[MessageId | None] = None


class UserMessageChunk(
    ContentChunk, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="user_message_chunk"
):
    """A piece of what the user said, in a replay."""


class AgentMessageChunk(
    ContentChunk, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="agent_message_chunk"
):
    """A piece of what the agent says."""


class AgentThoughtChunk(
    ContentChunk, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="agent_thought_chunk"
):
    """A piece of what the agent thinks."""


class UnstructuredCommandInput(Wire, frozen=True, kw_only=True):
    """All text behind a command's name is its input; `hint` shows while there is none."""

    hint: str


AvailableCommandInput: TypeAlias = UnstructuredCommandInput


class AvailableCommand(Wire, frozen=True, kw_only=True):
    """A slash command that the user can type."""

    name: str
    description: str
    input: Lenient[AvailableCommandInput | None] = None


class AvailableCommandsUpdate(
    Wire, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="available_commands_update"
):
    """All slash commands, as they are now."""

    available_commands: LenientItems[Sequence[AvailableCommand]]


class CurrentModeUpdate(
    Wire, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="current_mode_update"
):
    """The session is in another mode."""

    current_mode_id: SessionModeId


class ConfigOptionUpdate(
    Wire, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="config_option_update"
):
    """All configuration options, as they are now."""

    config_options: LenientItems[Sequence[SessionConfigOption]]


class SessionInfoUpdate(
    Wire, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="session_info_update"
):
    """What changed about a session: UNSET is unchanged, None is no longer there."""

    title: Lenient[str | UnsetType | None] = UNSET
    updated_at: Lenient[str | UnsetType | None] = UNSET


class Cost(Wire, frozen=True, kw_only=True):
    """An amount in a currency (ISO 4217)."""

    amount: float
    currency: str


class UsageUpdate(Wire, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="usage_update"):
    """Tokens in the context now, tokens that it can hold, and what the session cost so far."""

    used: UInt64
    size: UInt64
    cost: Lenient[Cost | None] = None


class Notice(Wire, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="notice"):
    """Something that the user should know and that is no part of the conversation."""

    severity: NoticeSeverity
    title: Annotated[str, Meta(min_length=1)]
    description: Lenient[str | None] = None


class CompactionUpdate(
    Wire, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="compaction_update"
):
    """How the compaction of a conversation goes; UNSET is unchanged."""

    compaction_id: CompactionId
    status: CompactionStatus
    summary: LenientItems[Sequence[ContentBlock] | UnsetType | None] = UNSET
    error: Lenient[str | UnsetType | None] = UNSET


class CompactionSummaryChunk(
    Wire, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="compaction_summary_chunk"
):
    """A piece of the summary that a compaction makes."""

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


class SessionNotification(Wire, frozen=True, kw_only=True):
    """The parameters of `session/update`."""

    session_id: SessionId
    update: SessionUpdate
