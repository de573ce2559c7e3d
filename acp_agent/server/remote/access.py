"""Access control: checks of the token, the Host and the Origin.

A page in the user's browser can send requests to any address of the user's computer. It cannot
choose the `Origin` (RFC 6454). If it reached us by a domain name that resolves to us (DNS
rebinding), it cannot hide that name in the `Host` (RFC 9110, section 7.2) either.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection
from urllib.parse import parse_qs, urlsplit

from acp_agent.config.network_addresses import is_loopback
from acp_agent.server.remote.http_messages import Reply, Request, refusal
from acp_agent.server.remote.settings import Address

SUBPROTOCOL = "acp"
TOKEN_SUBPROTOCOL = "acp.bearer."  # noqa: S105 - what comes before the token
TOKEN_PARAMETER = "access_token"  # noqa: S105 - RFC 6750, section 2.3

# Headers that proxies add: RFC 7239, RFC 9110 (section 7.6.3), and older conventions.
_FORWARDED = frozenset({"forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"})


class AccessPolicy:
    """Checks the head of every request before its body is read.

    Args:
        address: the address that the server listens on.
        token: the token that clients must send; None for no token.
        hosts: further names of this server, without ports.
        origins: the origins whose pages may send requests, as browsers write them.
        proxied: whether clients connect through a proxy.
    """

    def __init__(
        self,
        address: Address,
        *,
        token: str | None,
        hosts: Collection[str] = (),
        origins: Collection[str] = (),
        proxied: bool = False,
    ) -> None:
        self._proxied = proxied
        self._listen_host = address.host.lower()
        self._token = None if token is None else token.encode()
        self._hosts = {host.lower().strip("[]") for host in hosts}
        self._origins = {origin.lower() for origin in origins}

    def check_host_and_origin(self, request: Request) -> Reply | None:
        """Return a refusal unless the Host and the Origin are allowed. Raises BadRequestError."""
        host = _host_name(request.header("host") or "")
        if not (host == self._listen_host or is_loopback(host) or host in self._hosts):
            return refusal(421, "this Host is not allowed; start the agent with --allow-host NAME")
        origin = request.header("origin")
        if origin is not None and not self._allows_origin(origin, request.header("host") or ""):
            return refusal(403, "this Origin is not allowed; start the agent with --allow-origin")
        return None

    def check_token(self, request: Request, *, upgrade: bool) -> Reply | None:
        """Return a refusal unless the token is right.

        Pages in a browser cannot set headers for a WebSocket, so there the token may also be a
        subprotocol or in the query.

        Raises:
            BadRequestError: a header is repeated.
        """
        if self._token is None:
            return None
        token = _bearer(request.header("authorization"))
        if upgrade and token is None:
            token = _subprotocol_token(request) or _query_token(request)
        if token is not None and hmac.compare_digest(token.encode(), self._token):
            return None
        reason = "send the token as 'Authorization: Bearer …'"
        if token is not None:
            reason = "wrong token"
        return refusal(401, reason, ("www-authenticate", 'Bearer realm="acp-agent"'))

    def is_local(self, request: Request) -> bool:
        """Return whether the client is on this computer, as far as this can be determined.

        A client behind a proxy may be anywhere; the end of a tunnel looks like this computer.
        """
        if self._proxied or not is_loopback(request.peer.removeprefix("::ffff:")):
            return False
        by_loopback_name = is_loopback(_host_name(request.header("host") or ""))
        return by_loopback_name and not _FORWARDED & request.headers.keys()

    def _allows_origin(self, origin: str, host: str) -> bool:
        if origin.lower() in self._origins:
            return True
        try:
            return urlsplit(origin).netloc.lower() == host.lower() != ""
        except ValueError:
            return False


def subprotocols(request: Request) -> list[str]:
    """Return the subprotocols that a client offers for a WebSocket."""
    offered = ",".join(request.headers.get("sec-websocket-protocol", ()))
    return [name.strip() for name in offered.split(",") if name.strip()]


def _host_name(host: str) -> str:
    """Return the name in a Host header, without port and brackets, in lower case."""
    name = host.lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0]


def _bearer(value: str | None) -> str | None:
    scheme, _, token = (value or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _subprotocol_token(request: Request) -> str | None:
    for name in subprotocols(request):
        if name.startswith(TOKEN_SUBPROTOCOL):
            return name[len(TOKEN_SUBPROTOCOL) :]
    return None


def _query_token(request: Request) -> str | None:
    try:
        values = parse_qs(request.query, max_num_fields=20).get(TOKEN_PARAMETER, [])
    except ValueError:
        return None
    return values[0] if len(values) == 1 else None
