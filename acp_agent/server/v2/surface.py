"""Version 2 of the protocol on one connection: every method and what answers it."""

from __future__ import annotations

from acp_agent.server.link import ClientLink
from acp_agent.server.mcp_channel import MCP_NOTIFICATION
from acp_agent.server.v2.editor import Editor
from acp_agent.server.v2.handlers import Handlers
from acp_agent.server.v2.merging import merge_updates
from protocol.jsonrpc.surface import Surface
from protocol.v2.methods import AGENT_METHODS


def surface_for(link: ClientLink) -> Surface:
    """What a client that speaks version 2 is answered with."""
    editor = Editor(link)
    handlers = Handlers(link, editor, link.operations(editor))
    return Surface(
        {**AGENT_METHODS, MCP_NOTIFICATION.name: MCP_NOTIFICATION},
        handlers.table(),
        map_error=link.map_error,
        merge=merge_updates,
        batches=True,
    )
