"""Return the host of a URL in the form that rules and remembered grants use."""

from __future__ import annotations

from functools import cache
from urllib.parse import urlsplit

from acp_agent.platform.data_tables import read_table


def url_host(url: str) -> str:
    """Return the host of a URL in ASCII, with its port unless that is the scheme's default.

    Empty if the URL has none. A name in another script is returned in its encoded form (RFC 5890),
    so that it cannot be confused with a similar one.
    """
    try:
        components = urlsplit(url)
        host = (components.hostname or "").encode("idna").decode("ascii").lower().rstrip(".")
        port = components.port
    except (ValueError, UnicodeError):
        return ""
    if not host or not host.isprintable() or set(host) & set(" `/\\@"):
        return ""
    default = {"http": 80, "https": 443}.get(components.scheme)
    host_text = f"[{host}]" if ":" in host else host
    return host_text if port in {None, default} else f"{host_text}:{port}"


def is_documentation(url: str) -> bool:
    """Return whether a URL belongs to a known documentation host.

    Full mode reads pages of such hosts without a question: only the publisher sees the URL. The
    hosts are listed in `documentation_hosts.toml`.
    """
    return url_host(url) in _documentation_hosts()


@cache
def _documentation_hosts() -> frozenset[str]:
    table = read_table(__package__, "documentation_hosts.toml", dict[str, frozenset[str]])
    return table["hosts"]
