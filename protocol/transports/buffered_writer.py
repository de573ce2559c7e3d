"""Write to an asyncio transport: join the writes of a loop iteration, detect slow peers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

_HIGH_WATER: Final = 64 * 1024  # bytes the transport may buffer before the peer counts as slow


class BufferedWriter:
    """Writes bytes in order to a socket that asyncio owns. Use it in one event loop only.

    Args:
        on_idle: called when a time of waiting is over, and once when the socket is lost.

    Attributes:
        disconnected: whether the socket is lost; later output is dropped.
        waiting: whether output waits because the peer reads too slowly.
    """

    def __init__(self, *, on_idle: Callable[[], None]) -> None:
        self.disconnected = False
        self.waiting = False
        self._on_idle = on_idle
        self._transport: asyncio.Transport | None = None
        self._pieces: list[bytes] = []
        self._size = 0
        self._scheduled = False
        self._written = 0  # bytes passed to `write`
        self._received = 0  # how many of them had been sent at the last call of `drained`
        self._lagged = False  # whether the peer was slow at that time
        self._flushed: asyncio.Event | None = None

    def open(self, transport: asyncio.Transport) -> None:
        """Write to this transport from now on."""
        self._transport = transport
        transport.set_write_buffer_limits(high=_HIGH_WATER, low=0)

    @property
    def queued(self) -> int:
        """Return the number of bytes that the system has not taken yet."""
        buffered = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return 0 if self.disconnected else self._size + buffered

    def write(self, data: bytes) -> None:
        """Write `data` after all earlier data."""
        if self.disconnected:
            return
        self._pieces.append(data)
        self._size += len(data)
        self._written += len(data)
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self.pass_on)

    async def flush(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds until all output is sent; return whether it was."""
        self.pass_on()
        if self._transport is None or self.disconnected or not self.queued:
            return not self.disconnected
        self._flushed = asyncio.Event()
        self._transport.set_write_buffer_limits(high=0)  # so that the end is reported
        try:
            await asyncio.wait_for(self._flushed.wait(), timeout)
        except TimeoutError:
            return False
        finally:
            self._flushed = None
            self._transport.set_write_buffer_limits(high=_HIGH_WATER, low=0)
        return not self.disconnected

    def drained(self) -> bool:
        """Return whether a slow peer has read anything since the last call."""
        received = self._written - self.queued
        moved = self._lagged and received > self._received
        self._received = received
        self._lagged = self.waiting
        return moved

    def end(self) -> None:
        """Close the socket when everything is sent."""
        self.pass_on()
        if self._transport is not None:
            self._transport.close()

    def finish(self) -> None:
        """Send the end of the output after all data, and continue to read."""
        self.pass_on()
        if self._transport is not None and self._transport.can_write_eof():
            self._transport.write_eof()

    def abort(self) -> None:
        """Close the socket immediately."""
        if self._transport is not None:
            self._transport.abort()

    def pause_reading(self) -> None:
        """Pause reading, so that the peer must wait."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Resume reading."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def pause(self) -> None:
        """Pause, because the system takes no more (`asyncio.BaseProtocol.pause_writing`)."""
        self.waiting = True

    def resume(self) -> None:
        """Resume: the system has taken everything (`asyncio.BaseProtocol.resume_writing`)."""
        self.waiting = False
        if self._flushed is not None:
            self._flushed.set()
        self._on_idle()

    def lost(self) -> None:
        """Drop all output, because the socket is closed."""
        self.disconnected = True
        self.waiting = False
        self._pieces.clear()
        self._size = 0
        if self._flushed is not None:
            self._flushed.set()
        self._on_idle()

    def pass_on(self) -> None:
        """Pass everything to the transport now."""
        self._scheduled = False
        if self._transport is None or not self._pieces:
            return
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        self._transport.write(data)
