"""Joins updates that wait for a client which reads slowly; nothing is dropped or reordered."""

from __future__ import annotations

from base64 import b64decode, b64encode

from protocol.v2 import types as acp

LONGEST = 16_384  # characters of a joined chunk


def merge_updates(method: str, before: object, after: object) -> object | None:
    """One notification for two adjacent pieces of one thing; None where they stay two."""
    if method != "session/update":
        return None
    if not isinstance(before, acp.UpdateSessionNotification) or not isinstance(
        after, acp.UpdateSessionNotification
    ):
        return None
    if before.session_id != after.session_id:
        return None
    joined = _joined(before.update, after.update)
    if joined is None:
        return None
    return acp.UpdateSessionNotification(session_id=before.session_id, update=joined)


def _joined(first: acp.SessionUpdate, second: acp.SessionUpdate) -> acp.SessionUpdate | None:
    if type(first) is not type(second):
        return None
    if isinstance(first, acp.AgentMessageChunk | acp.AgentThoughtChunk):
        assert isinstance(second, acp.AgentMessageChunk | acp.AgentThoughtChunk)
        return _joined_text(first, second)
    if isinstance(first, acp.TerminalOutputChunk):
        assert isinstance(second, acp.TerminalOutputChunk)
        return _joined_bytes(first, second)
    return None


def _joined_text(
    first: acp.AgentMessageChunk | acp.AgentThoughtChunk,
    second: acp.AgentMessageChunk | acp.AgentThoughtChunk,
) -> acp.SessionUpdate | None:
    one, two = first.content, second.content
    if first.message_id != second.message_id:
        return None
    if not isinstance(one, acp.TextContent) or not isinstance(two, acp.TextContent):
        return None
    if len(one.text) + len(two.text) > LONGEST:
        return None
    content = acp.TextContent(text=one.text + two.text)
    return type(first)(message_id=first.message_id, content=content)


def _joined_bytes(
    first: acp.TerminalOutputChunk, second: acp.TerminalOutputChunk
) -> acp.SessionUpdate | None:
    if first.terminal_id != second.terminal_id or len(first.data) + len(second.data) > LONGEST:
        return None
    # Each chunk is encoded by itself: the bytes are joined, not what they are written as.
    data = b64encode(b64decode(first.data) + b64decode(second.data)).decode("ascii")
    return acp.TerminalOutputChunk(terminal_id=first.terminal_id, data=data)
