"""The address to listen on, and what may be listened on how."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

from acp_agent.config.loopback import is_loopback
from acp_agent.errors import InvalidInputError

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
        raise InvalidInputError(f"--listen: write an IPv6 address in brackets, as {_EXAMPLE}")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise InvalidInputError(f"--listen: expected HOST:PORT, such as {_EXAMPLE}; got {text!r}")
    if host != "localhost":
        try:
            ipaddress.ip_address(host)
        except ValueError:
            raise InvalidInputError(
                f"--listen: {host!r} is no IP address, and no other name than localhost is looked "
                f"up; expected something such as {_EXAMPLE}"
            ) from None
    return Address(host, int(port))
