"""Decide which addresses are loopback or public (IANA's special-purpose registries, RFC 6890)."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from acp_agent.errors import WorkspaceError

if TYPE_CHECKING:  # a start that needs no address does without its code
    from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]  # returns the addresses of a host and port
_REFUSED = (
    "0.0.0.0/8",  # this network
    "10.0.0.0/8",
    "100.64.0.0/10",  # shared by carriers; also Alibaba Cloud's metadata
    "127.0.0.0/8",
    "168.63.129.16/32",  # Azure's own services on every virtual machine
    "169.254.0.0/16",  # link-local: metadata of most clouds
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",  # multicast
    "240.0.0.0/4",  # reserved, and broadcast
    "2001::/23",  # protocol assignments, among them Teredo, which carries IPv4
    "2001:db8::/32",
    "2002::/16",  # 6to4, which carries IPv4
    "3fff::/20",
)
_GLOBAL_V6 = "2000::/3"  # all unicast addresses assigned so far
_NAT64 = "64:ff9b::/96"  # RFC 6052: the last 32 bits are the IPv4 address


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address belongs to the public network."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address in _network(_NAT64):  # the only way to IPv4 hosts on an IPv6-only network
            return is_public(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
        if address.scope_id is not None or address not in _network(_GLOBAL_V6):
            return False
    return address.is_global and not any(address in _network(refused) for refused in _REFUSED)


@cache
def _network(text: str) -> IPv4Network | IPv6Network:
    return ipaddress.ip_network(text)


def literal_address(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a URL's host is, or None for a name.

    Raises:
        WorkspaceError: an IPv4 address in an unusual form (a single number, octal, hexadecimal,
            fewer parts), which resolvers read as an address (URL standard, "ends in a number").
    """
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        last = host.rpartition(".")[2]
        if last.isdecimal() or last.lower().startswith("0x"):
            raise WorkspaceError(
                f"{host} is an address in an unusual form",
                advice="write it as four decimal numbers",
            ) from None
        return None


def is_loopback(host: str) -> bool:
    """Return whether a host, a name or an address without brackets, is a loopback host.

    Names below `localhost` are (RFC 6761, section 6.3).
    """
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    if not (name[-1:].isdigit() or ":" in name):  # no address
        return False
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def no_proxy_mounts(url: str) -> Mapping[str, None]:
    """Return the `mounts` of an HTTP client that disable proxies for a loopback address.

    Empty for any other address, so that HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY apply.
    """
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:  # an unclosed bracket: the request reports it
        return {}
    if not is_loopback(host):
        return {}
    return {f"all://[{host}]" if ":" in host else f"all://{host}": None}
