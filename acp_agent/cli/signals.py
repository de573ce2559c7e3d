"""Signal handlers that call functions in the event loop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from acp_agent.platform import posix


@contextmanager
def ending_signals(leave: Callable[[int], None]) -> Iterator[None]:
    """Call `leave` with the exit status, in the running loop, at SIGTERM and SIGHUP.

    Otherwise such a signal would end the program before it could end its child processes.
    """
    loop = asyncio.get_running_loop()
    numbers = posix.shutdown_signals()
    for number in numbers:
        loop.add_signal_handler(number, leave, 128 + number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


@contextmanager
def interrupts(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` in the running loop at each SIGINT, instead of raising KeyboardInterrupt.

    Works in the main thread only, where signals are handled.
    """
    loop = asyncio.get_running_loop()
    before = signal.signal(signal.SIGINT, lambda *_: loop.call_soon_threadsafe(stop))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
