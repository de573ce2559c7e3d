"""A new socket: which version of HTTP it speaks."""

from __future__ import annotations

import asyncio

from acp_agent.server.open_sockets import OpenSocket, OpenSockets
from acp_agent.server.remote.endpoint import Endpoint
from acp_agent.server.remote.frame_lengths import PREFACE
from acp_agent.server.remote.http1 import Http1


class Door:
    """Lets sockets in, so many at the same time and no more.

    Args:
        endpoint: what answers their requests.

    Attributes:
        open_sockets: those that are open.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.open_sockets = OpenSockets(endpoint.limits.sockets)

    def protocol(self) -> asyncio.Protocol:
        """What reads the first bytes of a socket that was accepted."""
        return _Front(self)


class _Front(asyncio.Protocol):
    """Reads as much as tells HTTP/2 from HTTP/1.1, unless TLS agreed on it (ALPN)."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._transport: asyncio.Transport | None = None
        self._open_socket: OpenSocket | None = None
        self._first = b""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A socket was accepted."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._open_socket = self._door.open_sockets.enter(transport.abort)
        if self._open_socket is None:
            transport.abort()
            return
        tune(transport)
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() == "h2":
            self._hand_over(http2=True)
            return
        head = self._door.endpoint.limits.head
        self._timer = asyncio.get_running_loop().call_later(head, transport.abort)

    def data_received(self, data: bytes) -> None:
        """Compare the first bytes."""
        self._first += data
        if self._first.startswith(PREFACE):
            self._hand_over(http2=True)
        elif not PREFACE.startswith(self._first):
            self._hand_over(http2=False)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """The client is gone before it said anything."""
        if self._timer is not None:
            self._timer.cancel()
        if self._open_socket is not None:
            self._open_socket.leave()

    def _hand_over(self, *, http2: bool) -> None:
        assert self._transport is not None
        assert self._open_socket is not None
        if self._timer is not None:
            self._timer.cancel()
        protocol: asyncio.Protocol
        if http2:
            from acp_agent.server.remote.http2 import Http2  # noqa: PLC0415 - where it is spoken

            protocol = Http2(self._door.endpoint, self._open_socket)
        else:
            protocol = Http1(self._door.endpoint, self._open_socket)
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        if self._first:
            protocol.data_received(self._first)


def tune(transport: asyncio.Transport) -> None:
    """Let the system notice a peer that vanished without a goodbye."""
    import socket  # noqa: PLC0415 - asyncio has it

    sock = transport.get_extra_info("socket")
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000)
