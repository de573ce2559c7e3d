"""Our own fields in the `_meta` of a request (docs/extensions.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from acp_agent.errors import InvalidInputError
from acp_agent.ids import MessageId

if TYPE_CHECKING:
    from acp_agent.session.history.fork import ForkPoint

WhileRunning = Literal["steer", "queue"]
_KEYS = ("before", "through")


def while_running(meta: dict[str, Any] | None) -> WhileRunning | None:
    """Return what to do with a prompt while a turn runs; None: the `_meta` does not say.

    Raises:
        InvalidInputError: the value is unknown.
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
    """Return the value of a marker; None if it or its object is missing."""
    markers = (meta or {}).get(owner)
    return markers.get(name) if isinstance(markers, dict) else None


def check_steering(meta: dict[str, Any] | None) -> None:
    """Check the marker of a `_session/steering`.

    Other agents begin a turn if none runs, unless asked not to. Ours never does: in version 1 the
    response to a `session/prompt` ends the turn, so a late prompt must be sent that way.

    Raises:
        InvalidInputError: the value is unknown.
    """
    if marker(meta, "steering", "idleBehavior") not in (None, "promptRequired"):
        raise InvalidInputError(
            "_meta.steering.idleBehavior: must be 'promptRequired' or absent",
            field="_meta.steering.idleBehavior",
        )


def fork_point(meta: dict[str, Any] | None) -> ForkPoint | None:
    """Return the point at which a session/fork is cut; None: the fork has everything.

    Raises:
        InvalidInputError: the point is malformed.
    """
    fields = (meta or {}).get("acp-agent")
    if not isinstance(fields, dict):
        return None
    keys = [key for key in _KEYS if fields.get(key) is not None]
    if not keys:
        return None
    if len(keys) > 1:
        raise InvalidInputError(
            "_meta.acp-agent: give before or through, not both", field="_meta.acp-agent"
        )
    (key,) = keys
    message = fields[key]
    if not isinstance(message, str):
        raise InvalidInputError(
            f"_meta.acp-agent.{key}: must be the id of a message", field=f"_meta.acp-agent.{key}"
        )
    from acp_agent.session.history.fork import ForkPoint  # noqa: PLC0415 - rarely used

    return ForkPoint(message=MessageId(message), inclusive=key == "through")
