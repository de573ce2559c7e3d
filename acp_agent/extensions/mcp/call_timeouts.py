"""Time limits of calls, which pause while a server asks the user."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager


class CallTimeouts:
    """Time limits of a connection's calls, which pause while the server asks the user."""

    def __init__(self) -> None:
        self._limits: dict[asyncio.Timeout, float] = {}
        self._open_questions = 0

    @asynccontextmanager
    async def limit(self, seconds: float) -> AsyncIterator[None]:
        """Raise TimeoutError after `seconds`, not counting time in which the user is asked."""
        async with asyncio.timeout(None if self._open_questions else seconds) as limit:
            self._limits[limit] = seconds
            try:
                yield
            finally:
                del self._limits[limit]

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause limits while the user is asked; afterwards each call gets its full time again."""
        self._open_questions += 1
        self._set(None)
        try:
            yield
        finally:
            self._open_questions -= 1
            if not self._open_questions:
                self._set(asyncio.get_running_loop().time())

    def _set(self, now: float | None) -> None:
        for limit, seconds in self._limits.items():
            if not limit.expired():
                limit.reschedule(None if now is None else now + seconds)
