"""The connections of remote clients: their start, lifetime and end."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from typing import Protocol

from acp_agent.server.client_connection import ClientConnection
from acp_agent.server.remote.settings import Limits
from protocol.transports.base import Transport
from protocol.transports.streamable_http import StreamableHttpTransport
from protocol.transports.websocket import GOING_AWAY, NORMAL, POLICY, WebSocketTransport

_log = logging.getLogger(__name__)

_UNUSED_SECONDS = 2.0  # for an initialized client to open its stream


class MakeLink(Protocol):
    """Creates the handler of a new connection."""

    def __call__(self, transport: Transport, *, local: bool) -> ClientConnection:
        """Return the handler for a client; `local` means that it is on this computer."""


class FullError(Exception):
    """The limit of connections is reached."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"there are already {limit} connections; close one, or start the agent "
            "with a higher --max-connections"
        )


class RemoteConnection:
    """A client's connection (`Acp-Connection-Id`).

    Attributes:
        id: its ID, which cannot be guessed.
        closing: the code and the reason with which a WebSocket is closed.
    """

    def __init__(
        self, transport: WebSocketTransport | StreamableHttpTransport, link: ClientConnection
    ):
        self.id = secrets.token_urlsafe(18)
        self.transport = transport
        self.link = link
        self.closing: tuple[int, str] = (NORMAL, "")


class Connections:
    """The open connections.

    Args:
        make_link: creates the handler of a new connection.
        limits: the limits of their number and of idle time.
        binary: whether clients may send binary frames.
    """

    def __init__(self, make_link: MakeLink, limits: Limits, *, binary: bool = False) -> None:
        self._make_link = make_link
        self._limits = limits
        self._binary = binary
        self._connections: dict[str, RemoteConnection] = {}
        self._tasks: set[asyncio.Task[None]] = set()  # of connections that are open or ending

    def open_websocket(self, on_end: Callable[[], None], *, local: bool) -> RemoteConnection:
        """Open a connection over a WebSocket; `local` means that the client is on this computer.

        Raises:
            FullError: there are too many.
        """
        self._evict_unused()
        limits = self._limits
        transport = WebSocketTransport(
            limit=limits.message, ping=limits.ping, binary=self._binary, on_end=on_end
        )
        return self._open(transport, local=local)

    def open_http(self, *, local: bool) -> tuple[RemoteConnection, StreamableHttpTransport]:
        """Open a connection over streamable HTTP; `local` means a client on this computer.

        Raises:
            FullError: there are too many.
        """
        self._evict_unused()
        transport = StreamableHttpTransport()
        return self._open(transport, local=local), transport

    def find(self, connection_id: str) -> tuple[RemoteConnection, StreamableHttpTransport] | None:
        """Return the connection over streamable HTTP with this ID, or None."""
        connection = self._connections.get(connection_id)
        if connection is None or not isinstance(connection.transport, StreamableHttpTransport):
            return None
        return connection, connection.transport

    def end(self, connection: RemoteConnection, code: int = NORMAL, reason: str = "") -> None:
        """End a connection; its sessions stay open for a client that reconnects."""
        connection.closing = (code, reason)
        self._connections.pop(connection.id, None)
        connection.transport.close()

    def stop_draining(self) -> None:
        """Stop waiting for clients that do not read, so that no turn is delayed."""
        for connection in self._connections.values():
            connection.link.connection.stop_draining()

    async def close(self) -> None:
        """End all connections, and wait for them. Sessions are not left open for reconnects."""
        for connection in list(self._connections.values()):
            connection.transport.on_read_end = None
            self.end(connection, GOING_AWAY, "the agent is shutting down")
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def watch(self) -> None:
        """End idle connections; runs until cancelled."""
        limits = self._limits
        pause = min(limits.idle / 4, limits.ping, limits.stall / 4)
        while True:
            await asyncio.sleep(pause)
            now = asyncio.get_running_loop().time()
            for connection in list(self._connections.values()):
                transport = connection.transport
                if not isinstance(transport, StreamableHttpTransport):
                    continue
                transport.keep_alive(now, limits.stall)
                if transport.streams:
                    transport.last_active = now
                elif now - transport.last_active > limits.idle:
                    _log.info("closed a connection that had no open stream")
                    self.end(connection)

    def _evict_unused(self) -> None:
        """End the connection that has been unused for longest, if there are too many.

        A client that disconnects from streamable HTTP leaves its connection behind. Old connections
        must not lock it out until they time out.

        Raises:
            FullError: all are in use.
        """
        if len(self._connections) < self._limits.connections:
            return
        now = asyncio.get_running_loop().time()
        unused = [
            (connection.transport.last_active, connection)
            for connection in self._connections.values()
            if isinstance(connection.transport, StreamableHttpTransport)
            and not connection.transport.streams
        ]
        last_active, oldest = min(unused, key=lambda pair: pair[0], default=(now, None))
        if oldest is None or now - last_active < _UNUSED_SECONDS:
            _log.warning(
                "refused a client: --max-connections %d is reached", len(self._connections)
            )
            raise FullError(self._limits.connections)
        self.end(oldest)

    def _open(
        self, transport: WebSocketTransport | StreamableHttpTransport, *, local: bool
    ) -> RemoteConnection:
        connection = RemoteConnection(transport, self._make_link(transport, local=local))
        transport.on_read_end = connection.link.release_sessions
        self._connections[connection.id] = connection
        transport_name = "a WebSocket" if isinstance(transport, WebSocketTransport) else "HTTP"
        _log.info(
            "a client connected over %s; there are %d", transport_name, len(self._connections)
        )
        task = asyncio.create_task(self._serve(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return connection

    async def _serve(self, connection: RemoteConnection) -> None:
        transport = connection.transport
        deadline = asyncio.get_running_loop().call_later(
            self._limits.handshake, self._check_handshake, connection
        )
        try:
            await connection.link.run()
        except Exception:  # noqa: BLE001 - other clients must not suffer
            _log.exception("a connection failed")
        finally:
            deadline.cancel()
            self._connections.pop(connection.id, None)
            _log.info("a client disconnected; there are %d", len(self._connections))
            if isinstance(transport, WebSocketTransport):
                await transport.close_socket(*connection.closing)
            else:
                transport.end()

    def _check_handshake(self, connection: RemoteConnection) -> None:
        if not connection.link.handshake.agreed:
            self.end(connection, POLICY, "initialize did not arrive in time")
