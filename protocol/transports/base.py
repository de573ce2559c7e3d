"""The interface of a transport, and how it assembles messages of limited size."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from protocol.codec.member_scanner import MemberScanner

LIMIT: Final = 32 * 1024 * 1024  # bytes a message may have by default
_LONG: Final = 256 * 1024  # bytes; in longer messages, members are scanned piece by piece


class Oversize(Struct, frozen=True):
    """Stands for a message that was longer than `limit` bytes and was discarded.

    `raw_id` is the JSON of its ID, or null if it has none or a long one. `is_response` means that
    it answers a request of this side.
    """

    limit: int
    raw_id: bytes = b"null"
    is_response: bool = False


class BoundedText:
    """Assembles messages, one at a time, from pieces of any size.

    A message of more than `limit` bytes is discarded and replaced by an `Oversize`.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._text: bytes | bytearray = b""
        self._size = 0
        self._scanner: MemberScanner | None = None  # only for a long message

    @property
    def is_too_long(self) -> bool:
        """Return whether the message already exceeds the limit."""
        return self._size > self._limit

    def add(self, part: bytes) -> None:
        """Add a piece of the message."""
        self._size += len(part)
        if self._scanner is None and self._size > min(_LONG, self._limit):
            # Scan piece by piece from here on: scanning everything at the limit would take long.
            self._scanner = _new_scanner()
            self._scanner.feed(bytes(self._text))
        if self._scanner is not None:
            self._scanner.feed(part)
        if self._size > self._limit:
            self._text = b""
        elif not self._text:
            self._text = part
        else:
            if isinstance(self._text, bytes):
                self._text = bytearray(self._text)
            self._text += part

    def take(self) -> bytes | Oversize:
        """End the message and return it."""
        text, self._text = self._text, b""
        scanner, self._scanner = self._scanner, None
        size, self._size = self._size, 0
        if size <= self._limit:
            return bytes(text)
        members = {} if scanner is None else scanner.members
        return Oversize(
            self._limit,
            members.get("id", b"null"),
            "method" not in members and ("result" in members or "error" in members),
        )


def _new_scanner() -> MemberScanner:
    from protocol.codec.member_scanner import MemberScanner  # noqa: PLC0415 - few messages are long

    return MemberScanner(("id", "method", "result", "error"))


class Transport(Protocol):
    """A two-way stream of messages. All methods are called in the event loop's thread.

    Attributes:
        on_idle: called whenever all output has been sent after a time of waiting, and when the
            peer is found to be gone. The connection sets it.
    """

    on_idle: Callable[[], None] | None

    @property
    def disconnected(self) -> bool:
        """Return whether the peer has stopped reading; later output is lost."""

    @property
    def waiting(self) -> bool:
        """Return whether output waits because the peer reads too slowly."""

    @property
    def queued(self) -> int:
        """Return the number of bytes that the system has not taken yet."""

    async def read_message(self) -> bytes | Oversize | None:
        """Return the next message without its line end; None at the end."""

    def write(self, data: bytes) -> None:
        """Send whole messages, each with its line end, after earlier ones. Never waits."""

    async def flush(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds until all output is sent; return whether it was."""

    def close(self) -> None:
        """Stop reading: `read_message` returns None. Pending output is still sent."""
