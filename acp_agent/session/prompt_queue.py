"""Prompts that wait for the turn that runs, and then begin turns of their own, one after the other.

They are held in memory alone: nothing of a prompt is in the conversation before its turn begins, so
one that waits when the process ends was never said, and its request was never answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class PromptQueue:
    """The prompts of one session that wait.

    Attributes:
        waiting: how many there are.
    """

    def __init__(self) -> None:
        self.waiting = 0
        self._front = asyncio.Lock()  # whoever has it is the next; the lock is fair

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait behind those that came before; who is inside is the next to begin a turn."""
        self.waiting += 1
        try:
            async with self._front:
                yield
        finally:
            self.waiting -= 1
