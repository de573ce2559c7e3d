"""Values in the shape that both versions of the protocol have."""

from __future__ import annotations

from typing import Any

import msgspec

from acp_agent.content import escaped, escaped_values
from acp_agent.events import Usage

# Levels of nesting in arguments. JSON parsers stop at some depth, serde_json at 128.
MAX_DEPTH = 64


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
    deep = brackets > MAX_DEPTH and _nests(decoded, MAX_DEPTH)
    return {"arguments": escaped(arguments)} if deep else escaped_values(decoded)


def _nests(value: object, levels: int) -> bool:
    """Return whether a JSON value nests deeper than `levels`."""
    if not isinstance(value, dict | list):
        return False
    items = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_nests(item, levels - 1) for item in items)


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
    parts = {
        "thought_tokens": usage.reasoning,
        "cached_read_tokens": usage.cache_read,
        "cached_write_tokens": usage.cache_write,
    }
    return counts | {name: count for name, count in parts.items() if count}


def format_timestamp(milliseconds: int) -> str:
    """Return a time in milliseconds since 1970 (UTC) in ISO 8601, in the zone `Z`."""
    from datetime import UTC, datetime  # noqa: PLC0415 - for lists only

    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
