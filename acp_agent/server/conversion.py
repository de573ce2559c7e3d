"""Values and updates in the shape that both versions of the protocol have."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec
from msgspec import structs

from acp_agent.content import escaped, escaped_values, is_deeper
from acp_agent.events import Usage
from acp_agent.ids import SessionId
from acp_agent.session.store.event_codec import MAX_MERGED_CHARACTERS

UpdateT = TypeVar("UpdateT")

# Levels of nesting in arguments. JSON parsers stop at some depth, serde_json at 128.
MAX_DEPTH = 64
MAX_CHUNK = 16_384  # characters of a joined chunk


def raw_input(arguments: str) -> Any:
    """Return a call's arguments as JSON values, or as text if they are not JSON.

    Characters that are not seen are written out: clients show arguments in questions.

    Arguments that nest deeper than `MAX_DEPTH` stay text: a client that cannot parse one line stops
    working.
    """
    try:
        decoded = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {"arguments": escaped(arguments)}
    brackets = arguments.count("{") + arguments.count("[")  # so many levels at most
    deep = brackets > MAX_DEPTH and is_deeper(decoded, MAX_DEPTH)
    return {"arguments": escaped(arguments)} if deep else escaped_values(decoded)


def token_counts(usage: Usage) -> dict[str, Any]:
    """Return the fields of the protocol's `Usage`; each version has its own type.

    The total is the sum of all types, so no token counts twice: tokens read from or written to a
    cache are not input. Thoughts are part of the output, as providers bill them. Zeros are left
    out, as the provider may not report that type.

    Source: Agent Client Protocol v1 and v2 (unstable), Usage; the RFD "End-Turn Token Usage".
    """
    counts = {
        "total_tokens": usage.input + usage.output,
        "input_tokens": max(0, usage.input - usage.cache_read - usage.cache_write),
        "output_tokens": usage.output,
    }
    optional_counts = {
        "thought_tokens": usage.reasoning,
        "cached_read_tokens": usage.cache_read,
        "cached_write_tokens": usage.cache_write,
    }
    return counts | {name: count for name, count in optional_counts.items() if count}


def format_timestamp(milliseconds: int) -> str:
    """Return a time in milliseconds since 1970 (UTC) in ISO 8601, in the zone `Z`."""
    from datetime import UTC, datetime  # noqa: PLC0415 - for lists only

    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def merge_updates(method: str, before: Any, after: Any) -> object | None:
    """Return one notification for two adjacent pieces of one text or output; else None."""
    if method != "session/update" or type(before) is not type(after):
        return None
    if before.session_id != after.session_id:
        return None
    joined = join(before.update, after.update, MAX_CHUNK)
    return None if joined is None else structs.replace(before, update=joined)


def join_texts(updates: Iterable[tuple[SessionId, UpdateT]]) -> Iterator[tuple[SessionId, UpdateT]]:
    """Join each uninterrupted run of pieces of one message, for a replay."""
    pending: tuple[SessionId, UpdateT] | None = None
    for session, update in updates:
        if pending is not None:
            joined = (
                join(pending[1], update, MAX_MERGED_CHARACTERS) if pending[0] == session else None
            )
            if joined is not None:
                pending = session, joined
                continue
            yield pending
        pending = session, update
    if pending is not None:
        yield pending


def join(first: Any, second: Any, limit: int) -> Any:
    """Return one chunk for two of the same message or terminal, up to `limit`; else None."""
    if type(first) is not type(second):
        return None
    match _tag(first):
        case "agent_message_chunk" | "agent_thought_chunk":
            first_content, second_content = first.content, second.content
            if (
                first.message_id != second.message_id
                or not _tag(first_content) == _tag(second_content) == "text"
            ):
                return None
            if len(first_content.text) + len(second_content.text) > limit:
                return None
            return structs.replace(
                first,
                content=type(first_content)(text=first_content.text + second_content.text),
                meta=None,
            )
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
