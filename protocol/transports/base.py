"""The interface of a transport, and how it assembles messages of limited size."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from protocol.codec.member_scanner import MemberScanner

LIMIT: Final = 32 * 1024 * 1024  # bytes a message may have by default
_LONG: Final = 256 * 1024  # bytes from which the members of a message are looked for


class Oversize(Struct, frozen=True):
    """Stands for a message that was longer than `limit` bytes and was discarded.

    `raw_id` is its id's JSON, null where it has none or a long one; `is_response` says that it
    answers a request of this side.
    """

    limit: int
    raw_id: bytes = b"null"
    is_response: bool = False


class BoundedText:
    """Assembles one message after the other from pieces of any size.

    A message of more than `limit` bytes is not kept: of it an `Oversize` is left.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._text: bytes | bytearray = b""
        self._size = 0
        self._scanner: MemberScanner | None = None  # of a long message

    @property
    def is_too_long(self) -> bool:
        """Whether the message is over the limit already."""
        return self._size > self._limit

    def add(self, part: bytes) -> None:
        """Add a piece of the message."""
        self._size += len(part)
        if self._scanner is None and self._size > min(_LONG, self._limit):
            # Piece by piece from here on: a look at all of it at the limit would take long.
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
        on_idle: Called whenever everything written was passed on after a time of waiting, and when
            the peer is found to be gone. The connection sets it.
    """

    on_idle: Callable[[], None] | None

    @property
    def gone(self) -> bool:
        """Whether the peer has stopped reading; what is written then is lost."""

    @property
    def waiting(self) -> bool:
        """Whether output waits because the peer reads too slowly."""

    @property
    def queued(self) -> int:
        """How many written bytes the system has not taken yet."""

    async def read_message(self) -> bytes | Oversize | None:
        """The next message without its line end; None at the end."""

    def write(self, data: bytes) -> None:
        """Send whole messages, each with its line end, after those written before. Never waits."""

    async def flush(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds until all is passed on; whether it was."""

    def close(self) -> None:
        """Stop reading: `read_message` returns None. What was written still goes out."""
