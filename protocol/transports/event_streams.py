"""Event streams that clients open and close, and the messages for them (HTML, 9.2)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

BUFFER_LIMIT: Final = 4 * 1024 * 1024  # bytes buffered for a stream while it is not open


class EventStream(Protocol):
    """A response with a body that is written over time.

    Attributes:
        on_idle: called whenever all output has been sent after a time of waiting.
        on_lost: called once when the client closed the stream, and never after `end`.
    """

    on_idle: Callable[[], None] | None
    on_lost: Callable[[], None] | None

    @property
    def waiting(self) -> bool:
        """Return whether output waits because the client reads too slowly."""

    @property
    def queued(self) -> int:
        """Return the number of bytes that the system has not taken yet."""

    def write(self, data: bytes) -> None:
        """Send bytes after earlier ones. Never waits."""

    def drained(self) -> bool:
        """Return whether a slow client has read anything since the last call."""

    def end(self) -> None:
        """End the stream once all output is sent."""

    def abort(self) -> None:
        """Close the stream immediately; pending output is lost."""


class Mailbox:
    """The messages for one stream, whether or not the client has opened it.

    Attributes:
        lost: whether the client missed updates.
        stalled_since: when the client stopped reading pending output; None if it reads.
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
        """Return the number of bytes that wait for the stream to be opened."""
        return self._size

    def add(self, line: bytes, *, update: bool) -> None:
        """Send a message, or buffer it until the stream is opened.

        If there are too many notifications (`update`), all of them are discarded. Requests and
        responses are few, and each is awaited.
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
            self._buffered = deque(entry for entry in self._buffered if not entry[1])
            self._size = sum(len(entry[0]) for entry in self._buffered)

    def withdraw(self, line: bytes) -> None:
        """Remove a message that is not an update, if it is still buffered."""
        if (line, False) in self._buffered:
            self._buffered.remove((line, False))
            self._size -= len(line)

    def open(self, stream: EventStream) -> None:
        """Use a new stream; the previous one ends."""
        previous, self.stream = self.stream, stream
        self.stalled_since = None
        if previous is not None:
            # The client may never read the old stream's pending output, because it has switched.
            self.lost = self.lost or previous.waiting
            previous.on_lost = previous.on_idle = None
            previous.end()
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
    """Return a message as a server-sent event (HTML standard, section 9.2.6)."""
    return b"data: " + line + b"\n\n"
