"""What a client says of a prompt that comes while a turn runs: `_meta["acp-agent"].whileRunning`.

It is our own, and in docs/extensions.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from acp_agent.errors import InvalidInputError
from acp_agent.ids import MessageId

if TYPE_CHECKING:
    from acp_agent.session.history.fork import ForkPoint

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


def check_steering(meta: dict[str, Any] | None) -> None:
    """Whether the marker of a `_session/steering` says something that there is.

    Other agents begin a turn where none runs, unless asked not to. Ours never does: in version 1 a
    turn is what a prompt's response ends, so words that come too late are for `session/prompt`.

    Raises:
        InvalidInputError: it does not.
    """
    if marker(meta, "steering", "idleBehavior") not in (None, "promptRequired"):
        raise InvalidInputError(
            "_meta.steering.idleBehavior: must be 'promptRequired' or absent",
            field="_meta.steering.idleBehavior",
        )


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
    from acp_agent.session.history.fork import ForkPoint  # noqa: PLC0415 - rarely used

    return ForkPoint(message=MessageId(message), inclusive=key == "through")
