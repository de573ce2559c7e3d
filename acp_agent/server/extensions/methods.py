"""Our own methods by name, and how `initialize` tells of them.

This is loaded with every connection, so their types are not: the handlers bring them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from protocol.jsonrpc.method import Method

if TYPE_CHECKING:
    from acp_agent.server.core import Core
    from acp_agent.server.handshake import Answer
    from acp_agent.server.operations import Operations
    from protocol.jsonrpc.call import Call

Json = dict[str, Any]

EXPORT: Final[Method[Json, Json]] = Method("_acp-agent/session/export", dict, dict)

LIST_CHECKPOINTS: Final[Method[Json, Json]] = Method("_acp-agent/checkpoints/list", dict, dict)
RESTORE: Final[Method[Json, Json]] = Method("_acp-agent/checkpoints/restore", dict, dict)

# In both versions; steering, which version 2 has by itself, is in `acp_agent.server.steering`.
EXTENSION_METHODS: Final[dict[str, Method[Any, Any]]] = {
    method.name: method for method in (EXPORT, LIST_CHECKPOINTS, RESTORE)
}


def extension_answers(core: Core, operations: Operations) -> dict[str, Answer]:
    """What answers the methods, by their names."""

    async def export(params: Json, call: Call) -> object:
        del call
        from acp_agent.server.extensions.export import export_session  # noqa: PLC0415 - rarely used

        return await export_session(core, params)

    async def list_checkpoints(params: Json, call: Call) -> object:
        del call
        from acp_agent.server.extensions import checkpoints  # noqa: PLC0415 - rarely used

        return await checkpoints.list_points(operations, params)

    async def restore(params: Json, call: Call) -> object:
        del call
        from acp_agent.server.extensions import checkpoints  # noqa: PLC0415 - rarely used

        return await checkpoints.restore(operations, params)

    return {EXPORT.name: export, LIST_CHECKPOINTS.name: list_checkpoints, RESTORE.name: restore}
