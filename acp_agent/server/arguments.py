"""A call's arguments, as the model wrote them, on their way to a client."""

from __future__ import annotations

from typing import Any

import msgspec

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
