"""HTTP transports of MCP: streamable HTTP, and the older one with server-sent events.

Source: Model Context Protocol, Transports. The package implements them; this module adds limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from acp_agent.config.certificates import tls_verification
from acp_agent.config.loopback import no_proxy_mounts
from acp_agent.extensions.mcp.config import HttpServer, SavedLogins

BODY_LIMIT = 16_000_000  # bytes of one answer, or of one event of a stream
_CONNECT_SECONDS = 30.0
_SILENCE_SECONDS = 86_400.0  # a stream may be silent; every request has its own limit


class HttpStatus:
    """The status of the last refused request, which the package does not expose."""

    def __init__(self) -> None:
        self._status: int | None = None

    def record(self, status: int) -> None:
        """Record the status of a response."""
        self._status = status if status >= 400 else None

    @property
    def unknown_session(self) -> bool:
        """Return whether the server lost the session, so that a new one is needed (Transports)."""
        return self._status == 404

    def ending(self) -> str:
        """Describe the last error; empty if there was none."""
        match self._status:
            case None:
                return ""
            case 401 | 403:
                return (
                    f"it wants other credentials (HTTP {self._status}): check its headers, or log "
                    "in with acp-agent mcp login"
                )
            case _:
                return f"it answered with HTTP {self._status}"


@asynccontextmanager
async def http_transport(
    server: HttpServer,
    status: HttpStatus,
    logins: SavedLogins | None = None,
) -> AsyncIterator[TransportStreams]:
    """Connect to a server over HTTP. Redirects are followed only within its origin.

    Args:
        server: the configuration of the server.
        status: records the status of every response.
        logins: the user's logins.

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
        return httpx2.AsyncClient(
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
            status.record(response.status_code)
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
