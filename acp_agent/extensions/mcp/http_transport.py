"""HTTP transports of MCP: streamable HTTP, and the older one with server-sent events.

Source: Model Context Protocol, Transports. The package implements them; this module adds limits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
from mcp import MCPError
from mcp.client._transport import TransportStreams
from mcp.client.sse import sse_client
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp_types import METHOD_NOT_FOUND

from acp_agent.config.certificates import tls_verification
from acp_agent.config.network_addresses import no_proxy_mounts
from acp_agent.extensions.mcp.config import HttpServer, SavedLogins
from acp_agent.extensions.mcp.errors import missing_scope

BODY_LIMIT = 16_000_000  # bytes of one answer, or of one event of a stream
_CONNECT_SECONDS = 30.0
_MAX_DELAY = 30.0  # seconds that a server may ask for before a request is repeated
_MAX_REPETITIONS = 3
_SILENCE_SECONDS = 86_400.0  # a stream may be silent; every request has its own limit

# What the package says of a refused request whose answer has no message of the server.
_PACKAGE_MESSAGES = frozenset(
    {"Server returned an error response", "Session terminated", "Not Found"}
)


class HttpStatus:
    """The status of the last refused request, which the package does not expose."""

    def __init__(self) -> None:
        self._status: int | None = None
        self._in_session = False
        self._scope = ""

    def record(self, response: httpx2.Response) -> None:
        """Record the status of a response."""
        self._status = response.status_code if response.status_code >= 400 else None
        self._in_session = MCP_SESSION_ID in response.request.headers
        self._scope = missing_scope(response)

    @property
    def may_be_older(self) -> bool:
        """Return whether a server of the older transport would refuse a request like this."""
        return self._status in {400, 404, 405}

    @property
    def wants_login(self) -> bool:
        """Return whether the server refused our credentials."""
        return self._status in {401, 403}

    def is_session_unknown(self, error: MCPError) -> bool:
        """Return whether the server no longer knows the session, so that a new one is needed.

        The specification has status 404 for this; servers that follow the examples of the
        TypeScript SDK answer 400 and name the session in the message.
        """
        if not self._in_session or error.code == METHOD_NOT_FOUND:
            return False
        return self._status == 404 or (
            self._status == 400 and "session" in error.error.message.lower()
        )

    def ending(self, message: str = "") -> str:
        """Describe the last error, also with the server's `message`; empty if there was none."""
        match self._status:
            case None:
                return ""
            case 401 | 403 if self._scope:
                return (
                    f"it wants the permission {self._scope} (HTTP {self._status}): log in again "
                    "with acp-agent mcp login"
                )
            case 401 | 403:
                return (
                    f"it wants other credentials (HTTP {self._status}): check its headers, or log "
                    "in with acp-agent mcp login"
                )
            case _ if message and message not in _PACKAGE_MESSAGES:
                return f"{message} (HTTP {self._status})"
            case _:
                return f"it answered with HTTP {self._status}"


@asynccontextmanager
async def http_transport(
    server: HttpServer,
    status: HttpStatus,
    logins: SavedLogins | None,
    on_broken: Callable[[], None],
) -> AsyncIterator[TransportStreams]:
    """Connect to a server over HTTP. Redirects are followed only within its origin.

    Args:
        status: records the status of every response.
        on_broken: called when no request can be sent any more.

    Raises:
        ConfigError: the logins cannot be read.
    """
    timeout = httpx2.Timeout(_CONNECT_SECONDS, read=_SILENCE_SECONDS)
    trust = await asyncio.to_thread(tls_verification, server.url)

    authorization = None
    if logins is not None and await asyncio.to_thread(logins.path.exists):
        from acp_agent.extensions.mcp.oauth.logins import LoginStore  # noqa: PLC0415 - where there are any
        from acp_agent.extensions.mcp.oauth.provider import saved_authorization  # noqa: PLC0415 - so

        store = LoginStore(logins.path)
        authorization = await asyncio.to_thread(saved_authorization, server, store, logins.learn)

    def client(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = timeout,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return _PatientClient(
            headers=headers,
            timeout=timeout,
            auth=auth or authorization,
            mounts=no_proxy_mounts(server.url),
            verify=trust,
            event_hooks={"response": [limit_body]},
        )

    async def limit_body(response: httpx2.Response) -> None:
        # With streamable HTTP, servers often refuse the GET stream for their own messages.
        if server.sse or response.request.method == "POST":
            status.record(response)
            if server.sse and response.status_code >= 400:
                on_broken()  # the package would wait for an answer to the refused request
        kind = response.headers.get("content-type", "").lower()
        if not kind.startswith("text/event-stream") and isinstance(
            response.stream, httpx2.AsyncByteStream
        ):
            response.stream = _BoundedStream(response.stream)

    if server.sse:
        async with sse_client(
            server.url,
            headers=dict(server.headers),
            timeout=_CONNECT_SECONDS,
            sse_read_timeout=_SILENCE_SECONDS,
            httpx_client_factory=client,
        ) as streams:
            yield streams
        return
    async with (
        client(dict(server.headers)) as http,
        streamable_http_client(
            server.url, http_client=http, max_sse_event_size=BODY_LIMIT
        ) as streams,
    ):
        yield streams


class _PatientClient(httpx2.AsyncClient):
    """Repeats a request that a busy server refuses, after the delay that it asks for."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request."""
        response = await super().send(request, **options)
        for _ in range(_MAX_REPETITIONS):
            delay = _retry_after(response) if request.method == "POST" else None
            if delay is None or delay > _MAX_DELAY:
                break
            await response.aclose()
            await asyncio.sleep(delay)
            response = await super().send(request, **options)
        return response


def _retry_after(response: httpx2.Response) -> float | None:
    """Return the delay in seconds that a busy server asks for (RFC 9110, section 10.2.3)."""
    header = response.headers.get("retry-after", "").strip()
    if response.status_code not in {429, 503} or not header:
        return None
    try:
        if header.isdecimal():
            return float(header)
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


class _BoundedStream(httpx2.AsyncByteStream):
    """A body that raises an error if it is longer than the limit."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for piece in self._stream:
            count += len(piece)
            if count > BODY_LIMIT:
                raise httpx2.StreamError(f"the answer is longer than {BODY_LIMIT // 1_000_000} MB")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
