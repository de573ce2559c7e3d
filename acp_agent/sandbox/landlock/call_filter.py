"""The second filter of system calls, for calls that Landlock does not cover.

It is installed in addition to that of `acp_agent.sandbox.seccomp`; `system_calls.toml` lists the
calls. It refuses some calls. Others wait for the supervisor (seccomp_unotify(2)), which checks the
file that they name.
"""

from __future__ import annotations

import errno
import platform
from functools import cache

from msgspec import Struct

from acp_agent.platform.data_tables import read_table
from acp_agent.sandbox.seccomp import argument, instruction

# linux/bpf_common.h, linux/seccomp.h
_LOAD, _EQUAL, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x45, 0x54, 0x06
_ALLOW, _ERRNO, _NOTIFY = 0x7FFF0000, 0x00050000, 0x7FC00000
_SOCKET_KIND_MASK = 0xF  # without SOCK_CLOEXEC and SOCK_NONBLOCK
_REQUEST_KIND_MASK = 0xFFFFFF00


class _Call(Struct, frozen=True, forbid_unknown_fields=True):
    x86_64: int
    aarch64: int
    argument: int = 0

    def number(self, machine: str) -> int:
        """Return its number; 0 if the architecture does not have the call."""
        return self.x86_64 if machine == "x86_64" else self.aarch64


class _Pair(Struct, frozen=True, forbid_unknown_fields=True):
    socketpair: _Call
    kinds: list[int]


class _Requests(Struct, frozen=True, forbid_unknown_fields=True):
    ioctl: _Call
    terminals: int
    requests: list[int]


class _FileSignals(Struct, frozen=True, forbid_unknown_fields=True):
    fcntl: _Call
    commands: list[int]


class _Opens(Struct, frozen=True, forbid_unknown_fields=True):
    open: _Call
    openat: _Call
    flags: _Call


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    unknown: dict[str, _Call]
    unsupported: dict[str, _Call]
    own_process: dict[str, _Call]
    pair: _Pair
    ioctl: _Requests
    file_signals: _FileSignals
    attributes: dict[str, _Call]
    names: dict[str, _Call]
    opens: _Opens
    signals: dict[str, _Call]


class CallFilter(Struct, frozen=True):
    """A filter, and the calls that it passes to the supervisor.

    Attributes:
        program: an array of `struct sock_filter`.
        supervised_calls: the names of the calls that wait for the supervisor, by number.
    """

    program: bytes
    supervised_calls: dict[int, str]


def landlock_filter(
    *, supervised: bool, signals: bool, reads: bool = False, machine: str | None = None
) -> CallFilter:
    """Return the filter for a program.

    Args:
        supervised: whether there is a supervisor; without one, file attributes cannot be changed.
        signals: whether to restrict signals, because this version of Landlock does not.
        reads: whether the supervisor also handles opening files for reading.
        machine: the architecture, as in `uname -m`; None for that of this machine.
    """
    machine = machine or platform.machine()
    table = _table()
    program = [instruction(_LOAD, 0)]

    def rule(call: _Call, *block: bytes) -> None:
        if call.number(machine):
            program.append(instruction(_EQUAL, call.number(machine), 0, len(block)))
            program.extend(block)

    def refuse(error: int) -> bytes:
        return instruction(_RETURN, _ERRNO | error)

    allow, notify = instruction(_RETURN, _ALLOW), instruction(_RETURN, _NOTIFY)
    for call in table.unknown.values():
        rule(call, refuse(errno.ENOSYS))
    for call in table.unsupported.values():
        rule(call, refuse(errno.EOPNOTSUPP))
    for call in table.own_process.values():
        load = instruction(_LOAD, argument(call.argument))
        rule(call, load, instruction(_EQUAL, 0, 1, 0), refuse(errno.EPERM), allow)
    kinds = [instruction(_LOAD, argument(1)), instruction(_AND, _SOCKET_KIND_MASK)]
    for kind in table.pair.kinds:
        kinds += [instruction(_EQUAL, kind, 0, 1), allow]
    rule(table.pair.socketpair, *kinds, refuse(errno.EACCES))
    requests = [instruction(_LOAD, argument(1)), instruction(_AND, _REQUEST_KIND_MASK)]
    requests += [instruction(_EQUAL, table.ioctl.terminals, 0, 1), allow]
    requests.append(instruction(_LOAD, argument(1)))
    for request in table.ioctl.requests:
        requests += [instruction(_EQUAL, request, 0, 1), allow]
    rule(table.ioctl.ioctl, *requests, refuse(errno.ENOTTY))
    if signals:
        commands = [instruction(_LOAD, argument(1))]
        for command in table.file_signals.commands:
            commands += [instruction(_EQUAL, command, 0, 1), refuse(errno.EPERM)]
        rule(table.file_signals.fcntl, *commands, allow)
    supervised_calls = dict(table.attributes)
    if not supervised:
        for call in [*table.attributes.values(), *(table.signals.values() if signals else ())]:
            rule(call, refuse(errno.EPERM))
        return CallFilter(b"".join([*program, allow]), {})
    supervised_calls |= table.names | (table.signals if signals else {})
    for call in supervised_calls.values():
        rule(call, notify)
    opens = {"open": table.opens.open, "openat": table.opens.openat}
    for call in opens.values():
        flags = table.opens.flags.number(machine)
        write_check = [
            instruction(_LOAD, argument(call.argument)),
            instruction(_ANY_BIT, flags, 0, 1),
        ]
        rule(call, *([] if reads else write_check), notify, allow)
    numbers = {call.number(machine): name for name, call in (supervised_calls | opens).items()}
    numbers.pop(0, None)
    return CallFilter(b"".join([*program, allow]), numbers)


@cache
def _table() -> _Table:
    return read_table(__package__, "system_calls.toml", _Table)
