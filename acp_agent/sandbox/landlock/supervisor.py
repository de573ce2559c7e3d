"""Execute calls for a confined program that Landlock cannot decide (see `system_calls.toml`).

Calls that change a file's mode, owner or times, or names in a folder without a grant, wait until
this process answers (seccomp_unotify(2)). Another thread of the program could change the call's
arguments in memory after a check. So the supervisor never approves a call because of its path. It
either executes the call itself, with its own copy of the path and a descriptor of the file or
folder; or fails it; or lets it continue, so that Landlock decides. Calls are handled one at a time,
so no confined process can replace a name between two steps.

A module of the launcher: it imports nothing of this package.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # `signal` without its enumerations; has no stub
import _thread
import errno
import fcntl
import os
import select
import struct
import time

import file_calls  # type: ignore[import-not-found] # a file in this one's folder
import signal_calls  # type: ignore[import-not-found] # so
from caller import (  # type: ignore[import-not-found] # so
    Answered,
    Caller,
    LandlockDecides,
    refuse,
    respond,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from acp_agent.sandbox.landlock.confine import LauncherOptions

# linux/seccomp.h
_RECEIVE, _IS_VALID = 0xC0502100, 0x40082102
_NOTIFICATION = struct.Struct("=QIIiIQ6Q")
_CONTINUE = 1
_END_LIMIT = 5.0  # seconds for the remaining processes of a command to exit


class Supervisor:
    """Answers the calls of one command."""

    def __init__(self, options: LauncherOptions, listener: int) -> None:
        self._listener = listener
        self._names = options["supervised_calls"]
        self._calls = file_calls.FileCalls(options)
        self._signals = signal_calls.NAMES
        self._buffer = bytearray(_NOTIFICATION.size)

    def answer_call(self) -> None:
        """Answer a waiting call; do nothing if the program has exited."""
        self._buffer[:] = bytes(len(self._buffer))
        try:
            fcntl.ioctl(self._listener, _RECEIVE, self._buffer)
        except OSError:
            return
        identity, process, _, number, _, _, *arguments = _NOTIFICATION.unpack(self._buffer)
        try:
            with Caller(process, self._listener, identity) as caller:
                fcntl.ioctl(self._listener, _IS_VALID, struct.pack("=Q", identity))
                value = self._dispatch(self._names[number], caller, arguments)
            respond(self._listener, identity, value)
        except LandlockDecides:
            respond(self._listener, identity, flags=_CONTINUE)
        except Answered:
            return
        except OSError as error:
            refuse(self._listener, identity, error)
        except Exception:  # noqa: BLE001 - only this call fails
            respond(self._listener, identity, error=-errno.EPERM)

    def _dispatch(self, name: str, caller: Caller, arguments: list[int]) -> int:
        if name in self._signals:
            return int(signal_calls.call(name, caller, arguments))
        return int(self._calls.call(name, caller, arguments))


def supervise(options: LauncherOptions, listener: int, child: int, ended: int) -> int:
    """Answer calls until the command ends, then kill its remaining processes.

    Args:
        ended: a descriptor that hangs up when the launcher has exited.

    Returns:
        The command's exit status as in a shell.
    """
    os.umask(0)
    reaper = Reaper(child)
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    poll.register(reaper.ended, 0)
    poll.register(ended, 0)
    supervisor = Supervisor(options, listener)
    while True:
        ready = dict(poll.poll())
        if reaper.ended in ready or ended in ready:
            break
        if ready.get(listener, 0) & select.POLLIN:
            supervisor.answer_call()
        elif listener in ready:  # all confined processes have exited
            poll.unregister(listener)
    os.close(listener)
    deadline = time.monotonic() + _END_LIMIT
    while (remaining := children()) and time.monotonic() < deadline:
        for process in remaining:
            try:
                os.kill(process, _signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.001)
    return reaper.status


class Reaper:
    """Reaps child and orphaned processes in a thread, since a signal could interrupt an answer.

    Attributes:
        ended: a descriptor that hangs up when the command has ended.
        status: the command's exit status as in a shell.
    """

    def __init__(self, child: int) -> None:
        self.ended, self._open = os.pipe()
        self.status: int = 128 + 9  # killed
        self._child = child
        _thread.start_new_thread(self._run, ())

    def _run(self) -> None:
        while True:
            try:
                process, status = os.waitpid(-1, 0)
            except ChildProcessError:
                return
            if process == self._child:
                code = os.waitstatus_to_exitcode(status)
                self.status = code if code >= 0 else 128 - code
                os.close(self._open)


def children() -> list[int]:
    """Return the children of this process."""
    pids: list[bytes] = []
    for thread in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/children", "rb") as file:
                pids += file.read().split()
        except (FileNotFoundError, ProcessLookupError):  # the thread has ended
            continue
    return list(map(int, pids))
