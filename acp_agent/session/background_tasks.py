"""What runs beside a session's turns and is waited for by nobody."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from acp_agent.errors import AcpAgentError

_log = logging.getLogger(__name__)


class BackgroundTasks:
    """Tasks that may fail, and end with their owner at the latest.

    Args:
        owner: whose they are, for the log.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = False

    def __len__(self) -> int:
        """How many run."""
        return len(self._tasks)

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work`, which is dropped where the owner is at its end already."""
        if self._ended:
            work.close()
            return
        task = asyncio.create_task(self._quietly(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # it may have ended before its first step

    async def _quietly(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except AcpAgentError as error:
            _log.info("left out in %s: %s", self._owner, error)
        except Exception:  # noqa: BLE001 - nobody waits for it whom it could be raised to
            _log.exception("something in the background of %s broke", self._owner)

    def cancel(self) -> None:
        """End all that runs, and let nothing more begin."""
        self._ended = True
        for task in self._tasks:
            task.cancel()

    async def wait(self) -> None:
        """Wait until nothing runs any more."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
