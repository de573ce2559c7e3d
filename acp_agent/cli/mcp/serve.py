"""`acp-agent mcp serve`: the agent as an MCP server, on stdin and stdout or over HTTP."""

from __future__ import annotations

import argparse
import asyncio
import logging

from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import ToolAnnotations

from acp_agent import __version__
from acp_agent.cli.mcp.agent_tools import AgentTools
from acp_agent.cli.serving.local_http import (
    TokenRequired,
    access_token,
    local_listener,
    serve_local,
)


def serve(options: argparse.Namespace) -> int:
    """Serve MCP clients until the end of input or a signal; return the exit status.

    Raises:
        InvalidInputError: the port or the token is invalid.
    """
    folders = [folder.resolve() for folder in options.folder or [options.cwd]]
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it logs what clients send
    token, new_token = access_token()
    server = build(AgentTools(folders, options.model))
    if options.http is None:
        asyncio.run(server.run_stdio_async())
        return 0
    return asyncio.run(_serve_http(server, options.http, token, new_token=new_token))


def build(tools: AgentTools) -> MCPServer:
    """Return the server with its tools."""
    server = MCPServer("acp-agent", title="acp-agent", version=__version__, log_level="CRITICAL")
    changes = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    server.add_tool(tools.run_prompt, annotations=changes)
    for tool in (tools.list_sessions, tools.read_session):
        server.add_tool(tool, annotations=reads)
    return server


async def _serve_http(server: MCPServer, port: int, token: str, *, new_token: str | None) -> int:
    listener = local_listener(port, "--http")
    port = listener.getsockname()[1]
    names = [f"{name}:{port}" for name in ("127.0.0.1", "localhost")]
    app = server.streamable_http_app(
        transport_security=TransportSecuritySettings(
            allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
        )
    )
    await serve_local(TokenRequired(app, token), listener, "/mcp", new_token=new_token)
    return 0
