"""How much of one kind may go on in the process at once, and who is next."""

from __future__ import annotations

import asyncio
from collections import deque


class Slots:
    """A number of slots for all sessions.

    Who waits is served in the order of coming within a session, and the sessions in turn: one that
    wants much does not keep the others waiting for all of it.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # the session that is next first

    @property
    def full(self) -> bool:
        """Whether who takes one now has to wait."""
        return self._free == 0

    async def take(self, session: str) -> None:
        """Take a slot for a session, as soon as it is its turn."""
        if self._free:  # nobody waits then: what is given back goes to who waits
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(session, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was given to us in the same moment
                self.give_back()
            else:
                self._forget(session, turn)
            raise

    def give_back(self) -> None:
        """Let whoever is next have the slot."""
        while self._waiting:
            session = next(iter(self._waiting))
            queue = self._waiting.pop(session)
            turn = queue.popleft()
            if queue:
                self._waiting[session] = queue  # behind the others
            if not turn.done():  # else it was cancelled in this moment
                turn.set_result(None)
                return
        self._free += 1

    def _forget(self, session: str, turn: asyncio.Future[None]) -> None:
        queue = self._waiting.get(session)
        if queue is not None and turn in queue:
            queue.remove(turn)
            if not queue:
                del self._waiting[session]
