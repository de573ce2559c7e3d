"""HTTP/1.1 requests, and event streams in chunks."""

from __future__ import annotations

import asyncio
import http
from collections.abc import Callable
from typing import Final

import h11
from wsproto.utilities import generate_accept_token

from acp_agent.server.remote.endpoint import Endpoint
from acp_agent.server.remote.http_messages import (
    Headers,
    Reply,
    Request,
    parse_headers,
    peer_address,
    refusal,
)
from acp_agent.server.socket_slots import SocketSlot
from protocol.transports.buffered_writer import BufferedWriter

_HEAD_LIMIT: Final = 16 * 1024  # bytes of a request line and its headers
_DRAIN_TIMEOUT: Final = 2.0  # seconds in which further data of a refused client is discarded


class ChunkedStream:
    """A chunked body (RFC 9112, section 7.1); see `EventStream`."""

    def __init__(self, writer: BufferedWriter, connection: h11.Connection) -> None:
        self.on_idle: Callable[[], None] | None = None
        self.on_lost: Callable[[], None] | None = None
        self._writer = writer
        self._http = connection
        self._finished = False

    @property
    def waiting(self) -> bool:
        """Return whether output waits because the client reads too slowly."""
        return self._writer.waiting

    @property
    def queued(self) -> int:
        """Return the number of bytes that the system has not taken yet."""
        return self._writer.queued

    def write(self, data: bytes) -> None:
        """Send a chunk."""
        if not self._finished:
            self._writer.write(self._http.send(h11.Data(data=data)) or b"")

    def drained(self) -> bool:
        """Return whether a slow client has read anything since the last call."""
        return self._writer.drained()

    def end(self) -> None:
        """Send the last chunk and close the socket."""
        if not self._finished:
            self._finished = True
            self._writer.write(self._http.send(h11.EndOfMessage()) or b"")
            self._writer.end()

    def abort(self) -> None:
        """Close the socket immediately."""
        self._writer.abort()

    def lose(self) -> None:
        """Handle the loss of the socket."""
        self._finished = True
        if self.on_lost is not None:
            self.on_lost()


class Http1(asyncio.Protocol):
    """Reads requests from a socket and writes the responses."""

    def __init__(self, endpoint: Endpoint, slot: SocketSlot) -> None:
        self._endpoint = endpoint
        self._limits = endpoint.limits
        self._slot = slot
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_LIMIT)
        self._writer = BufferedWriter(on_idle=self._idle)
        self._transport: asyncio.Transport | None = None
        self._request: Request | None = None  # the one that is being read or answered
        self._body = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._stream: ChunkedStream | None = None
        self._finished = False  # whether no further request is read
        self._timer: asyncio.TimerHandle | None = None

    # -- asyncio callbacks ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take over the socket."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._writer.open(transport)
        self._endpoint.sockets.add(self)
        self._wait(self._limits.head)

    def data_received(self, data: bytes) -> None:
        """Read further data."""
        if self._finished or self._stream is not None:
            return
        self._http.receive_data(data)
        self._read()

    def eof_received(self) -> bool:
        """Close the socket: the client is gone, or waits with its side closed."""
        return False

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Handle the loss of the socket."""
        self._endpoint.sockets.discard(self)
        self._stop_waiting()
        if self._stream is not None:
            self._stream.lose()
        self._writer.lost()
        if self._task is not None:
            self._task.cancel()
        self._slot.release()

    def pause_writing(self) -> None:
        """Pause, because the system takes no more bytes."""
        self._writer.pause()

    def resume_writing(self) -> None:
        """Resume, because the system has taken everything."""
        self._writer.resume()

    # -- requests --------------------------------------------------------------------------------

    def _read(self) -> None:
        while not self._finished and self._task is None:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                reason = str(error).partition(": bytearray(")[0]  # without what the client sent
                self._refuse(refusal(error.error_status_hint, f"bad request: {reason}"))
                return
            if isinstance(event, h11.Request):
                self._on_head(event)
            elif isinstance(event, h11.Data):
                self._on_data(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                self._on_request_complete()
            else:
                return  # NEED_DATA, or PAUSED until the response is sent

    def _on_head(self, event: h11.Request) -> None:
        headers = parse_headers(list(event.headers))
        path, _, query = event.target.decode("ascii", "replace").partition("?")
        method, peer = event.method.decode("ascii"), peer_address(self._transport)
        request = Request(method, path, query, headers, "1.1", peer)
        self._request = request
        if sum(len(name) + len(value) + 4 for name, value in event.headers) > _HEAD_LIMIT:
            self._refuse(refusal(431, f"headers are longer than {_HEAD_LIMIT} bytes"))
            return
        if "content-length" in headers and "transfer-encoding" in headers:
            # RFC 9112, section 6.1: an attempt at request smuggling.
            self._refuse(refusal(400, "send either Content-Length or Transfer-Encoding, not both"))
            return
        if event.http_version > b"1.0" and _is_upgrade(request):  # RFC 9110, section 7.8
            self._upgrade(request)
            return
        reply = self._endpoint.screen(request)
        if reply is not None:
            self._refuse(reply)
            return
        self._slot.authorize()
        self._wait(self._limits.body)
        if self._http.they_are_waiting_for_100_continue:
            continue_response = h11.InformationalResponse(
                status_code=100, headers=[], reason=b"Continue"
            )
            self._send(continue_response)

    def _on_data(self, data: bytes) -> None:
        self._body += data
        if len(self._body) > self._limits.message:
            self._refuse(self._endpoint.too_large())

    def _on_request_complete(self) -> None:
        assert self._request is not None
        assert self._transport is not None
        body = bytes(self._body)
        self._body.clear()
        self._stop_waiting()
        self._transport.pause_reading()  # nothing but the end is expected, and a GET opens a stream
        self._task = asyncio.create_task(self._answer(self._request, body))

    async def _answer(self, request: Request, body: bytes) -> None:
        reply = await self._endpoint.answer(request, body, self._open_stream)
        self._task = None
        if self._transport is None or self._transport.is_closing():
            return
        self._transport.resume_reading()
        if reply is None:
            return
        self._reply(reply)
        try:
            self._http.start_next_cycle()
        except h11.LocalProtocolError:
            self._writer.end()
            return
        if self._endpoint.closing:
            self._writer.end()
            return
        self._request = None
        self._wait(self._limits.keep_alive)
        self._read()

    def _refuse(self, reply: Reply) -> None:
        """Answer immediately. Further data of the client must not be read as its next request."""
        done = self._http.their_state is h11.DONE
        self._finished = True
        self._body.clear()
        if self._http.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self._reply(reply.with_headers(("connection", "close")))
        if done:
            self._writer.end()
        else:  # closing now could discard the response before the client reads it
            self._writer.finish()
            self._wait(_DRAIN_TIMEOUT)

    def _reply(self, reply: Reply) -> None:
        length = ("content-length", str(len(reply.body)))
        self._send(_response(reply.status, (*reply.headers, length)))
        if reply.body and not (self._request is not None and self._request.method == "HEAD"):
            self._send(h11.Data(data=reply.body))
        self._send(h11.EndOfMessage())

    def _send(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            self._writer.write(data)

    def _idle(self) -> None:
        if self._stream is not None and self._stream.on_idle is not None:
            self._stream.on_idle()

    # -- event streams ---------------------------------------------------------------------------

    def _open_stream(self, headers: Headers) -> ChunkedStream:
        self._send(_response(200, (*headers, ("connection", "close"))))
        self._stream = ChunkedStream(self._writer, self._http)
        return self._stream

    # -- WebSocket -------------------------------------------------------------------------------

    def _upgrade(self, request: Request) -> None:
        reply = self._endpoint.screen(request, upgrade=True) or _not_websocket(request)
        if reply is not None:
            self._refuse(reply)
            return
        self._slot.authorize()
        upgraded = self._endpoint.upgrade(request, self._slot.release)
        if isinstance(upgraded, Reply):
            self._refuse(upgraded)
            return
        headers, websocket = upgraded
        key = request.headers["sec-websocket-key"][0].encode()
        accept = generate_accept_token(key).decode("ascii")
        fields = (
            ("upgrade", "websocket"),
            ("connection", "Upgrade"),
            ("sec-websocket-accept", accept),
            *headers,
        )
        self._send(
            h11.InformationalResponse(
                status_code=101,
                headers=[(name.encode(), value.encode()) for name, value in fields],
                reason=b"Switching Protocols",
            )
        )
        early_data, _ = self._http.trailing_data
        self._finished = True
        self._stop_waiting()
        self._writer.pass_on()
        self._endpoint.sockets.discard(self)
        assert self._transport is not None
        self._transport.set_protocol(websocket)
        websocket.connection_made(self._transport)
        if early_data:
            websocket.data_received(early_data)

    # -- timeouts --------------------------------------------------------------------------------

    def _wait(self, seconds: float) -> None:
        """Close the socket unless it makes progress in time."""
        self._stop_waiting()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._too_late)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_late(self) -> None:
        if self._request is not None and not self._finished:
            self._refuse(refusal(408, "the request was not complete in time"))
            return
        self._writer.end()

    def go_away(self) -> None:
        """Close the socket once the current response is sent."""
        if self._task is None:
            self._writer.end()


def _response(status: int, headers: Headers) -> h11.Response:
    return h11.Response(
        status_code=status,
        headers=[(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers],
        reason=http.HTTPStatus(status).phrase.encode("ascii"),
    )


def _is_upgrade(request: Request) -> bool:
    """Return whether the client requests a WebSocket (RFC 6455, section 4.2.1)."""
    upgrade = ",".join(request.headers.get("upgrade", ())).lower()
    connection = ",".join(request.headers.get("connection", ())).lower()
    return (
        request.method == "GET"
        and "websocket" in [word.strip() for word in upgrade.split(",")]
        and "upgrade" in [word.strip() for word in connection.split(",")]
    )


def _not_websocket(request: Request) -> Reply | None:
    """Return a refusal if an upgrade is invalid, otherwise None."""
    if request.headers.get("sec-websocket-version") != ("13",):
        return refusal(426, "use WebSocket version 13", ("sec-websocket-version", "13"))
    key = request.headers.get("sec-websocket-key", ())
    if len(key) != 1 or len(key[0]) != 24:
        return refusal(400, "sec-websocket-key must be one value of 16 bytes in base64")
    return None
