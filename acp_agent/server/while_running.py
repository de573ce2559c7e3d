"""What a client says of a prompt that comes while a turn runs: `_meta["acp-agent"].whileRunning`.

It is our own, and in docs/extensions.md.
"""

from __future__ import annotations

from typing import Any, Literal

from acp_agent.errors import InvalidInputError

WhileRunning = Literal["steer", "queue"]


def while_running(meta: dict[str, Any] | None) -> WhileRunning | None:
    """What becomes of a prompt while a turn runs, by its `_meta`; None where that says nothing.

    Raises:
        InvalidInputError: it says something that there is not.
    """
    match marker(meta, "acp-agent", "whileRunning"):
        case None:
            return None
        case "steer" | "queue" as chosen:
            return chosen
        case _:
            raise InvalidInputError(
                "_meta.acp-agent.whileRunning: must be 'steer' or 'queue'",
                field="_meta.acp-agent.whileRunning",
            )


def marker(meta: dict[str, Any] | None, owner: str, name: str) -> object:
    """What a marker says; None where it is absent, or what it is in is none of it."""
    markers = (meta or {}).get(owner)
    return markers.get(name) if isinstance(markers, dict) else None
