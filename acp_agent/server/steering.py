"""How a client of version 1 says that words must steer the turn that runs.

`_meta.steering` and `_session/steering` are what other agents advertise and answer as well. They
are in docs/extensions.md.
"""

from __future__ import annotations

from typing import Any, Final

from acp_agent.errors import InvalidInputError
from acp_agent.server.while_running import marker
from protocol.jsonrpc.method import Method
from protocol.v1.sessions import PromptRequest

STEERING: Final[Method[PromptRequest, dict[str, Any]]] = Method(
    "_session/steering", PromptRequest, dict
)


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
