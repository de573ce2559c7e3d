"""Whether a descriptor can be read or written at this moment."""

from __future__ import annotations

import os
import select
import stat
from typing import Final

# A write of at most this many bytes to a descriptor that is ready does not block (POSIX, `write`).
ATOMIC: Final = int(getattr(select, "PIPE_BUF", 512))


def tells_readiness(descriptor: int) -> bool:
    """Whether readiness means that a short write goes through: so for pipes and sockets.

    A terminal can be stopped by its user in mid-write, and a file is always ready, so both are
    better written from a thread.
    """
    if not hasattr(select, "poll"):
        return False
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


class WriteReadiness:
    """Asks again and again whether one descriptor takes `ATOMIC` bytes without blocking."""

    def __init__(self, descriptor: int) -> None:
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    def __call__(self) -> bool:
        """True, too, when the reader is gone: the write then says so."""
        return bool(self._poll.poll(0))


def wait_readable(descriptor: int) -> None:
    """Block the thread until there is something to read, or the end."""
    _wait(descriptor, writing=False)


def wait_writable(descriptor: int) -> None:
    """Block the thread until something can be written, or the reader is gone."""
    _wait(descriptor, writing=True)


def _wait(descriptor: int, *, writing: bool) -> None:
    if hasattr(select, "poll"):  # unlike select, it takes descriptors above 1023
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT if writing else select.POLLIN)
        poll.poll()
    else:
        select.select([] if writing else [descriptor], [descriptor] if writing else [], [])
