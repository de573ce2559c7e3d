"""A call's arguments, as the model wrote them, on their way to a client."""

from __future__ import annotations

from typing import Any

import msgspec

from acp_agent.events import Usage

# Levels of what a model wrote. Parsers of JSON give up at some depth, serde_json at 128.
DEEPEST = 64


def raw_input(arguments: str) -> Any:
    """A call's arguments as JSON values, or as they are where they are no JSON.

    So are those that nest deeper than `DEEPEST`: a client that cannot read one line loses all.
    """
    try:
        decoded = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {"arguments": arguments}
    brackets = arguments.count("{") + arguments.count("[")  # so many levels at most
    deep = brackets > DEEPEST and _nests(decoded, DEEPEST)
    return {"arguments": arguments} if deep else decoded


def _nests(value: object, levels: int) -> bool:
    """Whether a JSON value nests deeper than so many levels."""
    if not isinstance(value, dict | list):
        return False
    items = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_nests(item, levels - 1) for item in items)


def token_counts(usage: Usage) -> dict[str, Any]:
    """The fields of the protocol's `Usage`, of which each version has a type of its own.

    The schema calls the total the sum of all types of tokens, so no token may be of two types: what
    was read from a cache or written to it is not counted as input as well. Only the thoughts are
    part of another number, the output, as every provider bills them. What is zero is left out: it
    may be that the provider does not count it apart.

    Source: Agent Client Protocol v1 and v2 (unstable), Usage; the RFD "End-Turn Token Usage".
    """
    counts = {
        "total_tokens": usage.input + usage.output,
        "input_tokens": max(0, usage.input - usage.cache_read - usage.cache_write),
        "output_tokens": usage.output,
    }
    parts = {
        "thought_tokens": usage.reasoning,
        "cached_read_tokens": usage.cache_read,
        "cached_write_tokens": usage.cache_write,
    }
    return counts | {name: count for name, count in parts.items() if count}


def format_timestamp(milliseconds: int) -> str:
    """A time in milliseconds since 1970 (UTC) as ISO 8601 with its zone, which is always `Z`."""
    from datetime import UTC, datetime  # noqa: PLC0415 - for lists only

    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
