"""Settings of a listening agent: the address and the limits for clients."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

from acp_agent.config.network_addresses import is_loopback
from acp_agent.errors import InvalidInputError
from protocol.transports.base import LIMIT

_EXAMPLE = "127.0.0.1:8765, localhost:8765, [::1]:8765"


class Address(NamedTuple):
    """The address to listen on; port 0 means a free one."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Return whether it can only be reached from this computer."""
        return is_loopback(self.host)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_address(text: str) -> Address:
    """Return the address in `HOST:PORT`, `[IPV6]:PORT` or `localhost:PORT`.

    Raises:
        InvalidInputError: it is not an address.
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
    """Limits that prevent clients from exhausting the process; in seconds and bytes.

    Attributes:
        connections: concurrent connections, including WebSockets.
        sessions: open sessions per connection.
        head: time for the head of a request, including TLS.
        keep_alive: time that a socket without a request stays open.
        handshake: time for a new connection to send `initialize`.
        idle: time that a connection without open streams and requests stays open.
        ping: time without data until a socket is pinged; event streams send a comment.
        stall: time that a client may leave the data of a stream unread.
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
