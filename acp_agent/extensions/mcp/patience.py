"""Time limits of calls that stand still while a server lets the user be asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager


class Patience:
    """The limits of one connection's calls."""

    def __init__(self) -> None:
        self._limits: dict[asyncio.Timeout, float] = {}
        self._asking = 0

    @asynccontextmanager
    async def limit(self, seconds: float) -> AsyncIterator[None]:
        """Raise TimeoutError after so many seconds in which the user was not being asked."""
        async with asyncio.timeout(None if self._asking else seconds) as limit:
            self._limits[limit] = seconds
            try:
                yield
            finally:
                del self._limits[limit]

    @contextmanager
    def asking(self) -> Iterator[None]:
        """The user is being asked: no time passes, and afterwards every call has its own anew."""
        self._asking += 1
        self._set(None)
        try:
            yield
        finally:
            self._asking -= 1
            if not self._asking:
                self._set(asyncio.get_running_loop().time())

    def _set(self, now: float | None) -> None:
        for limit, seconds in self._limits.items():
            if not limit.expired():
                limit.reschedule(None if now is None else now + seconds)
