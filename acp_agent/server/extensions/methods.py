"""Our own methods by name, and how `initialize` tells of them.

This is loaded with every connection, so their types are not: the handlers bring them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from protocol.jsonrpc.method import Method

if TYPE_CHECKING:
    from acp_agent.server.core import Core
    from acp_agent.server.handshake import Answer
    from protocol.jsonrpc.call import Call

Json = dict[str, Any]

EXPORT: Final[Method[Json, Json]] = Method("_acp-agent/session/export", dict, dict)

# In both versions; steering, which version 2 has by itself, is in `acp_agent.server.steering`.
EXTENSION_METHODS: Final[dict[str, Method[Any, Any]]] = {EXPORT.name: EXPORT}


def extension_answers(core: Core) -> dict[str, Answer]:
    """What answers the methods, by their names."""

    async def export(params: Json, call: Call) -> object:
        del call
        from acp_agent.server.extensions.export import export_session  # noqa: PLC0415 - rarely used

        return await export_session(core, params)

    return {EXPORT.name: export}
