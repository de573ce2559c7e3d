"""How a client says from which message a session is forked (docs/extensions.md)."""

from __future__ import annotations

from typing import Any

from acp_agent.errors import InvalidInputError
from acp_agent.ids import MessageId
from acp_agent.session.fork_point import ForkPoint

_KEYS = ("before", "through")


def fork_point(meta: dict[str, Any] | None) -> ForkPoint | None:
    """The point that the `_meta` of a session/fork names; None: the fork has everything.

    Raises:
        InvalidInputError: it says something that there is not.
    """
    ours = (meta or {}).get("acp-agent")
    if not isinstance(ours, dict):
        return None
    given = [key for key in _KEYS if ours.get(key) is not None]
    if not given:
        return None
    if len(given) > 1:
        raise InvalidInputError(
            "_meta.acp-agent: give before or through, not both", field="_meta.acp-agent"
        )
    (key,) = given
    message = ours[key]
    if not isinstance(message, str):
        raise InvalidInputError(
            f"_meta.acp-agent.{key}: must be the id of a message", field=f"_meta.acp-agent.{key}"
        )
    return ForkPoint(message=MessageId(message), inclusive=key == "through")
