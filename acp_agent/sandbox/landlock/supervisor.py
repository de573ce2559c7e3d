"""Does for a confined program what Landlock cannot judge: see `system_calls.toml`.

Calls that change a file's mode, owner or times, or names in a folder that has no grant of its own,
wait until this process answers (seccomp_unotify(2)). It never lets such a call go on if that would
need a judgement of what the program's memory says, which another thread could change meanwhile:
either it does the call itself, with its own copy of the path and with a descriptor of the file or
the folder; or the call fails; or it goes on, and Landlock judges it. One call is done after the
other, so nothing that is confined can exchange a name between two steps.

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
    from acp_agent.sandbox.landlock.confine import Orders

# linux/seccomp.h
_RECEIVE, _IS_VALID = 0xC0502100, 0x40082102
_NOTIFICATION = struct.Struct("=QIIiIQ6Q")
_CONTINUE = 1
_END_LIMIT = 5.0  # seconds for what a command leaves to be gone


class Supervisor:
    """Answers the calls of one command.

    Args:
        orders: what the launcher was told.
        listener: the descriptor that the calls are read from.
    """

    def __init__(self, orders: Orders, listener: int) -> None:
        self._listener = listener
        self._names = orders["asked"]
        self._calls = file_calls.FileCalls(orders)
        self._signals = signal_calls.NAMES
        self._buffer = bytearray(_NOTIFICATION.size)

    def answer_one(self) -> None:
        """Answer a call that waits; does nothing where the program is gone."""
        self._buffer[:] = bytes(len(self._buffer))
        try:
            fcntl.ioctl(self._listener, _RECEIVE, self._buffer)
        except OSError:
            return
        identity, process, _, number, _, _, *arguments = _NOTIFICATION.unpack(self._buffer)
        try:
            with Caller(process, self._listener, identity) as caller:
                fcntl.ioctl(self._listener, _IS_VALID, struct.pack("=Q", identity))
                value = self._do(self._names[number], caller, arguments)
            respond(self._listener, identity, value)
        except LandlockDecides:
            respond(self._listener, identity, flags=_CONTINUE)
        except Answered:
            return
        except OSError as error:
            refuse(self._listener, identity, error)
        except Exception:  # noqa: BLE001 - whatever it is, the call fails, and the others go on
            respond(self._listener, identity, error=-errno.EPERM)

    def _do(self, name: str, caller: Caller, arguments: list[int]) -> int:
        if name in self._signals:
            return int(signal_calls.call(name, caller, arguments))
        return int(self._calls.call(name, caller, arguments))


def supervise(orders: Orders, listener: int, child: int, ended: int) -> int:
    """Answer calls until the command has ended, then end all that it left.

    Args:
        orders: what the launcher was told.
        listener: the descriptor that the calls are read from.
        child: the command's process.
        ended: a descriptor that is closed when the launcher is gone.

    Returns:
        The command's status as a shell has it.
    """
    os.umask(0)
    reaper = Reaper(child)
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    poll.register(reaper.ended, 0)
    poll.register(ended, 0)
    supervisor = Supervisor(orders, listener)
    while True:
        ready = dict(poll.poll())
        if reaper.ended in ready or ended in ready:
            break
        if ready.get(listener, 0) & select.POLLIN:
            supervisor.answer_one()
        elif listener in ready:  # nobody is left to ask
            poll.unregister(listener)
    os.close(listener)
    until = time.monotonic() + _END_LIMIT
    while (left := children()) and time.monotonic() < until:
        for process in left:
            try:
                os.kill(process, _signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.001)
    return reaper.status


class Reaper:
    """Reaps all that loses its parent, in a thread: no signal is to interrupt an answer.

    Attributes:
        ended: a descriptor that hangs up when the command has ended.
        status: the command's status as a shell has it.
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
    found: list[bytes] = []
    for thread in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{thread}/children", "rb") as file:
            found += file.read().split()
    return list(map(int, found))
