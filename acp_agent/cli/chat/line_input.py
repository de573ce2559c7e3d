"""What is typed or piped in, line by line."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Iterator

_PIECE = 65_536


class LineInput:
    """Lines of stdin.

    A terminal is read by the loop, so that others can have it meanwhile. Anything else is read by a
    thread, as the loop cannot wait for files, one that does not hold up the end of the program.

    Args:
        terminal: whether stdin is one.
    """

    def __init__(self, *, terminal: bool) -> None:
        self._terminal = terminal
        self._arrived: asyncio.Queue[str | None] = asyncio.Queue()
        self._rest = b""
        self._ended = False

    def start(self) -> None:
        """Begin to read."""
        if self._terminal:
            self._listen()
            return
        loop = asyncio.get_running_loop()

        def later(read: Callable[[bytes], None], data: bytes) -> None:
            with contextlib.suppress(RuntimeError):  # the program ended without waiting
                loop.call_soon_threadsafe(read, data)

        def work() -> None:
            while data := _read():
                later(self._take, data)
            later(self._take, b"")

        threading.Thread(target=work, daemon=True, name="chat input").start()

    def stop(self) -> None:
        """Read no more."""
        if self._terminal and not self._ended:
            asyncio.get_running_loop().remove_reader(0)

    @contextlib.contextmanager
    def left_alone(self) -> Iterator[None]:
        """Leave what is typed to others, where that is possible."""
        self.stop()
        try:
            yield
        finally:
            self._listen()

    async def next(self) -> str | None:
        """The next line; None at the end."""
        return await self._arrived.get()

    def _listen(self) -> None:
        if self._terminal and not self._ended:
            asyncio.get_running_loop().add_reader(0, lambda: self._take(_read()))

    def _take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._arrived.put_nowait(line.decode("utf-8", "replace"))
        if not data:
            self.stop()
            self._ended = True
            if self._rest:
                self._arrived.put_nowait(self._rest.decode("utf-8", "replace"))
            self._arrived.put_nowait(None)


def _read() -> bytes:
    try:
        return os.read(0, _PIECE)
    except OSError:  # how Linux says that the terminal is gone
        return b""
