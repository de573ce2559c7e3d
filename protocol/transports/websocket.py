"""Transport messages as text frames of a WebSocket (RFC 6455), on the server's side.

The transport is an asyncio protocol that takes over a socket after the HTTP upgrade. Frames are not
compressed: streamed messages are short, and a compressed one could be a decompression bomb.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, TextMessage
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError, ProtocolError

from protocol.transports.base import LIMIT, BoundedText, Oversize
from protocol.transports.buffered_writer import BufferedWriter

GOING_AWAY: Final = int(CloseReason.GOING_AWAY)
NORMAL: Final = int(CloseReason.NORMAL_CLOSURE)
POLICY: Final = int(CloseReason.POLICY_VIOLATION)

_READ_AHEAD = 1024 * 1024  # bytes of unread messages before reading pauses
_CLOSE_TIMEOUT = 1.0  # seconds for sending a close frame, and for the peer's answer to it
_UNANSWERED_INTERVALS = (
    3  # intervals for the answer to a ping: the peer may have much to read before it
)


class WebSocketTransport(asyncio.Protocol):
    """One side of a connection over a WebSocket; see `transports.base.Transport`.

    A silent peer is pinged. If it neither answers within three more intervals nor reads pending
    output, it counts as dead, and its socket is closed.

    Args:
        limit: the longest message in bytes; longer ones are reported and discarded.
        ping: seconds without data from the peer after which it is pinged.
        binary: whether binary frames are messages too; the transport's RFD ignores them.
        on_end: called once, when the socket is closed.

    Attributes:
        on_read_end: called once when reading ends, before `read_message` returns None.
    """

    def __init__(
        self,
        *,
        limit: int = LIMIT,
        ping: float = 20.0,
        binary: bool = False,
        on_end: Callable[[], None] | None = None,
    ) -> None:
        self.on_idle: Callable[[], None] | None = None
        self.on_read_end: Callable[[], None] | None = None
        self._ping = ping
        self._message_events = (TextMessage, BytesMessage) if binary else TextMessage
        self._on_end = on_end
        self._frames = Connection(ConnectionType.SERVER)
        self._writer = BufferedWriter(on_idle=self._idle)
        self._messages: deque[bytes | Oversize] = deque()
        self._unread = 0  # bytes in `_messages`
        self._paused = False  # whether reading is paused
        self._message = BoundedText(limit)  # a message may arrive in several pieces
        self._ended = False  # whether reading has ended
        self._close_sent = False  # whether a close frame was sent or received
        self._ping_due: bytes | None = None  # the answer to the latest ping, if it waits
        self._arrival: asyncio.Future[None] | None = None
        self._closed = asyncio.Event()
        self._silent_intervals = 0  # intervals without data from the peer
        self._timer: asyncio.TimerHandle | None = None

    # -- the Transport ---------------------------------------------------------------------------

    @property
    def disconnected(self) -> bool:
        """Return whether the peer has stopped reading."""
        return self._close_sent or self._writer.disconnected

    @property
    def waiting(self) -> bool:
        """Return whether output waits because the peer reads too slowly."""
        return self._writer.waiting and not self.disconnected

    @property
    def queued(self) -> int:
        """Return the number of bytes that are not sent yet."""
        return self._writer.queued

    async def read_message(self) -> bytes | Oversize | None:
        """Return the next message; None when the peer closed or is gone, and after `close`."""
        while not self._messages:
            if self._ended:
                return None
            self._go_on_reading()
            self._arrival = asyncio.get_running_loop().create_future()
            try:
                await self._arrival
            finally:
                self._arrival = None
        message = self._messages.popleft()
        if isinstance(message, bytes):
            self._unread -= len(message)
        return message

    def write(self, data: bytes) -> None:
        """Send whole messages, one per line, each as a frame."""
        if self.disconnected:
            return
        if data.find(b"\n") == len(data) - 1:
            self._writer.write(text_frame(data[:-1]))
        else:
            self._writer.write(b"".join(text_frame(line) for line in data.split(b"\n") if line))

    async def flush(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds until all output is sent; return whether it was."""
        return await self._writer.flush(timeout)

    def close(self) -> None:
        """Stop reading. Pending output is still sent; `close_socket` closes the socket."""
        self._messages.clear()
        self._unread = 0
        self._end()
        self._go_on_reading()  # for the answer to our close frame

    # -- closing ---------------------------------------------------------------------------------

    async def close_socket(self, code: int = NORMAL, reason: str = "") -> None:
        """Send a close frame and close the socket, within about two seconds."""
        self._end()
        self._go_on_reading()
        self._send_close(code, reason)
        if await self._writer.flush(_CLOSE_TIMEOUT):
            with suppress(TimeoutError):
                # Its answer closes the socket.
                await asyncio.wait_for(self._closed.wait(), _CLOSE_TIMEOUT)
        self._writer.abort()
        await self._closed.wait()

    def _send_close(self, code: int, reason: str) -> None:
        if self._close_sent or self._writer.disconnected:
            return
        self._close_sent = True
        try:
            self._writer.write(self._frames.send(CloseConnection(code=code, reason=reason)))
        except LocalProtocolError:  # the peer closed first
            return

    def _end(self) -> None:
        if not self._ended and self.on_read_end is not None:
            self.on_read_end()
        self._ended = True
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    # -- asyncio callbacks -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take over the socket, possibly from another protocol."""
        assert isinstance(transport, asyncio.Transport)
        self._writer.open(transport)
        self._schedule()

    def data_received(self, data: bytes) -> None:
        """Parse frames."""
        self._silent_intervals = 0
        try:
            self._frames.receive_data(data)
            for event in self._frames.events():
                self._on_event(event)
        except ProtocolError as error:  # an error for which the library has no close frame
            self._fail(int(CloseReason.PROTOCOL_ERROR), str(error))

    def eof_received(self) -> bool:
        """Close the socket: the peer stopped sending without a close frame."""
        return False

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Handle the loss of the socket."""
        if self._timer is not None:
            self._timer.cancel()
        self._closed.set()
        self._end()
        self._writer.lost()
        if self._on_end is not None:
            self._on_end()

    def pause_writing(self) -> None:
        """Pause, because the system takes no more bytes."""
        self._writer.pause()

    def resume_writing(self) -> None:
        """Resume, because the system has taken everything."""
        self._writer.resume()

    # -- frames ----------------------------------------------------------------------------------

    def _on_event(self, event: object) -> None:
        if isinstance(event, self._message_events):
            self._keep(event)
        elif isinstance(event, Ping):
            self._answer_ping(event)
        elif isinstance(event, CloseConnection):
            if not self._close_sent:
                self._close_sent = True
                self._writer.write(self._frames.send(event.response()))
            self._writer.end()
            self._end()
            self._idle()
        # The rest are binary frames, which the transport's RFD ignores, and answers to pings.

    def _keep(self, event: TextMessage | BytesMessage) -> None:
        if self._ended:
            return
        part = event.data.encode() if isinstance(event.data, str) else bytes(event.data)
        self._message.add(part)
        if event.message_finished:
            self._arrived(self._message.take())

    def _arrived(self, message: bytes | Oversize) -> None:
        self._messages.append(message)
        if isinstance(message, bytes):
            self._unread += len(message)
            if self._unread > _READ_AHEAD and not self._paused:
                self._paused = True
                self._writer.pause_reading()
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def _go_on_reading(self) -> None:
        if self._paused:
            self._paused = False
            self._writer.resume_reading()

    def _answer_ping(self, ping: Ping) -> None:
        """Answer a ping; only the latest one if the peer does not read (section 5.5.3)."""
        if self._close_sent:
            return
        pong = self._frames.send(ping.response())
        if self._writer.waiting:
            self._ping_due = pong
        else:
            self._writer.write(pong)

    def _fail(self, code: int, reason: str) -> None:
        """Report a protocol error of the peer, and stop reading."""
        self._send_close(code, reason[:100])
        self._end()
        self._writer.end()
        self._idle()

    def _idle(self) -> None:
        if self._ping_due is not None and not self.disconnected:
            self._writer.write(self._ping_due)
        self._ping_due = None
        if self.on_idle is not None:
            self.on_idle()

    # -- liveness --------------------------------------------------------------------------------

    def _schedule(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._ping, self._check_alive)

    def _check_alive(self) -> None:
        self._silent_intervals = 0 if self._writer.drained() else self._silent_intervals + 1
        if self._silent_intervals > _UNANSWERED_INTERVALS:
            self._writer.abort()
            return
        if self._silent_intervals == 1 and not self.disconnected:
            self._writer.write(self._frames.send(Ping()))
        self._schedule()


def text_frame(payload: bytes) -> bytes:
    """Return a whole message as one unmasked text frame (RFC 6455, section 5.2)."""
    size = len(payload)
    if size < 126:
        return b"\x81%c" % size + payload
    if size < 1 << 16:
        return b"\x81\x7e" + size.to_bytes(2, "big") + payload
    return b"\x81\x7f" + size.to_bytes(8, "big") + payload
