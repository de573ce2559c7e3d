"""Run blocking work in daemon threads, which do not delay the exit of the program.

The event loop joins its own executor when the program ends, so a name server that does not answer
would delay the exit. Daemon threads are abandoned instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

Result = TypeVar("Result")

_RELEASE_DELAY = 3.0  # seconds; the collection blocks the process for a moment


async def in_daemon_thread(work: Callable[[], Result], *, name: str | None = None) -> Result:
    """Return the result of `work`, or raise its error. A cancelled call abandons the thread."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def settle(result: Result | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type] # a Result where there is no error

    def run() -> None:
        result: Result | None = None
        error: BaseException | None = None
        try:
            result = work()
        except BaseException as raised:  # noqa: BLE001 - raised again in the awaiting task
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await future


class MemoryRelease:
    """Returns freed memory to the system some seconds after sessions have ended."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None

    def schedule(self) -> None:
        """Return freed memory soon; once, however many sessions end before that."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_RELEASE_DELAY, self._release)

    def _release(self) -> None:
        from acp_agent.platform.posix import release_memory  # noqa: PLC0415 - rarely needed

        self._timer = None
        # Sessions contain reference cycles, so only the garbage collector frees them, and an idle
        # process never runs it. Start-up froze the first session along with everything else.
        frozen = gc.get_freeze_count()
        gc.unfreeze()
        gc.collect()
        if frozen:
            gc.freeze()
        threading.Thread(target=release_memory, name="release-memory", daemon=True).start()


async def run_to_end(work: Awaitable[Result], stop: Callable[[], None] = lambda: None) -> Result:
    """Return the result of `work`, which ends before a cancellation of the caller takes effect.

    Args:
        stop: called when the caller is cancelled, to end the work early.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop()
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        task.exception()  # mark it as retrieved
        raise
