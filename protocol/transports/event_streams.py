"""Event streams that clients open and close, and messages that wait for one (HTML, 9.2)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

BUFFER_LIMIT: Final = 4 * 1024 * 1024  # bytes kept for a stream while nobody has it open


class EventStream(Protocol):
    """A response with a body that continues.

    Attributes:
        on_idle: called whenever everything written was passed on after a time of waiting.
        on_lost: called once when the client closed it, and never after `end`.
    """

    on_idle: Callable[[], None] | None
    on_lost: Callable[[], None] | None

    @property
    def waiting(self) -> bool:
        """Whether the client reads slower than is written."""

    @property
    def queued(self) -> int:
        """How many written bytes the system has not taken yet."""

    def write(self, data: bytes) -> None:
        """Send bytes after those written before. Never waits."""

    def drained(self) -> bool:
        """Whether a client that lags took anything since this was last asked."""

    def end(self) -> None:
        """Say that there is no more, once all is passed on."""

    def abort(self) -> None:
        """Close it now, whatever is not passed on."""


class Mailbox:
    """The messages for one stream, whether or not the client has it open.

    Attributes:
        stream: the open stream, if there is one.
        lost: whether updates were thrown away because nobody came for them.
        stalled_since: since when the client takes nothing of what waits for it; None: it does.
    """

    def __init__(self, buffer_limit: int) -> None:
        self.stream: EventStream | None = None
        self.lost = False
        self.stalled_since: float | None = None
        self._buffer_limit = buffer_limit
        self._buffered: deque[tuple[bytes, bool]] = deque()
        self._size = 0

    @property
    def buffered(self) -> int:
        """Bytes that wait for the stream to be opened."""
        return self._size

    def put(self, line: bytes, *, update: bool) -> None:
        """Send a message, or keep it until the stream is opened.

        Notifications (`update`) are thrown away, all of them, when there are too many; requests
        and responses are few, and somebody waits for each.
        """
        if self.stream is not None:
            self.stream.write(event(line))
            return
        if update and self.lost:
            return
        self._buffered.append((line, update))
        self._size += len(line)
        if self._size > self._buffer_limit:
            self.lost = True
            self._buffered = deque(one for one in self._buffered if not one[1])
            self._size = sum(len(one[0]) for one in self._buffered)

    def withdraw(self, line: bytes) -> None:
        """Forget a message, no update, where it still waits."""
        if (line, False) in self._buffered:
            self._buffered.remove((line, False))
            self._size -= len(line)

    def open(self, stream: EventStream) -> None:
        """Use a stream from now on; the one before it ends."""
        before, self.stream = self.stream, stream
        self.stalled_since = None
        if before is not None:
            # What the old one holds back may never be read: its client went over to another.
            self.lost = self.lost or before.waiting
            before.on_lost = before.on_idle = None
            before.end()
        while self._buffered:
            stream.write(event(self._buffered.popleft()[0]))
        self._size = 0

    def close(self) -> None:
        """End the stream."""
        if self.stream is not None:
            self.stream.on_lost = self.stream.on_idle = None
            self.stream.end()
            self.stream = None


def event(line: bytes) -> bytes:
    """A message as a server-sent event (HTML standard, section 9.2.6)."""
    return b"data: " + line + b"\n\n"
