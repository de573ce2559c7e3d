"""Transport messages over streamable HTTP: the client's in requests, ours in event streams.

Source: the RFD "Streamable HTTP & WebSocket Transport" of the Agent Client Protocol. A connection
has one stream for itself and one for each session. A message is sent on the stream of its session;
a response on the stream of its request.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from protocol.transports.base import Oversize
from protocol.transports.event_streams import BUFFER_LIMIT, EventStream, Mailbox

# Methods whose responses are sent on the connection's stream, because the client may open the
# session's stream only after reading them (RFD, section 1).
_TO_CONNECTION: Final = frozenset({"session/new", "session/load"})
MAX_WAITING: Final = 16 * 1024 * 1024  # bytes that may wait, except in open streams
_WITHDRAW: Final = "$/cancel_request"
_ATTACHING: Final = frozenset({"session/load", "session/resume"})
_DETACHING: Final = frozenset({"session/close", "session/delete", "session/archive"})


class _Params(Struct):
    session_id: Any = msgspec.field(default=None, name="sessionId")
    request_id: Raw | UnsetType = msgspec.field(default=UNSET, name="requestId")


class _Outgoing(Struct):
    id: Raw | UnsetType = UNSET
    method: str | None = None
    params: _Params | None = None
    result: Raw | UnsetType = UNSET


_outgoing = msgspec.json.Decoder(_Outgoing)
_results = msgspec.json.Decoder(_Params)


class StreamableHttpTransport:
    """A client's connection; see `transports.base.Transport`.

    Args:
        buffer_limit: bytes buffered for a stream that is not open.

    Attributes:
        on_read_end: called once when reading ends, before `read_message` returns None.
        sessions: the IDs of the sessions that this connection created, loaded or resumed, and of
            child sessions with a stream of their own.
        last_active: when a message last arrived or a stream was last open, in the loop's time.
    """

    def __init__(self, *, buffer_limit: int = BUFFER_LIMIT) -> None:
        self.on_idle: Callable[[], None] | None = None
        self.on_read_end: Callable[[], None] | None = None
        self.sessions: set[str] = set()
        self.last_active = asyncio.get_running_loop().time()
        self._buffer_limit = buffer_limit
        self._messages: deque[bytes | Oversize] = deque()
        self._arrival: asyncio.Future[None] | None = None
        self._ended = False
        self._disconnected = False
        self._connection = Mailbox(buffer_limit)
        self._mailboxes: dict[str, Mailbox] = {}
        self._routes: dict[bytes, tuple[str, str | None]] = {}  # id → method, session
        self._unused: set[str] = set()  # not attached, with a request that was answered
        self._shares_stream: dict[str, str] = {}  # sessions whose messages use another one's stream
        # IDs of our unanswered requests → session and request.
        self._requests: dict[bytes, tuple[str | None, bytes]] = {}
        self._initialize: tuple[bytes, asyncio.Future[bytes]] | None = None
        self._flushed: asyncio.Event | None = None

    # -- the Transport ---------------------------------------------------------------------------

    @property
    def disconnected(self) -> bool:
        """Return whether the connection was ended."""
        return self._disconnected

    @property
    def waiting(self) -> bool:
        """Return whether output waits because the client reads a stream too slowly."""
        return not self._disconnected and any(stream.waiting for stream in self.streams)

    @property
    def queued(self) -> int:
        """Return the number of bytes that are not sent yet, except those for closed streams."""
        return sum(stream.queued for stream in self.streams)

    @property
    def streams(self) -> list[EventStream]:
        """Return the open streams."""
        boxes = (self._connection, *self._mailboxes.values())
        return [box.stream for box in boxes if box.stream is not None]

    @property
    def full(self) -> bool:
        """Return whether too much data waits to be read, or for a stream to be opened."""
        boxes = (self._connection, *self._mailboxes.values())
        buffered = sum(box.buffered for box in boxes)
        return sum(map(_size, self._messages)) + buffered > MAX_WAITING

    async def read_message(self) -> bytes | Oversize | None:
        """Return the next message; None at the end."""
        while not self._messages:
            if self._ended:
                return None
            self._arrival = asyncio.get_running_loop().create_future()
            try:
                await self._arrival
            finally:
                self._arrival = None
        return self._messages.popleft()

    def write(self, data: bytes) -> None:
        """Send whole messages, one per line."""
        if self._disconnected:
            return
        for line in data.split(b"\n"):
            if line:
                self._send(line)

    async def flush(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds until all output is sent; return whether it was."""
        await asyncio.sleep(0)  # lets fast streams write the output of this loop iteration
        if not self._disconnected and self.queued:
            self._flushed = asyncio.Event()
            try:
                await asyncio.wait_for(self._flushed.wait(), timeout)
            except TimeoutError:
                return False
            finally:
                self._flushed = None
        return not self._disconnected

    def close(self) -> None:
        """Stop reading."""
        if not self._ended and self.on_read_end is not None:
            self.on_read_end()
        self._messages.clear()
        self._ended = True
        self._wake()

    # -- input -----------------------------------------------------------------------------------

    async def initialize(self, message: bytes, raw_id: bytes) -> bytes:
        """Pass on the first request, and return the line that answers it.

        Raises:
            ConnectionError: the connection ended without a response.
        """
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._initialize = (raw_id, answer)
        self.receive(message)
        return await answer

    def receive(self, message: bytes) -> None:
        """Pass on a message of the client to the reader."""
        if self._ended:
            return
        self.last_active = asyncio.get_running_loop().time()
        self._messages.append(message)
        self._wake()

    def expect(self, raw_id: bytes, method: str, session: str | None) -> None:
        """Record where to send the response to a request."""
        self._routes[raw_id] = (method, session)
        self._unused.discard(session or "")

    def session_of_request(self, raw_id: bytes) -> str | None:
        """Return the session of our pending request with this ID."""
        return self._requests.get(raw_id, (None,))[0]

    def response_received(self, raw_id: bytes) -> None:
        """Record that the client answered our request, which is not sent again."""
        session, line = self._requests.pop(raw_id, (None, b""))
        self._box(session).withdraw(line)

    def must_reload(self, session: str) -> bool:
        """Return whether the client missed updates of a session, and has to load it again."""
        box = self._mailboxes.get(session)
        return box is not None and box.lost

    def forget_lost_updates(self, session: str) -> None:
        """Forget missed updates, because the client loads or resumes the session."""
        box = self._mailboxes.get(session)
        if box is not None:
            box.lost = False

    def share_stream(self, session: str, along: str) -> None:
        """Send the messages of `session` on the stream of the session `along`.

        A session that belongs to another one needs no separate stream; if it has one, that is used.
        """
        self._shares_stream[session] = along

    def find_stream(self, session: str | None) -> str | None:
        """Return the session whose stream carries the messages of `session`; usually itself."""
        if session is None or session in self._mailboxes:
            return session
        return self._shares_stream.get(session, session)

    def has_session(self, session: str) -> bool:
        """Return whether this connection created, loaded or resumed the session or its parent."""
        return session in self.sessions or session in self._shares_stream

    # -- streams ---------------------------------------------------------------------------------

    def open_stream(self, session: str | None, stream: EventStream) -> None:
        """Use `stream` for a session, or for the connection; a previous stream ends."""
        if session is not None and self._shares_stream.pop(session, None) is not None:
            self.sessions.add(session)
        box = self._box(session)
        replaces = box.stream is not None
        stream.on_idle = self._idle
        stream.on_lost = lambda: self._lost(session, box, stream)
        box.open(stream)
        if replaces:  # usually the old one is lost, and the client noticed it first
            self._resend_requests(session, box)
            self._idle()  # the old stream's output no longer counts as waiting

    def end_unused_stream(self) -> bool:
        """End the stream of a session that is no longer used here; return whether there was one."""
        for session in self._unused:
            box = self._mailboxes.get(session)
            if box is not None and not box.buffered:
                self._unused.remove(session)
                del self._mailboxes[session]
                box.close()
                return True
        return False

    def keep_alive(self, now: float, stall: float) -> None:
        """Send a comment on every stream, and abort those left unread for `stall` seconds."""
        for box in (self._connection, *self._mailboxes.values()):
            stream = box.stream
            if stream is None:
                continue
            if stream.drained() or not stream.waiting:
                box.stalled_since = None
                if not stream.waiting:
                    stream.write(b":\n\n")
            elif box.stalled_since is None:
                box.stalled_since = now
            elif now - box.stalled_since > stall:
                stream.abort()

    def has_stream(self, session: str) -> bool:
        """Return whether the session has or had an open stream, or messages wait for one."""
        return session in self._mailboxes

    @property
    def stream_count(self) -> int:
        """Return the number of sessions that have or had a stream."""
        return len(self._mailboxes)

    def end(self) -> None:
        """Close the streams, because the connection has ended."""
        if self._disconnected:
            return
        self._disconnected = True
        self.close()
        for box in (self._connection, *self._mailboxes.values()):
            box.close()
        self._mailboxes.clear()
        if self._initialize is not None and not self._initialize[1].done():
            self._initialize[1].set_exception(ConnectionError("the connection ended"))
        self._idle()

    def _lost(self, session: str | None, box: Mailbox, stream: EventStream) -> None:
        if box.stream is not stream:
            return
        box.stream = None
        box.lost = box.lost or stream.waiting or stream.queued > 0
        self.last_active = asyncio.get_running_loop().time()
        self._resend_requests(session, box)
        self._idle()

    def _resend_requests(self, session: str | None, box: Mailbox) -> None:
        """Send pending requests again: they may not have been read, and turns wait for them."""
        for session_of_request, line in self._requests.values():
            if self.find_stream(session_of_request) == session:
                box.add(line, update=False)

    def _box(self, session: str | None) -> Mailbox:
        session = self.find_stream(session)
        if session is None:
            return self._connection
        box = self._mailboxes.get(session)
        if box is None:
            box = self._mailboxes[session] = Mailbox(self._buffer_limit)
        return box

    # -- output ----------------------------------------------------------------------------------

    def _send(self, line: bytes) -> None:
        message = _outgoing.decode(line)
        raw_id = None if message.id is UNSET else bytes(message.id)
        if message.method is None:
            if raw_id is not None:
                self._respond(raw_id, message, line)
            return
        params = message.params or _Params()
        session = params.session_id if isinstance(params.session_id, str) else None
        if message.method == _WITHDRAW and params.request_id is not UNSET:
            # Sent where the request was sent; the request is not sent again.
            session, request = self._requests.pop(bytes(params.request_id), (session, b""))
            self._box(session).withdraw(request)
        if raw_id is not None:
            self._requests[raw_id] = (session, line)
        self._box(session).add(line, update=raw_id is None)

    def _respond(self, raw_id: bytes, message: _Outgoing, line: bytes) -> None:
        if self._initialize is not None and self._initialize[0] == raw_id:
            if not self._initialize[1].done():
                self._initialize[1].set_result(line)
            self._initialize = None
            return
        method, session = self._routes.pop(raw_id, ("", None))
        if message.result is not UNSET:
            if session is not None and method in _ATTACHING:
                self.sessions.add(session)
            elif session is not None and method in _DETACHING:
                self.sessions.discard(session)
            created = _session_in(message.result)
            if created is not None:
                self.sessions.add(created)
        if session is not None and not self.has_session(session):
            self._unused.add(session)
            if not self.has_stream(session):
                session = None  # the client may never open one, and waits for the response
        if method in _TO_CONNECTION:
            session = None
        self._box(session).add(line, update=False)

    def _idle(self) -> None:
        if self._flushed is not None and not self.queued:
            self._flushed.set()
        if self.on_idle is not None:
            self.on_idle()

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)


def _size(message: bytes | Oversize) -> int:
    return len(message) if isinstance(message, bytes) else 0


def _session_in(result: Raw) -> str | None:
    """Return the session named in a result."""
    try:
        session = _results.decode(result).session_id
    except msgspec.DecodeError:
        return None
    return session if isinstance(session, str) else None
