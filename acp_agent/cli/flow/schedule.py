"""The schedule of a workflow's next run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from acp_agent.extensions.workflows.types import Triggers

_MAX_WAIT = 30.0  # seconds; the clock may be changed, and the computer may sleep


class Schedule:
    """The scheduled times of a workflow. Times missed during a run lead to one run after it.

    Args:
        now: returns the local time, without a time zone.
        monotonic: returns seconds of a monotonic clock.
    """

    def __init__(
        self,
        triggers: Triggers,
        *,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._triggers = triggers
        self._now = now
        self._monotonic = monotonic
        self._next_interval = monotonic() + (triggers.every or 0.0)
        self._next_time = self._next_cron()

    async def wait_next(self) -> None:
        """Wait until the next time, then schedule the following one."""
        while True:
            wait = self._seconds_left()
            if wait <= 0:
                break
            await asyncio.sleep(min(wait, _MAX_WAIT))
        self.advance()

    def advance(self) -> None:
        """Skip the times that have passed."""
        every = self._triggers.every
        if every is not None:
            passed = self._monotonic() - self._next_interval
            if passed >= 0:
                self._next_interval += every * (int(passed / every) + 1)
        if self._next_time is not None and self._next_time <= self._now():
            self._next_time = self._next_cron()

    def _seconds_left(self) -> float:
        remaining = []
        if self._triggers.every is not None:
            remaining.append(self._next_interval - self._monotonic())
        if self._next_time is not None:
            remaining.append((self._next_time - self._now()).total_seconds())
        return min(remaining, default=_MAX_WAIT)

    def _next_cron(self) -> datetime | None:
        moment = self._now()
        times = (line.next_after(moment) for line in self._triggers.cron)
        return min((time for time in times if time is not None), default=None)
