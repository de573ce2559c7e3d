"""Compactions of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import UNSET, UnsetType

from protocol.codec.marks import Lenient, LenientItems
from protocol.v2.base import CompactionId, Upsert, Wire
from protocol.v2.content import ContentBlock
from protocol.v2.session_update import SessionUpdate

# "in_progress", "completed", "failed", "cancelled", or a word that later versions add.
CompactionStatus: TypeAlias = str


class CompactionUpdate(
    Upsert,
    SessionUpdate,
    frozen=True,
    kw_only=True,
    tag_field="sessionUpdate",
    tag="compaction_update",
):
    """How a compaction goes; a summary replaces the one before."""

    compaction_id: CompactionId
    status: CompactionStatus
    summary: LenientItems[Sequence[ContentBlock] | UnsetType | None] = UNSET
    error: Lenient[str | UnsetType | None] = UNSET


class CompactionSummaryChunk(
    Wire,
    SessionUpdate,
    frozen=True,
    kw_only=True,
    tag_field="sessionUpdate",
    tag="compaction_summary_chunk",
):
    """A piece that is appended to the summary of a compaction."""

    compaction_id: CompactionId
    content: ContentBlock
