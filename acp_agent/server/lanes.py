"""One lane a session: its requests start in the order in which they came."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Lane:
    """The order of one session's requests, and how often it was cancelled."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.cancels = 0
        self.users = 0


class Lanes:
    """The lanes of a connection; a lane lives while something is in it."""

    def __init__(self) -> None:
        self._lanes: dict[str, Lane] = {}

    @asynccontextmanager
    async def enter(self, session: str) -> AsyncIterator[Lane]:
        """Wait for one's place in the lane and keep it. Not yet cancelled counts from the call."""
        lane = self._lanes.setdefault(session, Lane())
        lane.users += 1
        try:
            yield lane
        finally:
            lane.users -= 1
            if lane.users == 0:
                self._lanes.pop(session, None)

    def cancel(self, session: str) -> None:
        """Cancel what is in the lane; what comes later is not meant."""
        lane = self._lanes.get(session)
        if lane is not None:
            lane.cancels += 1
