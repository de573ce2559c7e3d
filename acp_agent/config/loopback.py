"""Loopback addresses, which never use a proxy: behind one they would mean the proxy's own host."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether a host, a name or an address without brackets, is this computer for itself alone.

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
    """The `mounts` of an HTTP client for one address: none of its requests there meets a proxy.

    Empty, so that HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY say it, where the address is not
    this computer's.
    """
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:  # half a bracket: the request says so
        return {}
    if not is_loopback(host):
        return {}
    return {f"all://[{host}]" if ":" in host else f"all://{host}": None}
