"""MCP over ACP: requests to a server that the client runs, over the protocol's connection.

Source: Agent Client Protocol, `mcp/message`. The connection carries requests to the server, and
notifications from it that belong to an open request. There are no notifications to the server:
cancelling a request cancels the request on the connection.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from pydantic import ValidationError

from acp_agent.content import JsonObject
from acp_agent.extensions.mcp.config import ChannelServer

_QUEUE = 64  # messages that may wait to be sent
_MAX_RECEIVED = 1_000  # received messages that may wait to be read

_log = logging.getLogger(__name__)


@asynccontextmanager
async def acp_transport(server: ChannelServer) -> AsyncIterator[TransportStreams]:
    """Connect to a server through the client's connection."""
    incoming_send, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](
        _MAX_RECEIVED
    )
    outgoing, outgoing_receive = anyio.create_memory_object_stream[SessionMessage](_QUEUE)
    carrier = _Carrier(server, incoming_send)
    stop = server.channel.listen(server.server_id, carrier.deliver)
    sending = asyncio.create_task(carrier.send_all(outgoing_receive))
    try:
        yield incoming, outgoing
    finally:
        stop()
        await carrier.close(sending)
        for stream in (incoming_send, incoming, outgoing, outgoing_receive):
            stream.close()


class _Carrier:
    """Sends each MCP request as a request on the connection, and returns its outcome."""

    def __init__(
        self, server: ChannelServer, incoming: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        self._server = server
        self._incoming = incoming
        self._open: dict[str, asyncio.Task[None]] = {}
        self._prefix = uuid.uuid4().hex[:12]

    def _name(self, request_id: RequestId | None) -> str:
        """Return a request's id on the connection, which is shared with other sessions.

        String ids are unchanged: the package uses them for subscriptions, the server repeats them
        in its notifications, and they are unique in the process.
        """
        return request_id if isinstance(request_id, str) else f"{self._prefix}-{request_id}"

    async def send_all(self, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async for item in outgoing:
            message = item.message
            if isinstance(message, JSONRPCRequest):
                self._open[self._name(message.id)] = asyncio.create_task(self._ask(message))
            elif (
                isinstance(message, JSONRPCNotification)
                and message.method == "notifications/cancelled"
                and (
                    task := self._open.get(
                        self._name(cancelled_request_id_from_params(message.params))
                    )
                )
            ):
                task.cancel()

    def deliver(self, request_id: str, method: str, params: JsonObject | None) -> None:
        """Accept a notification; drop it if its request is not open."""
        if request_id not in self._open:
            return
        try:
            message = JSONRPCNotification(jsonrpc="2.0", method=method, params=params)
            self._incoming.send_nowait(SessionMessage(message))
        except (ValidationError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            return
        except anyio.WouldBlock:
            _log.warning("a server of the client's sends faster than it is read; a message is lost")

    async def close(self, sending: asyncio.Task[None]) -> None:
        tasks = [sending, *self._open.values()]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    async def _ask(self, request: JSONRPCRequest) -> None:
        name = self._name(request.id)
        try:
            outcome = await self._server.channel.request(
                self._server.server_id, name, request.method, request.params
            )
            answer = _answer(request, outcome)
        except ConnectionError:
            self._incoming.close()  # the client has disconnected, and so has its server
            return
        finally:
            self._open.pop(name, None)
        try:
            await self._incoming.send(SessionMessage(answer))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return


def _answer(request: JSONRPCRequest, outcome: JsonObject) -> JSONRPCResponse | JSONRPCError:
    """Return the outcome as an MCP message; `result` takes precedence over `error`."""
    try:
        if "result" in outcome:
            return JSONRPCResponse(jsonrpc="2.0", id=request.id, result=outcome["result"] or {})
        error = ErrorData.model_validate(outcome.get("error"))
    except ValidationError:
        error = ErrorData(code=INTERNAL_ERROR, message="the client's answer has the wrong shape")
    return JSONRPCError(jsonrpc="2.0", id=request.id, error=error)
