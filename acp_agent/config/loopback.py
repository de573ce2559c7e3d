"""Loopback addresses, which bypass proxies: a proxy would resolve them to its own host."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Return whether a host, a name or an address without brackets, is a loopback host.

    Names below `localhost` are (RFC 6761, section 6.3).
    """
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
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
