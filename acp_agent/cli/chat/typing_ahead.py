"""What is typed while the chat starts: kept for its prompt as it was typed, and not echoed."""

from __future__ import annotations

import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def typing_ahead() -> Iterator[None]:
    """Let the terminal wait for no line, echo nothing, and leave Enter what it is.

    Otherwise an Enter before the prompt is there would come to it as Ctrl-J, a line break. Ctrl-C
    goes on being a signal. The terminal is what it was afterwards.
    """
    try:
        before = termios.tcgetattr(sys.stdin.fileno())
    except termios.error:
        yield
        return
    iflag, oflag, cflag, lflag, *rest = before
    quiet = [iflag & ~termios.ICRNL, oflag, cflag, lflag & ~(termios.ICANON | termios.ECHO), *rest]
    termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, quiet)
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)
