"""Waiting for what nobody tells of, such as the end of another program's child."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(holds: Callable[[], object], *, within: float = 60.0) -> None:
    """Look every hundredth of a second whether it holds.

    Raises:
        TimeoutError: it did not within so many seconds.
    """
    async with asyncio.timeout(within):
        while not holds():
            await asyncio.sleep(0.01)
