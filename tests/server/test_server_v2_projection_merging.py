"""What waits for a client of version 2 that reads slowly is joined without loss."""

from __future__ import annotations

import base64

import pytest

from acp_agent.server.conversion import MAX_CHUNK, merge_updates
from protocol.v2 import types as acp


def notification(update: acp.SessionUpdate, session: str = "s") -> acp.UpdateSessionNotification:
    return acp.UpdateSessionNotification(session_id=session, update=update)


def message(text: str, of: str = "m") -> acp.AgentMessageChunk:
    return acp.AgentMessageChunk(message_id=of, content=acp.TextContent(text=text))


def thought(text: str) -> acp.AgentThoughtChunk:
    return acp.AgentThoughtChunk(message_id="m", content=acp.TextContent(text=text))


def output(data: bytes, terminal: str = "t") -> acp.TerminalOutputChunk:
    encoded = base64.b64encode(data).decode()
    return acp.TerminalOutputChunk(terminal_id=terminal, data=encoded)


def merged(first: acp.SessionUpdate, second: acp.SessionUpdate) -> acp.SessionUpdate | None:
    joined = merge_updates("session/update", notification(first), notification(second))
    if joined is None:
        return None
    assert isinstance(joined, acp.UpdateSessionNotification)
    assert joined.session_id == "s"
    return joined.update


def test_pieces_of_one_text_become_one_piece() -> None:
    assert merged(message("a"), message("b")) == message("ab")
    assert merged(thought("a"), thought("b")) == thought("ab")


def test_bytes_are_joined_and_not_their_encoding() -> None:
    """The first piece ends with padding, and in the middle of a character."""
    data = "好x".encode()
    assert merged(output(data[:1]), output(data[1:])) == output(data)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (message("a"), message("b", of="n")),
        (message("a"), thought("b")),
        (output(b"a"), output(b"b", terminal="u")),
        (message("a" * MAX_CHUNK), message("b")),
        (output(b"a" * MAX_CHUNK), output(b"b")),
        (acp.SessionRunningUpdate(), acp.SessionRunningUpdate()),
        (
            message("a"),
            acp.AgentMessageChunk(
                message_id="m", content=acp.ImageContent(data="AAAA", mime_type="image/png")
            ),
        ),
    ],
)
def test_pieces_of_two_messages_are_not_joined(
    first: acp.SessionUpdate, second: acp.SessionUpdate
) -> None:
    assert merged(first, second) is None


def test_sessions_and_methods_are_not_mixed() -> None:
    first = notification(message("a"))
    assert merge_updates("session/update", first, notification(message("b"), "other")) is None
    assert merge_updates("auth/status_update", first, first) is None
    assert merge_updates("session/update", first, object()) is None
