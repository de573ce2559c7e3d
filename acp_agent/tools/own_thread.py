"""Work in a thread of its own, which may be left behind when it does not end."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_own_thread(work: Callable[[], T], *, name: str, seconds: float) -> T:
    """Run in a thread that holds nothing up: a file made for it can keep a reader busy for ever.

    Args:
        work: what is run; what it raises is raised here.
        name: of the thread.
        seconds: how long it is waited for; after that, or when the waiting is cancelled, the thread
            goes on and nobody hears of it.

    Raises:
        TimeoutError: it did not end in time.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: Exception | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # without an error there is one

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except Exception as failure:  # noqa: BLE001 - raised where it is waited for
            error = failure
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name=name, daemon=True).start()
    async with asyncio.timeout(seconds):
        return await done
