"""Joins updates that wait for a client which reads slowly; nothing is dropped or reordered."""

from __future__ import annotations

from protocol.v1 import types as acp

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
    first, second = before.update, after.update
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
    if len(one.text) + len(two.text) > LONGEST:
        return None
    joined = type(first)(
        content=acp.TextContent(text=one.text + two.text), message_id=first.message_id
    )
    return acp.SessionNotification(session_id=before.session_id, update=joined)
