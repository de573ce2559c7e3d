"""Server-sent events, decoded as their bytes arrive.

https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation. Only
the data of an event is kept: the APIs served here repeat the event's name inside the data.
"""

from __future__ import annotations

EVENT_LIMIT = 64 * 1024 * 1024  # bytes of one event; far beyond what any model sends


class BadStreamError(ValueError):
    """The bytes are not the stream that they were to be."""


class EventTooLargeError(ValueError):
    """An event has no end in sight."""


class SseDecoder:
    """Turns the bytes of an event stream into the data of its events, however they are cut.

    Works on bytes: a character split between two reads is whole again before anybody decodes it.
    """

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        self._limit = limit
        self._line: list[bytes] = []  # the pieces of the line that has no end yet
        self._data: list[bytes] = []  # the data lines of the event that has no end yet
        self._data_size = 0  # with an end for each line
        self._size = 0
        self._after_cr = False
        self._begun = False

    def feed(self, received: bytes) -> list[bytes]:
        """Take what was read; gives the data of every event that is complete now.

        Raises:
            EventTooLargeError: an event is larger than the limit.
        """
        if not received:
            return []
        if self._after_cr and received.startswith(b"\n"):
            received = received[1:]  # the second half of a line end that was split
        self._after_cr = received.endswith(b"\r")
        if b"\n" not in received and b"\r" not in received:
            self._line.append(received)
            self._grow(len(received))
            return []
        lines = b"".join((*self._line, received)).splitlines(keepends=True)
        self._line = [] if lines[-1].endswith((b"\n", b"\r")) else [lines.pop()]
        complete: list[bytes] = []
        for ended in lines:
            line = ended.rstrip(b"\r\n")
            if not self._begun:
                self._begun = True
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line:
                self._take(line)
            elif self._data:
                complete.append(b"\n".join(self._data))
                self._data, self._data_size = [], 0
        self._size = 0
        self._grow(sum(map(len, self._line)) + self._data_size)
        return complete

    def end(self) -> list[bytes]:
        """The stream is over. Gives the event that lacks its empty line, which some servers omit.

        The standard drops such an event, so the caller must check that it is whole.
        """
        if self._line:
            self._take(b"".join(self._line))
        left = [b"\n".join(self._data)] if self._data else []
        self._line, self._data, self._data_size, self._size = [], [], 0, 0
        return left

    def _take(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
        elif line == b"data":
            self._data.append(b"")
        else:
            return  # a comment, or a field that these APIs give no meaning
        self._data_size += len(self._data[-1]) + 1

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > self._limit:
            raise EventTooLargeError(f"an event of the stream is larger than {self._limit} bytes")
