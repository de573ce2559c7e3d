"""Confine this process with Landlock and filters of system calls, then execute a command.

Without a supervisor, this process executes the command directly. Otherwise there are three
processes. The first waits, so that the parent sees the command's status and group. The second, its
child, is the supervisor. It has its own group, so it survives when the command's group is killed,
and kills processes that the command leaves. The third executes the command; where the system allows
it, after two more that give the command a process namespace (`namespace.py`).

This runs before every command, so it imports little. Constants are from linux/prctl.h,
linux/capability.h and linux/seccomp.h.

A module of the launcher: it imports nothing of this package.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # `signal` without its enumerations; has no stub
import _socket
import marshal
import os
import sys

from kernel import Pair, call, pointer  # type: ignore[import-not-found] # a file in this folder

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing `typing` would take longer than the whole launcher
    from collections.abc import Sequence
    from typing import TypedDict

    class LauncherOptions(TypedDict):
        """The instructions for the launcher.

        `ruleset` is a descriptor. `filters` are arrays of `struct sock_filter`; the last one passes
        the calls in `supervised_calls` (names by number) to the supervisor. `limits` are pairs of
        kind and value. `capabilities` is a mask of those that root does not drop. `namespace` says
        whether the command gets a process namespace. `variables` are set only for the command.
        `kinds`, `granted` and `divided` are for `file_calls.Files`.
        """

        ruleset: int
        filters: list[bytes]
        supervised_calls: dict[int, str]
        limits: list[tuple[int, int]]
        capabilities: int
        namespace: bool
        variables: dict[str, str]
        kinds: dict[bytes, str]
        granted: list[bytes]
        divided: list[bytes]


_CAPABILITY_VERSION = 0x20080522
_LAST_CAPABILITY = 63
_DEATH_SIGNAL, _DROP_BOUNDING, _SUBREAPER, _NO_NEW_PRIVILEGES = 1, 24, 36, 38
_SET_FILTER = 1
_NEW_LISTENER, _WAIT_KILLABLE = 1 << 3, 1 << 5
_IGNORED_BY_PYTHON = (_signal.SIGPIPE, _signal.SIGXFSZ)
_NOT_FOUND, _NOT_STARTED = 127, 126
_UNLIMITED = -1  # RLIM_INFINITY, as a signed number


def _control(option: int, value: int) -> None:
    call("prctl", option, value, 0, 0, 0)


def drop_privileges(mask: int) -> None:
    """Drop all capabilities except a mask of them, permanently."""
    for capability in range(_LAST_CAPABILITY):
        if not mask >> capability & 1:
            try:
                _control(_DROP_BOUNDING, capability)
            except OSError:  # not root, or no such capability
                break
    low, high = (mask & 0xFFFFFFFF, mask >> 32) if os.geteuid() == 0 else (0, 0)
    numbers = (low, low, 0, high, high, 0)
    header = _CAPABILITY_VERSION.to_bytes(4, sys.byteorder) + bytes(4)
    call("capset", header, b"".join(number.to_bytes(4, sys.byteorder) for number in numbers))
    _control(_NO_NEW_PRIVILEGES, 1)


def install_filters(filters: list[bytes], *, listen: bool) -> int:
    """Install filters of system calls; return the listener descriptor of the last one, or 0."""
    result = 0
    for index, program in enumerate(filters):
        flags = _NEW_LISTENER | _WAIT_KILLABLE if listen and index == len(filters) - 1 else 0
        length = (len(program) // 8).to_bytes(8, sys.byteorder)  # only two bytes are used
        result = call("seccomp", _SET_FILTER, flags, length + pointer(program))
    return result


def execute_confined(
    options: LauncherOptions, command: list[str], supervisor: _socket.socket | None
) -> int:
    """Confine this process and execute the command; return an exit status if that fails."""
    call("landlock_restrict_self", options["ruleset"], 0)
    os.close(options["ruleset"])
    listener = install_filters(options["filters"], listen=supervisor is not None)
    if supervisor is not None:
        message = listener.to_bytes(4, sys.byteorder)
        supervisor.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, message)])
        os.close(listener)
    for number in _IGNORED_BY_PYTHON:
        _signal.signal(number, _signal.SIG_DFL)
    os.environ.update(options["variables"])
    try:
        os.execvp(command[0], command)  # noqa: S606 - the command to run
    except FileNotFoundError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        return _NOT_FOUND
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        return _NOT_STARTED


def main(arguments: Sequence[str]) -> int:
    """Run a command confined and return its status.

    Args:
        arguments: the number of a descriptor with the `LauncherOptions`, then the command.
    """
    with os.fdopen(int(arguments[0]), "rb") as file:
        options: LauncherOptions = marshal.load(file)  # noqa: S302 - written by our parent
    _control(_DEATH_SIGNAL, _signal.SIGKILL)
    for kind, limit in options["limits"]:
        current = Pair()
        call("prlimit64", 0, kind, None, current)
        value = limit if current[1] == _UNLIMITED else min(limit, current[1])
        call("prlimit64", 0, kind, Pair(value, value), None)
    command = list(arguments[1:])
    if not options["supervised_calls"]:
        drop_privileges(options["capabilities"])
        return execute_confined(options, command, None)
    ended, alive = os.pipe()
    supervisor = os.fork()
    if supervisor == 0:
        os.close(alive)
        os._exit(_supervise(options, command, ended))
    # A signal to the group is for the command, and this process waits for what it does then.
    _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
    drop_privileges(0)
    os.close(ended)
    _detach_streams()
    status = os.waitpid(supervisor, 0)[1]
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _supervise(options: LauncherOptions, command: list[str], ended: int) -> int:
    _control(_SUBREAPER, 1)
    parent_socket, child_socket = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    child = os.fork()
    if child == 0:
        _control(_DEATH_SIGNAL, _signal.SIGKILL)
        parent_socket.close()
        status = _NOT_STARTED
        try:
            if options["namespace"]:
                import namespace  # type: ignore[import-not-found]  # noqa: PLC0415 - a file in this one's folder

                namespace.enter(options["ruleset"])
            drop_privileges(options["capabilities"])
            status = execute_confined(options, command, child_socket)
        except OSError as error:
            os.write(2, f"the sandbox cannot be made: {error.strerror}\n".encode())
        finally:
            os._exit(status)
    drop_privileges(options["capabilities"])
    os.setpgid(0, 0)
    child_socket.close()
    os.close(options["ruleset"])
    _detach_streams()
    _forget_environment()
    messages = parent_socket.recvmsg(1, 64)[1]
    parent_socket.close()
    if not messages:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    listener = int.from_bytes(messages[0][2][:4], sys.byteorder)
    import supervisor  # type: ignore[import-not-found]  # noqa: PLC0415 - a file in this one's folder

    return int(supervisor.supervise(options, listener, child, ended))


def _detach_streams() -> None:
    """Close the standard streams in this process, so that readers see when the command ends."""
    nothing = os.open("/dev/null", os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)
    os.close(nothing)


def _forget_environment() -> None:
    """Erase this process's environment, whose mark identifies processes of the command to kill."""
    with open("/proc/self/stat", "rb") as file:
        start, end = map(int, file.read().rpartition(b") ")[2].split()[47:49])  # proc_pid_stat(5)
    memory = os.open("/proc/self/mem", os.O_WRONLY)
    os.pwrite(memory, bytes(end - start), start)
    os.close(memory)
