"""What only POSIX systems have. Another system is a second module with these functions."""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path


def try_lock(descriptor: int) -> bool:
    """Take an exclusive lock on an open file; false when another process has it.

    The lock goes with the process, however that ends.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def own_only(path: Path) -> None:
    """Let nobody but the owner read, write or (a folder) enter `path`."""
    path.chmod(0o700 if path.is_dir() else 0o600)


def end_group(leader: int, *, at_once: bool) -> None:
    """Ask every process of a group to end, or end it `at_once`. Silent when it is gone."""
    try:
        os.killpg(leader, signal.SIGKILL if at_once else signal.SIGTERM)
    except (ProcessLookupError, PermissionError):
        return


def group_alive(leader: int) -> bool:
    """Whether a process of the group is left (zombies not yet reaped count)."""
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
