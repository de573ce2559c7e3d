"""Joins adjacent updates for a client that reads slowly. Nothing is dropped or reordered.

Both versions of the protocol have the same tags for the updates that are joined.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from msgspec import structs

from acp_agent.ids import SessionId
from acp_agent.session.store.event_codec import MERGED_CHARACTERS

UpdateT = TypeVar("UpdateT")

MAX_CHUNK = 16_384  # characters of a joined chunk


def merge_updates(method: str, before: Any, after: Any) -> object | None:
    """Return one notification for two adjacent pieces of one text or output; else None."""
    if method != "session/update" or type(before) is not type(after):
        return None
    if before.session_id != after.session_id:
        return None
    joined = join(before.update, after.update, MAX_CHUNK)
    return None if joined is None else structs.replace(before, update=joined)


def join_texts(
    updates: Iterable[tuple[SessionId, UpdateT]],
) -> Iterator[tuple[SessionId, UpdateT]]:
    """Join each uninterrupted run of pieces of one message, for a replay."""
    held: tuple[SessionId, UpdateT] | None = None
    for of, update in updates:
        if held is not None:
            joined = join(held[1], update, MERGED_CHARACTERS) if held[0] == of else None
            if joined is not None:
                held = of, joined
                continue
            yield held
        held = of, update
    if held is not None:
        yield held


def join(first: Any, second: Any, limit: int) -> Any:
    """Return one chunk for two of the same message or terminal, up to `limit`; else None."""
    if type(first) is not type(second):
        return None
    match _tag(first):
        case "agent_message_chunk" | "agent_thought_chunk":
            one, two = first.content, second.content
            if first.message_id != second.message_id or not _tag(one) == _tag(two) == "text":
                return None
            if len(one.text) + len(two.text) > limit:
                return None
            return structs.replace(first, content=type(one)(text=one.text + two.text), meta=None)
        case "terminal_output_chunk":
            too_long = len(first.data) + len(second.data) > limit
            if first.terminal_id != second.terminal_id or too_long:
                return None
            # Each chunk is encoded by itself, so the bytes are joined and not the text.
            data = b64encode(b64decode(first.data) + b64decode(second.data)).decode("ascii")
            return structs.replace(first, data=data)
        case _:
            return None


def _tag(value: object) -> object:
    config = getattr(value, "__struct_config__", None)
    return None if config is None else config.tag
