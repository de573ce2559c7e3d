"""Writing that never makes the event loop wait: a thread does it, behind a bounded queue."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """Hands items, in order, to `consume` in a thread of its own, which the first item starts.

    Args:
        name: the thread's name.
        consume: what to do with the items that wait; must not raise.
        dropped: told, in the thread, how many items were left out because too much waited.
        limit_bytes: how much may wait.
    """

    def __init__(
        self,
        name: str,
        consume: Callable[[list[T]], None],
        dropped: Callable[[int], None],
        *,
        limit_bytes: int,
    ) -> None:
        self._name = name
        self._consume = consume
        self._dropped = dropped
        self._limit = limit_bytes
        self._waiting: deque[tuple[T, int]] = deque()
        self._bytes = 0
        self._lost = 0
        self._closed = False
        self._busy = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def put(self, item: T, size: int) -> None:
        """Queue an item of about `size` bytes. Returns at once; drops it where too much waits."""
        with self._changed:
            if self._closed:
                return
            if self._bytes + size > self._limit and self._waiting:
                self._lost += 1
                return
            self._waiting.append((item, size))
            self._bytes += size
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, timeout: float) -> bool:
        """Wait until all that waits is written; false when `timeout` seconds were not enough."""
        deadline = time.monotonic() + timeout
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._waiting and not self._busy, max(0.0, deadline - time.monotonic())
            )

    def close(self, timeout: float) -> None:
        """Take nothing more, and write what waits, for at most `timeout` seconds."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                items = [item for item, _ in self._waiting]
                self._waiting.clear()
                self._bytes = 0
                lost, self._lost = self._lost, 0
                self._busy = True
            self._consume(items)
            if lost:
                self._dropped(lost)
