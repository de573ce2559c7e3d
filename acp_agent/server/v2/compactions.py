"""Compactions as the protocol shows them (Agent Client Protocol v2, CompactionUpdate)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from acp_agent.events import CompactionChanged, CompactionSummaryText
from acp_agent.server.v2.conversion import text
from protocol.v2 import types as acp


def compaction_update(event: CompactionChanged) -> Sequence[acp.SessionUpdate]:
    """How a compaction goes; a summary replaces what came of it in pieces."""
    return [
        acp.CompactionUpdate(
            compaction_id=event.compaction,
            status=event.status,
            summary=[text(event.summary)] if event.summary else UNSET,
            error=event.error or UNSET,
        )
    ]


def summary_chunk(event: CompactionSummaryText) -> Sequence[acp.SessionUpdate]:
    """A piece of the summary."""
    return [acp.CompactionSummaryChunk(compaction_id=event.compaction, content=text(event.text))]
