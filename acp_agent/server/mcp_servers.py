"""The MCP servers that a client names with a session, or runs itself (MCP over ACP).

Source of MCP over ACP: Agent Client Protocol, unstable, `mcp/message`; the same in both versions.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from acp_agent.errors import InvalidInputError
from acp_agent.extensions.mcp.checks import make_http_server, make_program_server
from acp_agent.extensions.mcp.config import Channel, ChannelServer, ServerConfig
from protocol.jsonrpc.connection import Connection
from protocol.jsonrpc.messages import INTERNAL_ERROR, RpcError
from protocol.jsonrpc.methods import Method

if TYPE_CHECKING:
    from acp_agent.extensions.mcp.config import Deliver

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


Json = dict[str, Any]

MCP_MESSAGE: Final[Method[Json, Json]] = Method("mcp/message", dict, dict)
# A client that asks the agent something, as MCP servers do, must not take `{}` for the answer.
MCP_NOTIFICATION: Final[Method[Json, None]] = Method("mcp/message", dict, only_notification=True)


class McpChannel:
    """Access to the client's own servers (`acp_agent.extensions.mcp.config.Channel`)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._listeners: dict[str, list[Deliver]] = {}

    async def request(
        self, server_id: str, request_id: str, method: str, params: Json | None
    ) -> Json:
        """Ask a server; see the protocol that this implements.

        An error of the client is reported as one of the server, which could not be reached.
        """
        message: Json = {"serverId": server_id, "requestId": request_id, "method": method}
        if params is not None:
            message["params"] = params
        try:
            return await self._connection.request(MCP_MESSAGE, message)
        except RpcError as error:
            return {"error": {"code": INTERNAL_ERROR, "message": error.message}}

    def listen(self, server_id: str, deliver: Deliver) -> Callable[[], None]:
        """Hand a server's notifications to `deliver`, among others where several listen."""
        listeners = self._listeners.setdefault(server_id, [])
        listeners.append(deliver)

        def stop() -> None:
            listeners.remove(deliver)
            if not listeners:
                self._listeners.pop(server_id, None)

        return stop

    def receive_notification(self, params: Json) -> None:
        """Take in a notification; one that nobody waits for, or of a wrong shape, is dropped."""
        server_id, request_id = params.get("serverId"), params.get("requestId")
        method, message_params = params.get("method"), params.get("params")
        if not (isinstance(server_id, str) and isinstance(request_id, str)):
            return
        if not isinstance(method, str) or not (
            message_params is None or isinstance(message_params, dict)
        ):
            return
        for deliver in tuple(self._listeners.get(server_id, ())):
            deliver(request_id, method, message_params)
