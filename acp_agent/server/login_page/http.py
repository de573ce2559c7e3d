"""HTTP/1.1 as the login page needs it: one request and one answer on each connection."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

import h11
from msgspec import Struct

from acp_agent.models.providers import Provider
from acp_agent.server.login_page.html import PageText, render, style_hash

HEAD_BYTES = 16_384
AWAY_SECONDS = 1.0  # what is left of a refused request may take
AWAY_BYTES = 1 << 20  # of it, at most
_PIECE = 65_536
BODY_BYTES = 32_768  # the longest key has 8,192 characters, each of which may take three as a form


class Request(Struct, frozen=True, kw_only=True):
    """A request as it arrived; the names of the headers are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


class Reply(Struct, frozen=True, kw_only=True):
    """A page, its status, and headers of its own. `ends` where the login is done with it."""

    status: int
    text: PageText
    headers: Mapping[str, str] = {}
    ends: Provider | None = None


class RefusedRequestError(Exception):
    """A request that no page of ours has sent, or no browser; `status` is what it is answered."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


async def read_request(protocol: h11.Connection, reader: asyncio.StreamReader) -> Request:
    """One request.

    Raises:
        RefusedRequestError: its body is too long.
        h11.RemoteProtocolError: it is no HTTP, or its head is too long.
        OSError: the visitor left.
    """
    head: h11.Request | None = None
    body = bytearray()
    while True:
        event = protocol.next_event()
        if event is h11.NEED_DATA:
            protocol.receive_data(await reader.read(HEAD_BYTES))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > BODY_BYTES:
                raise RefusedRequestError(413)
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            break
        else:
            raise ConnectionResetError
    return Request(
        method=head.method.decode("latin-1"),
        target=head.target.decode("latin-1"),
        headers={name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers},
        body=bytes(body),
    )


async def send_reply(protocol: h11.Connection, writer: asyncio.StreamWriter, reply: Reply) -> None:
    """Answer, wait until it is sent, and say that nothing follows."""
    body = render(reply.text).encode()
    headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Length": str(len(body)),
        "Content-Language": reply.text.language,
        "Connection": "close",
        "Cache-Control": "no-store",
        "Content-Security-Policy": (
            f"default-src 'none'; style-src 'sha256-{style_hash()}'; form-action 'self'; "
            "frame-ancestors 'none'; base-uri 'none'"
        ),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        # Not `no-referrer`: a browser would then send the form with the origin `null`.
        "Referrer-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        **reply.headers,
    }
    if protocol.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
        return
    head = h11.Response(status_code=reply.status, headers=list(headers.items()))
    for event in (head, h11.Data(data=body), h11.EndOfMessage()):
        writer.write(protocol.send(event) or b"")
    await writer.drain()
    writer.write_eof()


async def read_away(reader: asyncio.StreamReader) -> None:
    """Read what is left of a request that was answered before its end, for a while.

    A socket closed with something unread is reset, and the answer lost with it (RFC 9112,
    section 9.6).
    """
    left = AWAY_BYTES
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(AWAY_SECONDS):
            while left > 0 and (piece := await reader.read(_PIECE)):
                left -= len(piece)
