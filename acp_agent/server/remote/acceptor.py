"""Accept sockets, and detect which version of HTTP each uses."""

from __future__ import annotations

import asyncio

from acp_agent.server.remote.endpoint import Endpoint
from acp_agent.server.remote.http1 import Http1
from acp_agent.server.remote.http_messages import PREFACE
from acp_agent.server.socket_slots import SocketSlot, SocketSlots


class SocketAcceptor:
    """Accepts sockets, up to a limit."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.slots = SocketSlots(endpoint.limits.sockets)

    def protocol(self) -> asyncio.Protocol:
        """Return the protocol that reads the first bytes of an accepted socket."""
        return _VersionDetector(self)


class _VersionDetector(asyncio.Protocol):
    """Reads enough to tell HTTP/2 from HTTP/1.1, unless TLS negotiated it (ALPN)."""

    def __init__(self, acceptor: SocketAcceptor) -> None:
        self._acceptor = acceptor
        self._transport: asyncio.Transport | None = None
        self._slot: SocketSlot | None = None
        self._received = b""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Handle an accepted socket."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._slot = self._acceptor.slots.acquire(transport.abort)
        if self._slot is None:
            transport.abort()
            return
        tune(transport)
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() == "h2":
            self._hand_over(http2=True)
            return
        head = self._acceptor.endpoint.limits.head
        self._timer = asyncio.get_running_loop().call_later(head, transport.abort)

    def data_received(self, data: bytes) -> None:
        """Compare the first bytes with the preface of HTTP/2."""
        self._received += data
        if self._received.startswith(PREFACE):
            self._hand_over(http2=True)
        elif not PREFACE.startswith(self._received):
            self._hand_over(http2=False)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Handle a client that disconnected before it sent a request."""
        if self._timer is not None:
            self._timer.cancel()
        if self._slot is not None:
            self._slot.release()

    def _hand_over(self, *, http2: bool) -> None:
        assert self._transport is not None
        assert self._slot is not None
        if self._timer is not None:
            self._timer.cancel()
        protocol: asyncio.Protocol
        if http2:
            from acp_agent.server.remote.http2 import Http2  # noqa: PLC0415 - where it is spoken

            protocol = Http2(self._acceptor.endpoint, self._slot)
        else:
            protocol = Http1(self._acceptor.endpoint, self._slot)
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        if self._received:
            protocol.data_received(self._received)


def tune(transport: asyncio.Transport) -> None:
    """Make the system detect a peer that disappeared without closing the socket."""
    import socket  # noqa: PLC0415 - asyncio has it

    sock = transport.get_extra_info("socket")
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000)
