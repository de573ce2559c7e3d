"""What a connection needs from whatever carries its messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from msgspec import Struct

LIMIT: Final = 32 * 1024 * 1024  # bytes a message may have by default


class Oversize(Struct, frozen=True):
    """In place of a message that was longer than `limit` bytes and was thrown away."""

    limit: int


class Transport(Protocol):
    """A two-way stream of messages. All methods are called in the event loop's thread.

    Attributes:
        on_idle: Called whenever everything written was passed on after a time of waiting, and when
            the peer is found to be gone. The connection sets it.
    """

    on_idle: Callable[[], None] | None

    @property
    def gone(self) -> bool:
        """Whether the peer reads no more; what is written then goes nowhere."""

    @property
    def waiting(self) -> bool:
        """Whether the peer reads slower than is written, so that something is held back."""

    @property
    def queued(self) -> int:
        """How many bytes were written and not passed on yet."""

    async def read_message(self) -> bytes | Oversize | None:
        """The next message without its line end; None at the end."""

    def write(self, data: bytes) -> None:
        """Send whole messages, each with its line end, after those written before. Never waits."""

    async def flush(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds until all is passed on; whether it was."""

    def close(self) -> None:
        """Stop reading: `read_message` returns None. What was written still goes out."""
