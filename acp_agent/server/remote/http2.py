"""HTTP/2: frame length checks on arrival (RFC 9113, section 4.1), and requests.

The library rejects an oversized frame only once it is complete. By then 16 MiB would be buffered
for a client that is not authenticated.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

import h2.config
import h2.connection
import h2.events
import h2.exceptions
from h2.errors import ErrorCodes
from h2.settings import SettingCodes, Settings

from acp_agent.server.remote.endpoint import Endpoint
from acp_agent.server.remote.http2_streams import Http2Stream, Http2Streams
from acp_agent.server.remote.http_messages import (
    PREFACE,
    Request,
    parse_headers,
    peer_address,
    refusal,
)
from acp_agent.server.socket_slots import SocketSlot

_HEADER_BYTES = 9  # bytes; the first three are the length of the payload
_MAX_STREAMS: Final = 100  # concurrent requests of a client
_WINDOW_BYTES: Final = 1024 * 1024  # bytes that a client may send before an acknowledgement
_MAX_RESETS: Final = 200  # requests that a client may cancel before it counts as an attack
_MAX_HEADER_LIST_BYTES: Final = 16 * 1024


class FrameLengths:
    """Follows the frames of one direction.

    Args:
        first: bytes before the first frame.
    """

    def __init__(self, *, first: int, max_length: int) -> None:
        self._skip = first
        self._max_length = max_length
        self._header = b""

    def too_long(self, data: bytes) -> bool:
        """Return whether an oversized frame begins in `data`."""
        offset = 0
        while offset < len(data):
            if self._skip:
                step = min(self._skip, len(data) - offset)
                self._skip -= step
                offset += step
                continue
            missing = _HEADER_BYTES - len(self._header)
            self._header += data[offset : offset + missing]
            offset += missing
            if len(self._header) < _HEADER_BYTES:
                return False
            self._skip = int.from_bytes(self._header[:3], "big")
            self._header = b""
            if self._skip > self._max_length:
                return True
        return False


class Http2(asyncio.Protocol):
    """Reads requests from a socket and writes the responses."""

    def __init__(self, endpoint: Endpoint, slot: SocketSlot) -> None:
        self._endpoint = endpoint
        self._limits = endpoint.limits
        self._slot = slot
        config = h2.config.H2Configuration(client_side=False, header_encoding=None)
        self._http = h2.connection.H2Connection(config=config)
        self._streams = Http2Streams(self._http, limit=self._limits.message)
        self._writer = self._streams.writer
        self._frames = FrameLengths(
            first=len(PREFACE), max_length=self._http.max_inbound_frame_size
        )
        self._resets = 0
        self._peer = ""
        self._silent_intervals = 0  # ping intervals without data from the client
        self._timer: asyncio.TimerHandle | None = None

    # -- asyncio callbacks ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take over the socket."""
        assert isinstance(transport, asyncio.Transport)
        self._writer.open(transport)
        self._peer = peer_address(transport)
        self._endpoint.sockets.add(self)
        self._http.local_settings = Settings(
            client=False,
            initial_values={
                SettingCodes.MAX_CONCURRENT_STREAMS: _MAX_STREAMS,
                SettingCodes.INITIAL_WINDOW_SIZE: _WINDOW_BYTES,
                SettingCodes.MAX_HEADER_LIST_SIZE: _MAX_HEADER_LIST_BYTES,
            },
        )
        self._http.initiate_connection()
        self._http.increment_flow_control_window(_WINDOW_BYTES)
        self._streams.flush_frames()
        self._schedule()

    def data_received(self, data: bytes) -> None:
        """Parse frames."""
        self._silent_intervals = 0
        if self._frames.too_long(data):
            self._http.close_connection(ErrorCodes.FRAME_SIZE_ERROR)
            self._streams.flush_frames()
            self._writer.end()
            return
        try:
            for event in self._http.receive_data(data):
                self._on_event(event)
        except h2.exceptions.ProtocolError:
            self._streams.flush_frames()  # the GOAWAY frame with the reason
            self._writer.end()
            return
        self._streams.flush_frames()

    def eof_received(self) -> bool:
        """Close the socket, because the client is gone."""
        return False

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Handle the loss of the socket."""
        self._endpoint.sockets.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self._streams.drop_all()
        self._writer.lost()
        self._slot.release()

    def pause_writing(self) -> None:
        """Pause, because the system takes no more bytes."""
        self._writer.pause()

    def resume_writing(self) -> None:
        """Resume, because the system has taken everything."""
        self._writer.resume()

    # -- frames --------------------------------------------------------------------------------

    def _on_event(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            self._on_head(event)
        elif isinstance(event, h2.events.DataReceived):
            self._on_data(event)
        elif isinstance(event, h2.events.StreamEnded):
            stream = self._streams.request_done(event.stream_id)
            if stream is not None:
                self._on_request_complete(stream)
        elif isinstance(event, h2.events.StreamReset):
            self._on_reset(event.stream_id)
        elif isinstance(event, h2.events.WindowUpdated | h2.events.RemoteSettingsChanged):
            self._streams.on_writable()
        elif isinstance(event, h2.events.ConnectionTerminated):
            self._writer.end()

    def _on_head(self, event: h2.events.RequestReceived) -> None:
        fields = parse_headers([(bytes(name), bytes(value)) for name, value in event.headers])
        method = fields.pop(":method", ("",))[0]
        path, _, query = fields.pop(":path", ("",))[0].partition("?")
        authority = fields.pop(":authority", None)
        if authority is not None:
            fields["host"] = authority  # RFC 9113, section 8.3.1; h2 rejects two different ones
        request = Request(method, path, query, fields, "2", self._peer)
        stream = Http2Stream(self._streams, event.stream_id, request)
        self._streams.streams[event.stream_id] = stream
        reply = self._endpoint.screen(stream.request)
        if reply is not None:
            self._streams.reply(stream, reply)
        else:
            self._slot.authorize()

    def _on_data(self, event: h2.events.DataReceived) -> None:
        size = event.flow_controlled_length or 0
        self._http.acknowledge_received_data(size, event.stream_id)
        stream = self._streams.streams.get(event.stream_id)
        if stream is None or stream.ended:
            self._streams.discard(event.stream_id, size)
            return
        self._streams.buffer(stream, event.data or b"")
        if len(stream.body) > self._limits.message:
            self._streams.reply(stream, self._endpoint.too_large())
        elif self._streams.buffered > 2 * self._limits.message:
            reason = "too many large messages at the same time"
            self._streams.reply(stream, refusal(503, reason, ("retry-after", "1")))

    def _on_request_complete(self, stream: Http2Stream) -> None:
        stream.complete = True
        if stream.ended:
            return
        body = bytes(stream.body)
        self._streams.free(stream)
        stream.task = asyncio.create_task(self._answer(stream, body))

    async def _answer(self, stream: Http2Stream, body: bytes) -> None:
        reply = await self._endpoint.answer(
            stream.request, body, lambda headers: self._streams.open_stream(stream, headers)
        )
        stream.task = None
        if reply is not None and stream.id in self._streams.streams:
            self._streams.reply(stream, reply)
            self._streams.flush_frames()

    def _on_reset(self, stream_id: int) -> None:
        """Handle a cancelled request (a flood of these is CVE-2023-44487)."""
        stream = self._streams.request_done(stream_id)
        if stream is None:
            return
        if not stream.is_event_stream:
            self._resets += 1
        self._streams.drop(stream)
        if self._resets > _MAX_RESETS:
            self._http.close_connection(ErrorCodes.ENHANCE_YOUR_CALM)
            self._streams.flush_frames()
            self._writer.end()

    # -- timeouts ------------------------------------------------------------------------------

    def _schedule(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._limits.ping, self._check_alive)

    def _check_alive(self) -> None:
        """Ping a silent client, and close a socket without requests or without a peer."""
        now = asyncio.get_running_loop().time()
        self._silent_intervals = 0 if self._writer.drained() else self._silent_intervals + 1
        if self._silent_intervals > 3:
            self._writer.abort()
            return
        streams = list(self._streams.streams.values())
        if not streams and now - self._streams.idle_since > self._limits.keep_alive:
            self.go_away()
            return
        for stream in streams:
            late = now - stream.started_at > self._limits.body
            if late and stream.task is None and not stream.is_event_stream and not stream.ended:
                self._streams.reply(stream, refusal(408, "the request was not complete in time"))
        if self._silent_intervals == 1:
            with suppress(h2.exceptions.ProtocolError):  # GOAWAY was sent, but not all data yet
                self._http.ping(b"acpagent")
        self._streams.flush_frames()
        self._schedule()

    def go_away(self) -> None:
        """Send GOAWAY, and close the socket once all data is sent."""
        with suppress(h2.exceptions.ProtocolError):  # the client sent GOAWAY first
            self._http.close_connection()
        self._streams.flush_frames()
        self._writer.end()
