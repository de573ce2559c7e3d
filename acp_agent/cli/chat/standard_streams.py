"""Standard input and output: lines from a terminal or pipe, early key presses, broken pipes."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from acp_agent.cli.screen import Paint, Style

_CHUNK_BYTES = 65_536


class LineInput:
    """Reads lines from stdin.

    The event loop reads a terminal, so that reading can be paused. A daemon thread reads anything
    else, because the loop cannot wait for files.
    """

    def __init__(self, *, terminal: bool) -> None:
        self._terminal = terminal
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._partial_line = b""
        self._ended = False

    def start(self) -> None:
        """Start reading."""
        if self._terminal:
            self._listen()
            return
        loop = asyncio.get_running_loop()

        def read() -> None:
            with suppress(RuntimeError):  # the loop is closed
                while data := _read():
                    loop.call_soon_threadsafe(self._feed, data)
                loop.call_soon_threadsafe(self._feed, b"")

        threading.Thread(target=read, daemon=True, name="chat input").start()

    def stop(self) -> None:
        """Stop reading."""
        if self._terminal and not self._ended:
            asyncio.get_running_loop().remove_reader(0)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause reading, so that another program receives the input."""
        self.stop()
        try:
            yield
        finally:
            self._listen()

    async def next(self) -> str | None:
        """Return the next line; None at the end."""
        return await self._lines.get()

    def _listen(self) -> None:
        if self._terminal and not self._ended:
            asyncio.get_running_loop().add_reader(0, lambda: self._feed(_read()))

    def _feed(self, data: bytes) -> None:
        *lines, self._partial_line = (self._partial_line + data).split(b"\n")
        for line in lines:
            self._lines.put_nowait(line.decode("utf-8", "replace"))
        if not data:
            self.stop()
            self._ended = True
            if self._partial_line:
                self._lines.put_nowait(self._partial_line.decode("utf-8", "replace"))
            self._lines.put_nowait(None)


def _read() -> bytes:
    try:
        return os.read(0, _CHUNK_BYTES)
    except OSError:  # on Linux: the terminal is gone
        return b""


def stop_on_write_error(paint: Paint, out: TextIO, on_error: Callable[[OSError], None]) -> Paint:
    """Return a `paint` that does not fail when `out` cannot be written.

    `on_error` is called once, for example when the reader of `out` exits or the disk is full.
    Later output is lost.
    """

    def safe_paint(text: str, style: Style) -> None:
        try:
            paint(text, style)
        except OSError as error:
            null_fd = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null_fd, out.fileno())
            os.close(null_fd)
            on_error(error)

    return safe_paint


@contextmanager
def keep_typeahead() -> Iterator[None]:
    """Save keys that are typed while the chat starts for its prompt, without an echo.

    Otherwise Enter would reach the prompt as Ctrl-J, a line break. Ctrl-C remains a signal.
    """
    try:
        before = termios.tcgetattr(sys.stdin.fileno())
    except termios.error:
        yield
        return
    iflag, oflag, cflag, lflag, *speeds = before
    quiet = [
        iflag & ~termios.ICRNL,
        oflag,
        cflag,
        lflag & ~(termios.ICANON | termios.ECHO),
        *speeds,
    ]
    termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, quiet)
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)
