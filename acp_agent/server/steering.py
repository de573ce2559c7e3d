"""How a client of version 1 says that words steer the turn that runs, or must not.

`_meta.steering` and `_session/steering` are what other agents advertise and answer as well;
`_meta["acp-agent"].whileRunning` of a prompt is our own. All are in docs/extensions.md.
"""

from __future__ import annotations

from typing import Any, Final

from acp_agent.errors import InvalidInputError
from protocol.jsonrpc.method import Method
from protocol.v1.sessions import PromptRequest

STEERING: Final[Method[PromptRequest, dict[str, Any]]] = Method(
    "_session/steering", PromptRequest, dict
)


def steers(meta: dict[str, Any] | None) -> bool | None:
    """Whether a prompt may steer, by its `_meta`: false to wait for the turn's end.

    Raises:
        InvalidInputError: it says something that there is not.
    """
    match _marker(meta, "acp-agent", "whileRunning"):
        case None | "steer":
            return None
        case "queue":
            return False
        case _:
            raise InvalidInputError(
                "_meta.acp-agent.whileRunning: must be 'steer' or 'queue'",
                field="_meta.acp-agent.whileRunning",
            )


def check_steering(meta: dict[str, Any] | None) -> None:
    """Whether the marker of a `_session/steering` says something that there is.

    Other agents begin a turn where none runs, unless asked not to. Ours never does: in version 1 a
    turn is what a prompt's response ends, so words that come too late are for `session/prompt`.

    Raises:
        InvalidInputError: it does not.
    """
    if _marker(meta, "steering", "idleBehavior") not in (None, "promptRequired"):
        raise InvalidInputError(
            "_meta.steering.idleBehavior: must be 'promptRequired' or absent",
            field="_meta.steering.idleBehavior",
        )


def _marker(meta: dict[str, Any] | None, owner: str, name: str) -> object:
    """What a marker says; None where it is absent, or what it is in is none of it."""
    markers = (meta or {}).get(owner)
    return markers.get(name) if isinstance(markers, dict) else None
