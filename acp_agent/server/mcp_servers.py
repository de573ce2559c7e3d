"""The MCP servers that a client names with a session (Session Setup, MCP Servers)."""

from __future__ import annotations

from pathlib import Path

from acp_agent.errors import InvalidInputError
from acp_agent.extensions.mcp.checks import make_http_server, make_program_server
from acp_agent.extensions.mcp.config import Channel, ChannelServer, ServerConfig

MAX_SERVERS = 50  # of one session


def check_count(count: int) -> None:
    """Refuse more servers than any session needs. Raises InvalidInputError."""
    if count > MAX_SERVERS:
        raise InvalidInputError(
            f"mcpServers: {count} servers are too many; {MAX_SERVERS} are taken", field="mcpServers"
        )


def server_v1(field: str, server: object, channel: Channel) -> ServerConfig:
    """Convert a server of version 1."""
    from protocol.v1 import types as v1  # noqa: PLC0415 - as spoken

    match server:
        case v1.McpServerHttp() | v1.McpServerSse():
            return make_http_server(
                field,
                server.name,
                server.url,
                [(header.name, header.value) for header in server.headers],
                sse=isinstance(server, v1.McpServerSse),
            )
        case v1.McpServerStdio():
            env = [(variable.name, variable.value) for variable in server.env]
            return make_program_server(field, server.name, server.command, server.args, env)
        case v1.McpServerAcp():
            return ChannelServer(name=server.name, server_id=server.server_id, channel=channel)
        case _:
            raise AssertionError(f"{field}: no such variant")


def server_v2(field: str, server: object, channel: Channel) -> ServerConfig:
    """Convert a server of version 2. Raises InvalidInputError."""
    from protocol.v2 import types as v2  # noqa: PLC0415 - as spoken

    match server:
        case v2.McpServerHttp():
            headers = [(header.name, header.value) for header in server.headers]
            return make_http_server(field, server.name, server.url, headers)
        case v2.McpServerStdio():
            if not Path(server.command).is_absolute():
                raise InvalidInputError(
                    f"{field}.command: expected an absolute path, got {server.command!r}",
                    field=f"{field}.command",
                )
            env = [(variable.name, variable.value) for variable in server.env]
            return make_program_server(field, server.name, server.command, server.args, env)
        case v2.McpServerAcp():
            return ChannelServer(name=server.name, server_id=server.server_id, channel=channel)
        case _:
            raise InvalidInputError(
                f"{field}.type: this transport is not supported; use stdio, http or acp",
                field=f"{field}.type",
            )
