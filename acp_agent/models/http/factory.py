"""Choose the HTTP client for a provider's address."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from urllib.parse import urlsplit

from acp_agent import __version__
from acp_agent.config.network_addresses import is_loopback
from acp_agent.models.http.client import Client


def make_client(base_url: str, headers: Mapping[str, str]) -> Client:
    """Return a client for the provider at `base_url`. Blocks: call it in a thread.

    Args:
        headers: the headers of each request; their names are case-insensitive.

    Raises:
        ConfigError: an environment variable names certificates that cannot be used.
    """
    all_headers = {
        "accept": "application/json",
        "content-type": "application/json",
        "user-agent": f"acp-agent/{__version__}",
        **{name.lower(): value for name, value in headers.items()},
    }
    if _is_direct(base_url):
        from acp_agent.models.http.direct import DirectClient  # noqa: PLC0415 - one of two

        return DirectClient(base_url, all_headers)
    from acp_agent.models.http.proxied import ProxiedClient  # noqa: PLC0415 - imports httpx2

    return ProxiedClient(base_url, all_headers)


def _is_direct(base_url: str) -> bool:
    """Return whether `DirectClient` can be used: no proxy, no user in the address."""
    try:
        components = urlsplit(base_url)
        host, _ = components.hostname or "", components.port
    except ValueError:
        return False  # the request will report the error
    if components.scheme not in {"http", "https"} or not host or components.username is not None:
        return False
    if not base_url.isascii() or " " in base_url:
        return False  # httpx2 encodes it
    if is_loopback(host):
        return True
    # On other systems than Linux, the system settings may name a proxy too.
    if sys.platform != "linux" or any(name.lower().endswith("_proxy") for name in os.environ):
        from urllib.request import getproxies  # noqa: PLC0415 - takes time to import

        return not set(getproxies()) - {"no"}
    return True
