"""Who may speak to the server: the token, the Host and the Origin of a request.

A page in the user's browser can send requests to any address of the user's computer. It cannot
choose the `Origin` (RFC 6454), and where it reached us by a name of its own that resolves to us
(DNS rebinding), it cannot hide that name in the `Host` (RFC 9110, section 7.2) either.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection
from urllib.parse import parse_qs, urlsplit

from acp_agent.config.loopback import is_loopback
from acp_agent.server.remote.http_messages import Reply, Request, refusal
from acp_agent.server.remote.settings import Address

SUBPROTOCOL = "acp"
TOKEN_SUBPROTOCOL = "acp.bearer."  # noqa: S105 - what comes before the token
TOKEN_PARAMETER = "access_token"  # noqa: S105 - RFC 6750, section 2.3

# What proxies add: RFC 7239, RFC 9110 (section 7.6.3), and what was usual before.
_FORWARDED = frozenset({"forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"})


class AccessPolicy:
    """Looks at the head of every request, before anything of its body is read.

    Args:
        address: what is listened on.
        token: what a client has to show; None: nothing.
        hosts: further names by which we may be reached, without ports.
        origins: the origins whose pages may use us, as browsers write them.
        proxied: whether clients come through a proxy, whatever it says of them.
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
        self._own = address.host.lower()
        self._token = None if token is None else token.encode()
        self._hosts = {host.lower().strip("[]") for host in hosts}
        self._origins = {origin.lower() for origin in origins}

    def place(self, request: Request) -> Reply | None:
        """A refusal where the request was led here from elsewhere; None where it was not.

        Raises:
            BadRequestError: a header came twice.
        """
        host = _host_name(request.header("host") or "")
        if not (host == self._own or is_loopback(host) or host in self._hosts):
            return refusal(
                421, "this server does not answer to that Host; --allow-host NAME lets it"
            )
        origin = request.header("origin")
        if origin is not None and not self._knows(origin, request.header("host") or ""):
            return refusal(403, "pages of this Origin may not use it; --allow-origin lets them")
        return None

    def person(self, request: Request, *, upgrade: bool) -> Reply | None:
        """A refusal where the token is missing or wrong; None where it is right.

        Browsers let a page set no header on a WebSocket, so there the token may also come as a
        subprotocol or in the query.

        Raises:
            BadRequestError: a header came twice.
        """
        if self._token is None:
            return None
        shown = _bearer(request.header("authorization"))
        if upgrade and shown is None:
            shown = _offered(request) or _queried(request)
        if shown is not None and hmac.compare_digest(shown.encode(), self._token):
            return None
        reason = "send the token as 'Authorization: Bearer …'"
        if shown is not None:
            reason = "this is not the token"
        return refusal(401, reason, ("www-authenticate", 'Bearer realm="acp-agent"'))

    def is_local(self, request: Request) -> bool:
        """Whether who sent a request is on this computer, as far as can be told.

        One who comes through a proxy may be anywhere; the end of a tunnel looks like this computer.
        """
        if self._proxied or not is_loopback(request.peer.removeprefix("::ffff:")):
            return False
        by_own_name = is_loopback(_host_name(request.header("host") or ""))
        return by_own_name and not _FORWARDED & request.headers.keys()

    def _knows(self, origin: str, host: str) -> bool:
        if origin.lower() in self._origins:
            return True
        try:
            return urlsplit(origin).netloc.lower() == host.lower() != ""
        except ValueError:
            return False


def subprotocols(request: Request) -> list[str]:
    """What a client offers to speak on a WebSocket."""
    offered = ",".join(request.headers.get("sec-websocket-protocol", ()))
    return [name.strip() for name in offered.split(",") if name.strip()]


def _host_name(host: str) -> str:
    """The name in a Host header, without its port and brackets, in lower case."""
    name = host.lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0]


def _bearer(value: str | None) -> str | None:
    scheme, _, token = (value or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _offered(request: Request) -> str | None:
    for name in subprotocols(request):
        if name.startswith(TOKEN_SUBPROTOCOL):
            return name[len(TOKEN_SUBPROTOCOL) :]
    return None


def _queried(request: Request) -> str | None:
    try:
        values = parse_qs(request.query, max_num_fields=20).get(TOKEN_PARAMETER, [])
    except ValueError:
        return None
    return values[0] if len(values) == 1 else None
