"""A request over HTTP/2, and the event stream that may answer it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import h2.connection
import h2.exceptions
from h2.errors import ErrorCodes

from acp_agent.server.remote.http_messages import Headers, Reply, Request
from protocol.transports.buffered_writer import BufferedWriter


class Http2Stream:
    """A request and the state of its response; an `EventStream` if the response is one."""

    def __init__(self, streams: Http2Streams, stream_id: int, request: Request) -> None:
        self.on_idle: Callable[[], None] | None = None
        self.on_lost: Callable[[], None] | None = None
        self.id = stream_id
        self.request = request
        self.started_at = asyncio.get_running_loop().time()
        self.body = bytearray()
        self.complete = False  # whether the whole request has arrived
        self.task: asyncio.Task[None] | None = None
        self.is_event_stream = False  # whether the response is an event stream
        self.ended = False  # whether nothing is sent after `out`
        self.out = bytearray()
        self.sent_bytes = 0  # bytes sent from `out`
        self._checked_bytes = 0  # value of `sent_bytes` at the last call of `drained`
        self._streams = streams
        self._scheduled = False

    @property
    def waiting(self) -> bool:
        """Return whether output waits because the client reads too slowly."""
        return len(self.out) > 0 and not self._scheduled

    @property
    def queued(self) -> int:
        """Return the number of bytes that are not sent yet."""
        return len(self.out)

    def write(self, data: bytes) -> None:
        """Send bytes of an event stream; all writes of one loop iteration are sent together."""
        if self.ended:
            return
        self.out += data
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def drained(self) -> bool:
        """Return whether the client has read anything since the last call."""
        progressed, self._checked_bytes = self.sent_bytes > self._checked_bytes, self.sent_bytes
        return progressed

    def end(self) -> None:
        """End the stream after the pending bytes."""
        self.ended = True
        self._streams.pump(self)

    def abort(self) -> None:
        """Close the stream immediately."""
        self._streams.abort(self)

    def _flush(self) -> None:
        self._scheduled = False
        self._streams.pump(self)


class Http2Streams:
    """Sends responses as far as the client's windows and the socket allow.

    Args:
        limit: the maximum size of a message in bytes.

    Attributes:
        streams: the requests, by stream ID.
        buffered: bytes of the bodies that are being read.
        idle_since: when the last request ended, by the loop's clock.
    """

    def __init__(self, http: h2.connection.H2Connection, *, limit: int) -> None:
        self.writer = BufferedWriter(on_idle=self.on_writable)
        self.streams: dict[int, Http2Stream] = {}
        self.buffered = 0
        self.idle_since = asyncio.get_running_loop().time()
        self._http = http
        self._limit = limit
        self._discarding: dict[int, int] = {}  # incomplete requests → bytes discarded

    def reply(self, stream: Http2Stream, reply: Reply) -> None:
        """Send a complete response."""
        try:
            length = ("content-length", str(len(reply.body)))
            no_body = not reply.body or stream.request.method == "HEAD"
            fields = _fields(reply.status, (*reply.headers, length))
            self._http.send_headers(stream.id, fields, end_stream=no_body)
        except h2.exceptions.ProtocolError:
            self.drop(stream)
            return
        stream.ended = True
        self.free(stream)
        if no_body:
            self._finish(stream)
        else:
            stream.out += reply.body
            self._pump(stream)

    def open_stream(self, stream: Http2Stream, headers: Headers) -> Http2Stream:
        """Start an event stream as the response."""
        if stream.id in self.streams:
            self._http.send_headers(stream.id, _fields(200, headers))
            self.flush_frames()
        stream.is_event_stream = True
        return stream

    def pump(self, stream: Http2Stream) -> None:
        """Send a stream's pending bytes, as far as the client's window and the socket allow."""
        self._pump(stream)
        self.flush_frames()

    def _pump(self, stream: Http2Stream) -> None:
        if stream.id not in self.streams:
            return
        try:
            while stream.out and not self.writer.waiting:
                window = self._http.local_flow_control_window(stream.id)
                size = min(window, self._http.max_outbound_frame_size, len(stream.out))
                if size <= 0:
                    break
                self._http.send_data(stream.id, bytes(stream.out[:size]))
                del stream.out[:size]
                stream.sent_bytes += size
            if stream.ended and not stream.out:
                self._http.end_stream(stream.id)
                self._finish(stream)
        except h2.exceptions.ProtocolError:
            self.drop(stream)

    def _finish(self, stream: Http2Stream) -> None:
        """Remove an answered request; further data of its client is discarded."""
        self.streams.pop(stream.id, None)
        self.idle_since = asyncio.get_running_loop().time()
        if not stream.complete:
            self._discarding[stream.id] = 0

    def discard(self, stream_id: int, size: int) -> None:
        """Count data of an answered request. Many libraries send everything before they read."""
        if stream_id not in self._discarding:
            return
        self._discarding[stream_id] += size
        if self._discarding[stream_id] > self._limit:
            del self._discarding[stream_id]
            with suppress(h2.exceptions.ProtocolError):  # it has already ended
                self._http.reset_stream(stream_id, ErrorCodes.NO_ERROR)  # RFC 9113, section 8.1

    def request_done(self, stream_id: int) -> Http2Stream | None:
        """Record that a request is complete or was reset; return it if it is not answered yet."""
        self._discarding.pop(stream_id, None)
        return self.streams.get(stream_id)

    def abort(self, stream: Http2Stream) -> None:
        """Cancel an event stream whose client does not read."""
        with suppress(h2.exceptions.ProtocolError):  # it has already ended
            self._http.reset_stream(stream.id, ErrorCodes.CANCEL)
        self.flush_frames()
        self.drop(stream)

    def drop(self, stream: Http2Stream) -> None:
        """Remove a stream that ended without a response."""
        if self.streams.pop(stream.id, None) is None:
            return
        self.idle_since = asyncio.get_running_loop().time()
        self.free(stream)
        stream.ended = True
        if stream.task is not None:
            stream.task.cancel()
        if stream.on_lost is not None:
            stream.on_lost()

    def drop_all(self) -> None:
        """Remove all streams, because the socket is closed."""
        for stream in list(self.streams.values()):
            self.drop(stream)

    def buffer(self, stream: Http2Stream, data: bytes) -> None:
        """Buffer a piece of a request's body."""
        stream.body += data
        self.buffered += len(data)

    def free(self, stream: Http2Stream) -> None:
        """Discard the buffered body of a request."""
        self.buffered -= len(stream.body)
        stream.body.clear()

    def on_writable(self) -> None:
        """Send pending bytes, because there may be room."""
        for stream in list(self.streams.values()):
            if stream.out:
                self._pump(stream)
                if stream.is_event_stream and not stream.out and stream.on_idle is not None:
                    stream.on_idle()
        self.flush_frames()

    def flush_frames(self) -> None:
        """Pass the connection's pending frames to the writer."""
        data = self._http.data_to_send()
        if data:
            self.writer.write(data)


def _fields(status: int, headers: Headers) -> list[tuple[bytes, bytes]]:
    fields = [(b":status", b"%d" % status)]
    fields += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    return fields
