"""The names of our own methods, for every connection.

Their types and handlers are imported when one of them is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from protocol.jsonrpc.methods import Method

if TYPE_CHECKING:
    from acp_agent.server.handshake import Answer
    from acp_agent.server.operations import Operations
    from protocol.jsonrpc.call import Call

Json = dict[str, Any]

EXPORT: Final[Method[Json, Json]] = Method("_acp-agent/session/export", dict, dict)

LIST_CHECKPOINTS: Final[Method[Json, Json]] = Method("_acp-agent/checkpoints/list", dict, dict)
RESTORE: Final[Method[Json, Json]] = Method("_acp-agent/checkpoints/restore", dict, dict)

# In both versions; `acp_agent.server.v1.handlers` has the method for steering.
EXTENSION_METHODS: Final[dict[str, Method[Any, Any]]] = {
    method.name: method for method in (EXPORT, LIST_CHECKPOINTS, RESTORE)
}


def extension_answers(operations: Operations) -> dict[str, Answer]:
    """Return the handlers of the methods by name; their code is imported when one is called."""

    async def answer(params: Json, call: Call) -> object:
        from acp_agent.server.extensions.handlers import HANDLERS  # noqa: PLC0415 - rarely used

        return await HANDLERS[call.method](operations, params)

    return dict.fromkeys(EXTENSION_METHODS, answer)
