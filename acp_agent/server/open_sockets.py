"""Limits how many sockets are open, so that unauthenticated ones keep nobody out.

Anyone who reaches the address can open a socket. It is a stranger until it sends the head of a
request with the token or the secret path. At the limit, the oldest stranger is closed for the new
socket.
"""

from __future__ import annotations

from collections.abc import Callable


class OpenSockets:
    """The open sockets of one server.

    Args:
        most: how many there may be.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._strangers: dict[OpenSocket, None] = {}  # in the order of arrival
        self._known: set[OpenSocket] = set()

    def enter(self, drop: Callable[[], None]) -> OpenSocket | None:
        """Register a new socket; None if there is no room for it.

        Args:
            drop: closes the socket at once.
        """
        if len(self._strangers) + len(self._known) >= self._most:
            if not self._strangers:
                return None
            oldest = next(iter(self._strangers))
            oldest.leave()
            oldest.drop()
        open_socket = OpenSocket(self, drop)
        self._strangers[open_socket] = None
        return open_socket

    def admit(self, open_socket: OpenSocket) -> None:
        """Stop treating a socket as a stranger."""
        if open_socket in self._strangers:
            del self._strangers[open_socket]
            self._known.add(open_socket)

    def leave(self, open_socket: OpenSocket) -> None:
        """Remove a closed socket."""
        self._strangers.pop(open_socket, None)
        self._known.discard(open_socket)


class OpenSocket:
    """One open socket. Made by `OpenSockets.enter`.

    Attributes:
        drop: closes it at once.
    """

    def __init__(self, open_sockets: OpenSockets, drop: Callable[[], None]) -> None:
        self._open_sockets = open_sockets
        self.drop = drop

    def admit(self) -> None:
        """Stop treating it as a stranger."""
        self._open_sockets.admit(self)

    def leave(self) -> None:
        """Remove it after it was closed."""
        self._open_sockets.leave(self)
