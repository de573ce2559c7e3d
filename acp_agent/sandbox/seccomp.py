"""The filter of system calls: a classic BPF program for seccomp(2).

It blocks calls that no build or test needs and that have been used to escape from sandboxes:
access to other programs' terminals and the kernel's keyrings, mounts and namespaces, set-user-ID
files, and kinds of sockets that namespaces do not confine. It does not block what mounts and
namespaces already prevent.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Sequence
from functools import cache

from msgspec import Struct

from acp_agent.platform.data_tables import read_table

# linux/bpf_common.h, linux/seccomp.h
_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ABOVE, _AND, _JUMP = 0x25, 0x54, 0x05
# sys/mman.h: shared memory, which does not count towards the limits of a process
_SHARED_KINDS, _SHARED = 0x2F, (0x21, 0x23)
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
# Offsets in `struct seccomp_data` of the call's number and the architecture. `argument` has those
# of the lower halves of arguments; both architectures are little-endian.
_NUMBER, _ARCHITECTURE = 0, 4


class _Call(Struct, frozen=True, forbid_unknown_fields=True):
    """A system call: its number on each architecture; 0 if it does not exist there."""

    x86_64: int
    aarch64: int


class _ModeCall(_Call, frozen=True, forbid_unknown_fields=True):
    """A system call that sets a file's mode; `mode` is the index of that argument."""

    mode: int
    flags: int | None = None  # index of the argument that says whether there is a mode


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    first_later: int
    architectures: dict[str, int]
    denied: dict[str, _Call]
    unknown: dict[str, _Call]
    namespaces: dict[str, _Call]
    modes: dict[str, _ModeCall]
    set_user_id: int
    creates: int
    mmap: _Call
    fcntl: _Call
    fcntl_commands: list[int]
    socketpair: _Call
    pair_domains: list[int]
    ioctl: _Call
    ioctl_requests: list[int]
    socket: _Call
    socket_domains: list[int]
    network_domains: list[int]
    namespace_flags: int


def system_call_filter(
    *, sockets: bool = True, shared_bytes: int | None = None, machine: str | None = None
) -> bytes | None:
    """Return the filter as an array of `struct sock_filter`; None for an unknown architecture.

    Args:
        sockets: whether network and unix sockets may be created; false if nothing else confines
            them.
        shared_bytes: the maximum size of an anonymous shared mapping; None for no limit.
        machine: the architecture, as in `uname -m`; None for that of this machine.
    """
    machine = machine or platform.machine()
    table = _table()
    audit = table.architectures.get(machine)
    if audit is None:
        return None

    def number(call: _Call) -> int:
        return call.x86_64 if machine == "x86_64" else call.aarch64

    def refuse(error: int) -> bytes:
        return instruction(_RETURN, _ERRNO | error)

    program = [instruction(_LOAD, _ARCHITECTURE)]
    program += [instruction(_EQUAL, audit, 1, 0), refuse(errno.ENOSYS)]
    program += [instruction(_LOAD, _NUMBER)]
    program += [instruction(_AT_LEAST, table.first_later, 0, 1), refuse(errno.ENOSYS)]

    def rule(call: _Call, *block: bytes) -> None:
        if number(call):
            program.append(instruction(_EQUAL, number(call), 0, len(block)))
            program.extend(block)

    for call in table.denied.values():
        rule(call, refuse(errno.EPERM))
    for call in table.unknown.values():  # programs fall back if the kernel lacks a call
        rule(call, refuse(errno.ENOSYS))
    for call in table.namespaces.values():
        rule(call, *_if_any_bit(0, table.namespace_flags, refuse(errno.EPERM)), _ALLOWED)
    for mode in table.modes.values():
        block = [*_if_any_bit(mode.mode, table.set_user_id, refuse(errno.EPERM)), _ALLOWED]
        if mode.flags is not None:
            block = [
                *_if_any_bit(mode.flags, table.creates, instruction(_JUMP, 1)),
                _ALLOWED,
                *block,
            ]
        rule(mode, *block)
    if shared_bytes is not None:
        rule(table.mmap, *_limit_shared(shared_bytes, refuse(errno.ENOMEM)))
    rule(table.fcntl, *_if_equal_any(1, table.fcntl_commands, refuse(errno.EPERM)), _ALLOWED)
    rule(table.ioctl, *_if_equal_any(1, table.ioctl_requests, refuse(errno.EPERM)), _ALLOWED)
    domains = [*table.socket_domains, *table.network_domains] if sockets else table.socket_domains
    rule(table.socket, *_if_equal_any(0, domains, _ALLOWED), refuse(errno.EACCES))
    rule(table.socketpair, *_if_equal_any(0, table.pair_domains, _ALLOWED), refuse(errno.EACCES))
    return b"".join([*program, _ALLOWED])


def _if_any_bit(index: int, bits: int, then: bytes) -> list[bytes]:
    """Return instructions that execute `then` if an argument has one of these bits."""
    return [instruction(_LOAD, argument(index)), instruction(_ANY_BIT, bits, 0, 1), then]


def _if_equal_any(index: int, values: Sequence[int], then: bytes) -> list[bytes]:
    """Return instructions that execute `then` if an argument is one of these values."""
    block = [instruction(_LOAD, argument(index))]
    for value in values:
        block += [instruction(_EQUAL, value, 0, 1), then]
    return block


def _limit_shared(limit: int, refuse: bytes) -> list[bytes]:
    high, low = divmod(limit, 1 << 32)
    return [
        instruction(_LOAD, argument(3)),
        instruction(_AND, _SHARED_KINDS),
        instruction(_EQUAL, _SHARED[0], 2, 0),
        instruction(_EQUAL, _SHARED[1], 1, 0),
        _ALLOWED,
        instruction(_LOAD, argument(1) + 4),
        instruction(_ABOVE, high, 3, 0),
        instruction(_EQUAL, high, 0, 3),
        instruction(_LOAD, argument(1)),
        instruction(_ABOVE, low, 0, 1),
        refuse,
        _ALLOWED,
    ]


def argument(index: int) -> int:
    """Return the offset of the lower half of an argument in `struct seccomp_data`."""
    return 16 + 8 * index


def instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Return a `struct sock_filter`; `if_true` and `if_false` are how many instructions to skip."""
    return struct.pack("<HBBI", code, if_true, if_false, value)


_ALLOWED = instruction(_RETURN, _ALLOW)


@cache
def _table() -> _Table:
    return read_table(__package__, "system_calls.toml", _Table)
