"""Updates of a session: messages, plans, usage, notices and compactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

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
    CompactionId,
    Cost,
    MessageId,
    PlanId,
    UInt64,
    Upsert,
    Wire,
)
from protocol.v2.content import ContentBlock
from protocol.v2.options import SessionUpdate


class ContentChunk(Wire):
    """A piece that is appended to the message of this id."""

    message_id: MessageId
    content: ContentBlock


class UserMessageChunk(ContentChunk, SessionUpdate, tag="user_message_chunk"):
    """A piece of the user's message."""


class AgentMessageChunk(ContentChunk, SessionUpdate, tag="agent_message_chunk"):
    """A piece of the agent's answer."""


class AgentThoughtChunk(ContentChunk, SessionUpdate, tag="agent_thought_chunk"):
    """A piece of the agent's thoughts."""


class UserMessage(Upsert, SessionUpdate, tag="user_message"):
    """The user's message; content replaces earlier content."""

    message_id: MessageId
    content: LenientItems[Sequence[ContentBlock] | UnsetType | None] = UNSET


class AgentMessage(Upsert, SessionUpdate, tag="agent_message"):
    """The agent's answer; content replaces earlier content."""

    message_id: MessageId
    content: LenientItems[Sequence[ContentBlock] | UnsetType | None] = UNSET


class AgentThought(Upsert, SessionUpdate, tag="agent_thought"):
    """The agent's thoughts; content replaces earlier content."""

    message_id: MessageId
    content: LenientItems[Sequence[ContentBlock] | UnsetType | None] = UNSET


# "high", "medium", "low", or a word that later versions add.
PlanEntryPriority: TypeAlias = str
# "pending", "in_progress", "completed", "cancelled", or a word that later versions add.
PlanEntryStatus: TypeAlias = str


class PlanEntry(Wire):
    """One task of a plan."""

    content: str
    priority: PlanEntryPriority
    status: PlanEntryStatus


class PlanUpdateContent(OpenUnion):
    """A whole plan."""

    __slots__ = ()


class PlanItems(Wire, PlanUpdateContent, tag="items"):
    """A plan that is a list of tasks."""

    plan_id: PlanId
    entries: SkipInvalidItems[Sequence[PlanEntry]]


class PlanFile(Wire, PlanUpdateContent, tag="file"):
    """UNSTABLE. A plan in a file, which the client opens by its address."""

    plan_id: PlanId
    uri: str


class PlanMarkdown(Wire, PlanUpdateContent, tag="markdown"):
    """UNSTABLE. A plan that is a text in Markdown, and the path of its file."""

    plan_id: PlanId
    content: str
    path: AbsolutePath | None = None


class OtherPlan(UnknownVariant, PlanUpdateContent):
    """A plan of a type not known yet."""

    __slots__ = ()
    required_strings = ("planId",)


class PlanUpdate(Wire, SessionUpdate, tag="plan_update"):
    """A plan; it replaces the one of the same id."""

    plan: PlanUpdateContent


class PlanRemoved(Wire, SessionUpdate, tag="plan_removed"):
    """UNSTABLE. A plan is no longer there."""

    plan_id: PlanId


class SessionInfoUpdate(Upsert, SessionUpdate, tag="session_info_update"):
    """A change of a session's description; `updated_at` in the form of RFC 3339."""

    title: Lenient[str | UnsetType | None] = UNSET
    updated_at: Lenient[str | UnsetType | None] = UNSET


class UsageUpdate(Wire, SessionUpdate, tag="usage_update"):
    """Tokens in the context now, tokens that it can hold, and what the session cost so far.

    The cost alone is a patch: UNSET is unchanged, None is cleared.
    """

    used: UInt64
    size: UInt64
    cost: Lenient[Cost | UnsetType | None] = UNSET


NoticeSeverity: TypeAlias = str  # "info", "warning", "error", or a word that later versions add


class Notice(Wire, SessionUpdate, tag="notice"):
    """A notice for the user, outside the conversation."""

    severity: NoticeSeverity
    title: Annotated[str, Meta(min_length=1)]
    description: Lenient[str | None] = None


# "in_progress", "completed", "failed", "cancelled", or a word that later versions add.
CompactionStatus: TypeAlias = str


class CompactionUpdate(Upsert, SessionUpdate, tag="compaction_update"):
    """The state of a compaction; a summary replaces the one before."""

    compaction_id: CompactionId
    status: CompactionStatus
    summary: LenientItems[Sequence[ContentBlock] | UnsetType | None] = UNSET
    error: Lenient[str | UnsetType | None] = UNSET


class CompactionSummaryChunk(Wire, SessionUpdate, tag="compaction_summary_chunk"):
    """A piece that is appended to the summary of a compaction."""

    compaction_id: CompactionId
    content: ContentBlock
