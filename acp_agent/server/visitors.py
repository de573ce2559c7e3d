"""How many sockets may be open at the same time, so that strangers keep nobody out.

Whoever reaches the address can open a socket. One is a stranger until it has sent the head of a
request that is let in, with the token or the secret path. Where there is room for no more, the
stranger that has been there longest gives way to who comes.
"""

from __future__ import annotations

from collections.abc import Callable


class Visitors:
    """The open sockets of one server.

    Args:
        most: how many there may be.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._strangers: dict[Visitor, None] = {}  # in the order in which they came
        self._known: set[Visitor] = set()

    def enter(self, drop: Callable[[], None]) -> Visitor | None:
        """A socket comes in; None where there is no room for it.

        Args:
            drop: closes the socket at once.
        """
        if len(self._strangers) + len(self._known) >= self._most:
            if not self._strangers:
                return None
            oldest = next(iter(self._strangers))
            oldest.leave()
            oldest.drop()
        visitor = Visitor(self, drop)
        self._strangers[visitor] = None
        return visitor

    def let_in(self, visitor: Visitor) -> None:
        """A socket is no stranger any more."""
        if visitor in self._strangers:
            del self._strangers[visitor]
            self._known.add(visitor)

    def leave(self, visitor: Visitor) -> None:
        """A socket is closed."""
        self._strangers.pop(visitor, None)
        self._known.discard(visitor)


class Visitor:
    """One socket, as long as it is open. Made by `Visitors.enter`.

    Attributes:
        drop: closes it at once.
    """

    def __init__(self, visitors: Visitors, drop: Callable[[], None]) -> None:
        self._visitors = visitors
        self.drop = drop

    def let_in(self) -> None:
        """It sent the head of a request that is let in."""
        self._visitors.let_in(self)

    def leave(self) -> None:
        """It is closed."""
        self._visitors.leave(self)
