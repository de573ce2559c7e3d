"""Version 1 of the protocol on one connection: every method and what answers it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acp_agent.server.extensions.methods import EXTENSION_METHODS
from acp_agent.server.lazy_table import UNSTABLE_METHODS, LazyTable
from acp_agent.server.link import ClientLink
from acp_agent.server.mcp_channel import MCP_NOTIFICATION
from acp_agent.server.steering import STEERING
from acp_agent.server.v1.editor import Editor
from acp_agent.server.v1.handlers import Handlers
from acp_agent.server.v1.merging import merge_updates
from protocol.jsonrpc.call import Handler
from protocol.jsonrpc.method import Method
from protocol.jsonrpc.surface import Surface
from protocol.v1.methods import AGENT_METHODS


def surface_for(link: ClientLink) -> Surface:
    """What a client that speaks version 1 is answered with."""
    editor = Editor(link)
    operations = link.operations(editor)
    handlers = Handlers(link, editor, operations)

    def unstable_handlers() -> Mapping[str, Handler]:
        from acp_agent.server.lifecycle import Lifecycle  # noqa: PLC0415 - few clients use it
        from acp_agent.server.v1.unstable import UnstableHandlers  # noqa: PLC0415 - likewise

        lifecycle = Lifecycle(link.core, editor, operations)
        return UnstableHandlers(link, handlers, operations, lifecycle).table()

    methods = {
        **AGENT_METHODS,
        **EXTENSION_METHODS,
        STEERING.name: STEERING,
        MCP_NOTIFICATION.name: MCP_NOTIFICATION,
    }
    return Surface(
        LazyTable(methods, UNSTABLE_METHODS, _unstable_methods),
        LazyTable(handlers.table(), UNSTABLE_METHODS, unstable_handlers),
        map_error=link.map_error,
        merge=merge_updates,
    )


def _unstable_methods() -> Mapping[str, Method[Any, Any]]:
    from protocol.v1.unstable_methods import UNSTABLE_AGENT_METHODS  # noqa: PLC0415 - as above

    return UNSTABLE_AGENT_METHODS
