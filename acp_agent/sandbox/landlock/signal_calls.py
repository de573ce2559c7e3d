"""Send signals for a confined program, if the kernel's Landlock does not restrict signals.

A module of the launcher: it imports nothing of this package.
"""

from __future__ import annotations

import errno
import os

import kernel  # type: ignore[import-not-found] # a file in this one's folder
from caller import Caller, signed  # type: ignore[import-not-found] # so

_ALL = -1
NAMES = ("kill", "pidfd_send_signal", "tgkill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")


def call(name: str, caller: Caller, arguments: list[int]) -> int:
    """Execute a call. Raises OSError if it fails, or if a target is outside the sandbox."""
    first, second, third = (signed(argument) for argument in arguments[:3])
    if name == "kill":
        _send(_targets(first, caller), second)
    elif name == "pidfd_send_signal":
        _send([_pidfd_process(caller, first)], second)
    elif name in ("tgkill", "tkill"):
        thread, number = (second, third) if name == "tgkill" else (first, second)
        group = _status(thread, b"Tgid:")
        _require_descendant(group)
        kernel.call("tgkill", group, thread, number)
    else:
        raise PermissionError(errno.EPERM, name)
    return 0


def _targets(process: int, caller: Caller) -> list[int]:
    if process > 0:
        return [process]
    leader = _status(caller.process, b"Tgid:")
    if process == _ALL:
        return [
            candidate
            for candidate in _processes()
            if candidate != leader and is_descendant(candidate)
        ]
    group = os.getpgid(leader) if process == 0 else -process
    return [
        candidate
        for candidate in _processes()
        if _group(candidate) == group and is_descendant(candidate)
    ]


def _send(processes: list[int], number: int) -> None:
    if not processes:
        raise ProcessLookupError(errno.ESRCH, "no such process")
    for process in processes:
        _require_descendant(process)
        os.kill(process, number)


def _require_descendant(process: int) -> None:
    os.kill(process, 0)
    if not is_descendant(process):
        raise PermissionError(errno.EPERM, "it is not one of the sandbox")


def is_descendant(process: int) -> bool:
    """Return whether a process is a descendant of this one."""
    me = os.getpid()
    try:
        while process > 1:
            with open(f"/proc/{process}/stat", "rb") as file:
                process = int(file.read().rpartition(b") ")[2].split()[1])
            if process == me:
                return True
    except OSError:
        return False
    return False


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _group(process: int) -> int:
    try:
        return os.getpgid(process)
    except OSError:
        return -1


def _pidfd_process(caller: Caller, descriptor: int) -> int:
    with open(f"/proc/{caller.process}/fdinfo/{descriptor}", "rb") as file:
        for line in file:
            if line.startswith(b"Pid:"):
                return int(line.split()[1])
    raise OSError(errno.EBADF, "no descriptor of a process")


def _status(process: int, name: bytes) -> int:
    with open(f"/proc/{process}/status", "rb") as file:
        for line in file:
            if line.startswith(name):
                return int(line.split()[1])
    raise ProcessLookupError(errno.ESRCH, "no such process")
