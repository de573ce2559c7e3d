"""An answer of the scripted model that is counted as it goes out, to see when it has to wait."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from tests.support.model_script import Step


class Counted(list[Step]):
    """Steps of an answer, counted as the server takes them."""

    taken = 0

    def __iter__(self) -> Iterator[Step]:
        for step in super().__iter__():
            self.taken += 1
            yield step


async def until_still(steps: Counted, *, within: float = 60.0) -> None:
    """Wait until the server has not been able to send anything for half a second."""
    loop = asyncio.get_running_loop()
    deadline, since, last = loop.time() + within, loop.time(), -1
    while loop.time() - since < 0.5 or last == 0:
        assert loop.time() < deadline, "the stream goes on and on"
        if steps.taken != last:
            last, since = steps.taken, loop.time()
        await asyncio.sleep(0.02)
