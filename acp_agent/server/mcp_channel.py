"""MCP over ACP on a connection: requests to servers that the client runs, and their messages.

Source: Agent Client Protocol, unstable, `mcp/message`; the same in both versions, so the messages
are plain JSON here, and nothing is imported for clients that have no such servers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from protocol.jsonrpc.connection import Connection
from protocol.jsonrpc.messages import INTERNAL_ERROR, RpcError
from protocol.jsonrpc.methods import Method

if TYPE_CHECKING:
    from acp_agent.extensions.mcp.config import Deliver

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
