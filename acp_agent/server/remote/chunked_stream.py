"""An event stream over HTTP/1.1."""

from __future__ import annotations

from collections.abc import Callable

import h11

from protocol.transports.buffered import BufferedWriter


class ChunkedStream:
    """A body in chunks (RFC 9112, section 7.1); see `EventStream`."""

    def __init__(self, writer: BufferedWriter, connection: h11.Connection) -> None:
        self.on_idle: Callable[[], None] | None = None
        self.on_lost: Callable[[], None] | None = None
        self._writer = writer
        self._http = connection
        self._over = False

    @property
    def waiting(self) -> bool:
        """Whether the client reads slower than is written."""
        return self._writer.waiting

    @property
    def queued(self) -> int:
        """Bytes not passed on yet."""
        return self._writer.queued

    def write(self, data: bytes) -> None:
        """Send a chunk."""
        if not self._over:
            self._writer.write(self._http.send(h11.Data(data=data)) or b"")

    def drained(self) -> bool:
        """Whether a client that lags took anything since this was last asked."""
        return self._writer.drained()

    def end(self) -> None:
        """Send the last chunk and close the socket."""
        if not self._over:
            self._over = True
            self._writer.write(self._http.send(h11.EndOfMessage()) or b"")
            self._writer.end()

    def cut(self) -> None:
        """Close the socket at once."""
        self._writer.abort()

    def lose(self) -> None:
        """The socket is closed."""
        self._over = True
        if self.on_lost is not None:
            self.on_lost()
