"""Limits the open sockets, so that clients without the token cannot keep others out.

Whoever reaches the address can open a socket. One is unauthorized until it has sent the head of a
request that is accepted, with the token or the secret path. Where no slot is free, a new socket
takes that of the oldest unauthorized one.
"""

from __future__ import annotations

from collections.abc import Callable


class SocketSlots:
    """The open sockets of one server.

    Args:
        limit: How many there may be.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._unauthorized: dict[SocketSlot, None] = {}  # in the order in which they came
        self._authorized: set[SocketSlot] = set()

    def acquire(self, abort: Callable[[], None]) -> SocketSlot | None:
        """Return a slot for a new socket; None where there is none.

        Args:
            abort: Closes the socket at once.
        """
        if len(self._unauthorized) + len(self._authorized) >= self._limit:
            if not self._unauthorized:
                return None
            oldest = next(iter(self._unauthorized))
            oldest.release()
            oldest.abort()
        slot = SocketSlot(self, abort)
        self._unauthorized[slot] = None
        return slot

    def authorize(self, slot: SocketSlot) -> None:
        """See `SocketSlot.authorize`."""
        if slot in self._unauthorized:
            del self._unauthorized[slot]
            self._authorized.add(slot)

    def release(self, slot: SocketSlot) -> None:
        """See `SocketSlot.release`."""
        self._unauthorized.pop(slot, None)
        self._authorized.discard(slot)


class SocketSlot:
    """The place of one open socket. Made by `SocketSlots.acquire`.

    Attributes:
        abort: Closes the socket at once.
    """

    def __init__(self, slots: SocketSlots, abort: Callable[[], None]) -> None:
        self._slots = slots
        self.abort = abort

    def authorize(self) -> None:
        """Keep the slot until the socket is closed: it sent a request that was accepted."""
        self._slots.authorize(self)

    def release(self) -> None:
        """Free the slot: the socket is closed."""
        self._slots.release(self)
