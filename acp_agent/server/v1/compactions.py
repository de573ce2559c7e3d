"""How a compaction shows, to clients that advertise it and to those that do not."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from acp_agent.config.message_catalog import Words
from acp_agent.events import CompactionChanged, CompactionSummaryText
from protocol.v1 import types as acp


def compaction_update(event: CompactionChanged) -> acp.CompactionUpdate:
    """The state of a compaction (Agent Client Protocol v1, CompactionUpdate)."""
    return acp.CompactionUpdate(
        compaction_id=event.compaction,
        status=event.status,
        summary=[acp.TextContent(text=event.summary)] if event.summary else UNSET,
        error=event.error or UNSET,
    )


def compaction_line(event: CompactionChanged, words: Words, *, live: bool) -> str | None:
    """A line for a client that shows no compactions; None where there is nothing to say.

    That one goes on is told where it happens, for it may take a minute or more.
    """
    match event.status:
        case "in_progress" if live:
            return words("Earlier parts of the conversation are being summed up for the model …")
        case "completed":
            return words("Earlier parts of the conversation were summed up for the model.")
        case "failed":
            line = words("Earlier parts of the conversation could not be summed up for the model.")
            return f"{line} {event.error}".strip()
        case _:
            return None


def summary_chunk(event: CompactionSummaryText) -> Sequence[acp.SessionUpdate]:
    """A piece of the summary (Agent Client Protocol v1, CompactionSummaryChunk)."""
    return [
        acp.CompactionSummaryChunk(
            compaction_id=event.compaction, content=acp.TextContent(text=event.text)
        )
    ]
