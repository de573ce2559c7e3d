"""The MCP servers that a version 2 client names, as the sessions know them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from acp_agent.errors import InvalidInputError
from acp_agent.extensions.mcp.config import Channel, ChannelServer, ServerConfig
from acp_agent.server import mcp_servers as parts
from protocol.v2 import types as acp


def server_configs(servers: Sequence[acp.McpServer], channel: Channel) -> tuple[ServerConfig, ...]:
    """The servers in their order.

    Args:
        servers: what the client named (Session Setup, MCP Servers).
        channel: the way to those that the client runs itself.

    Raises:
        InvalidInputError: one of them cannot be used; the message names it.
    """
    parts.check_count(len(servers))
    return tuple(
        _config(f"mcpServers[{index}]", server, channel) for index, server in enumerate(servers)
    )


def _config(place: str, server: acp.McpServer, channel: Channel) -> ServerConfig:
    match server:
        case acp.McpServerHttp():
            headers = [(header.name, header.value) for header in server.headers]
            return parts.web(place, server.name, server.url, headers)
        case acp.McpServerStdio():
            if not Path(server.command).is_absolute():
                raise InvalidInputError(
                    f"{place}.command: expected an absolute path, got {server.command!r}",
                    field=f"{place}.command",
                )
            env = [(variable.name, variable.value) for variable in server.env]
            return parts.program(place, server.name, server.command, server.args, env)
        case acp.McpServerAcp():
            return ChannelServer(name=server.name, server_id=server.server_id, channel=channel)
        case _:
            raise InvalidInputError(
                f"{place}.type: this transport is not supported; use stdio, http or acp",
                field=f"{place}.type",
            )
