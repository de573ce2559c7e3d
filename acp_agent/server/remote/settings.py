"""Settings of a listening agent: the address and the limits for clients."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

from acp_agent.config.loopback import is_loopback
from acp_agent.errors import InvalidInputError
from protocol.transports.base import LIMIT

_EXAMPLE = "127.0.0.1:8765, localhost:8765, [::1]:8765"


class Address(NamedTuple):
    """Where to listen; port 0 is a free one."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether only this computer reaches it."""
        return is_loopback(self.host)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_address(text: str) -> Address:
    """The address in `HOST:PORT`, `[IPV6]:PORT` or `localhost:PORT`.

    Raises:
        InvalidInputError: it is none.
    """
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise InvalidInputError("--listen: put an IPv6 address in brackets, such as [::1]:8765")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise InvalidInputError(f"--listen: expected HOST:PORT, such as {_EXAMPLE}; got {text!r}")
    if host != "localhost":
        try:
            ipaddress.ip_address(host)
        except ValueError:
            raise InvalidInputError(
                f"--listen: {host!r} is neither localhost nor an IP address; expected HOST:PORT, "
                f"such as {_EXAMPLE}"
            ) from None
    return Address(host, int(port))


class Limits(NamedTuple):
    """Bounds, so that no client can take the process down; times in seconds, sizes in bytes.

    Attributes:
        message: a message's size.
        connections: connections that exist at the same time, WebSockets among them.
        sessions: sessions that one connection may have open.
        sockets: sockets that are open at the same time.
        head: how long the head of a request may take, TLS included.
        body: how long its body may take.
        keep_alive: how long a socket without a request stays open.
        handshake: how long a new connection may take to `initialize`.
        idle: how long a connection without an open stream and without requests lives.
        ping: how long a socket may be silent before it is pinged; event streams get a comment.
        stall: how long a client may read nothing of a stream that has something for it.
    """

    message: int = LIMIT
    connections: int = 256
    sessions: int = 64
    sockets: int = 512
    head: float = 10.0
    body: float = 120.0
    keep_alive: float = 75.0
    handshake: float = 30.0
    idle: float = 120.0
    ping: float = 20.0
    stall: float = 60.0
