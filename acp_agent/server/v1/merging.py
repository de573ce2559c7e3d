"""Joins updates that wait for a client which reads slowly; nothing is dropped or reordered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from acp_agent.ids import SessionId
from acp_agent.session.store.event_codec import MERGED_CHARACTERS
from protocol.v1 import types as acp

Addressed = tuple[SessionId, acp.SessionUpdate]

LONGEST = 16_384  # characters of a joined chunk


def merge_updates(method: str, before: object, after: object) -> object | None:
    """One notification for two adjacent pieces of one message; None where they stay two."""
    if method != "session/update":
        return None
    if not isinstance(before, acp.SessionNotification) or not isinstance(
        after, acp.SessionNotification
    ):
        return None
    if before.session_id != after.session_id:
        return None
    joined = _joined(before.update, after.update, LONGEST)
    if joined is None:
        return None
    return acp.SessionNotification(session_id=before.session_id, update=joined)


def whole_texts(updates: Iterable[Addressed]) -> Iterator[Addressed]:
    """The updates with each uninterrupted run of pieces of one message as one chunk."""
    held: Addressed | None = None
    for of, update in updates:
        if held is not None:
            joined = None
            if held[0] == of:
                joined = _joined(held[1], update, MERGED_CHARACTERS)
            if joined is not None:
                held = of, joined
                continue
            yield held
        held = of, update
    if held is not None:
        yield held


def _joined(
    first: acp.SessionUpdate, second: acp.SessionUpdate, longest: int
) -> acp.SessionUpdate | None:
    if type(first) is not type(second) or not isinstance(
        first, acp.AgentMessageChunk | acp.AgentThoughtChunk
    ):
        return None
    assert isinstance(second, acp.AgentMessageChunk | acp.AgentThoughtChunk)
    if first.message_id != second.message_id:
        return None
    one, two = first.content, second.content
    if not isinstance(one, acp.TextContent) or not isinstance(two, acp.TextContent):
        return None
    if len(one.text) + len(two.text) > longest:
        return None
    return type(first)(
        content=acp.TextContent(text=one.text + two.text), message_id=first.message_id
    )
