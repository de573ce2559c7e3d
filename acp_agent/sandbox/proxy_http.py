"""HTTP/1.1 for the filtering proxy: CONNECT tunnels, and plain requests with an absolute URL.

Each plain request gets a new connection, and its Host header is replaced by the host of its URL.
So a second request cannot reach another host behind the same server.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple
from urllib.parse import urlsplit

import h11

from acp_agent.errors import HostRefusedError
from acp_agent.sandbox.outbound import (
    CHUNK,
    IDLE_LIMIT,
    Outbound,
    Stream,
    exchange,
    restart_idle_timeout,
)

_REQUEST_LIMIT = 10.0  # seconds for a request's head
_HEAD_LIMIT = 65_536  # bytes
_HOP_BY_HOP = frozenset(
    b"connection keep-alive te trailer upgrade"
    b" proxy-connection proxy-authorization proxy-authenticate".split()
)
_Headers = list[tuple[bytes, bytes]]


async def serve_http(first: bytes, client: Stream, outbound: Outbound) -> None:
    """Serve one request; `first` holds the bytes already read.

    Raises:
        OSError: the client disconnected or timed out.
    """
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_LIMIT)
    connection.receive_data(first)
    try:
        async with asyncio.timeout(_REQUEST_LIMIT):
            request = await _next_event(connection, client.reader)
        if not isinstance(request, h11.Request):
            return
        target = _parse_target(request)
    except (h11.RemoteProtocolError, ValueError):
        _answer(client, 400, "the sandbox's proxy cannot read this request")
        return
    try:
        server = await outbound.open(target.host, target.port)
    except HostRefusedError as error:
        _answer(client, 403, error.shown, str(error))
        return
    except ConnectionError as error:
        _answer(client, 502, str(error))
        return
    try:
        if target.path is None:
            client.writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            server.writer.write(connection.trailing_data[0])
            await exchange(client, server)
        else:
            headers = [(b"Host", target.authority.encode()), *_end_to_end(request, b"host")]
            forwarded = h11.Request(method=request.method, target=target.path, headers=headers)
            await _forward(forwarded, connection, client, server)
    finally:
        server.writer.transport.abort()


class _Target(NamedTuple):
    host: str
    port: int
    authority: str  # host and port as written in the request
    path: str | None  # None for a tunnel


def _parse_target(request: h11.Request) -> _Target:
    """Return the target of a request. Raises ValueError if it is not a request for a proxy."""
    text = request.target.decode("ascii")
    is_tunnel = request.method == b"CONNECT"
    url = urlsplit(f"//{text}" if is_tunnel else text)
    if url.hostname is None or url.username is not None:
        raise ValueError(text)
    if is_tunnel:
        if url.port is None or url.netloc != text:
            raise ValueError(text)
        return _Target(url.hostname, url.port, url.netloc, None)
    if url.scheme != "http":
        raise ValueError(text)
    path = text[len("http://") + len(url.netloc) :].partition("#")[0]
    return _Target(url.hostname, url.port or 80, url.netloc, "/" + path.removeprefix("/"))


async def _forward(
    request: h11.Request, connection: h11.Connection, client: Stream, server: Stream
) -> None:
    """Forward a request, with the body that `connection` reads, and return the response."""
    upstream = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_LIMIT)
    server.writer.write(upstream.send(request) or b"")
    try:
        async with asyncio.timeout(IDLE_LIMIT) as limit:
            sending = asyncio.create_task(_pump(connection, client, upstream, server, limit))
            try:
                await _pump(upstream, server, connection, client, limit)
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
    except (OSError, h11.ProtocolError):
        if connection.our_state is h11.SEND_RESPONSE:
            _answer(client, 502, "the server did not answer as HTTP says")


async def _pump(
    source: h11.Connection,
    origin: Stream,
    target: h11.Connection,
    destination: Stream,
    limit: asyncio.Timeout,
) -> None:
    """Forward one message, or the rest of one."""
    event: h11.Event | None = None
    while not isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
        event = await _next_event(source, origin.reader)
        restart_idle_timeout(limit)
        forwarded = event
        if isinstance(event, h11.Response):
            forwarded = h11.Response(
                status_code=event.status_code,
                reason=event.reason,
                headers=_end_to_end(event),
            )
        elif isinstance(event, h11.EndOfMessage):
            forwarded = h11.EndOfMessage()
        destination.writer.write(target.send(forwarded) or b"")
        await destination.writer.drain()


async def _next_event(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Event:
    """Return the next event of a peer.

    Raises:
        OSError: the connection is lost.
        h11.RemoteProtocolError: the data is not HTTP.
    """
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(await reader.read(CHUNK))
    if isinstance(event, h11.Event):
        return event
    raise h11.RemoteProtocolError("a further request")  # h11.PAUSED


def _end_to_end(message: h11.Request | h11.Response, *without: bytes) -> _Headers:
    """Return the headers that are not hop-by-hop (RFC 9110, section 7.6.1)."""
    headers = message.headers.raw_items()
    connection_options = b",".join(
        value for name, value in headers if name.lower() == b"connection"
    )
    dropped = _HOP_BY_HOP.union(
        without, (name.strip().lower() for name in connection_options.split(b","))
    )
    return [
        (b"Connection", b"close"),
        *(pair for pair in headers if pair[0].lower() not in dropped),
    ]


def _answer(client: Stream, status: int, reason: str, body: str = "") -> None:
    """Send an error response. Its status line has the reason, since few clients show bodies."""
    text = f"{body or reason}\n".encode()
    head = (
        f"HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    )
    client.writer.write(head.encode("ascii", "replace") + text)
