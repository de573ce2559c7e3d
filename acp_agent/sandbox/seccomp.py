"""The filter of system calls: a classic BPF program for seccomp(2).

It takes away what no build or test needs and what has led out of sandboxes: other programs'
terminals, the kernel's keyrings, mounts and namespaces, and kinds of sockets that namespaces do not
confine. What stays out of reach by mounts and namespaces alone is not filtered again.
"""

from __future__ import annotations

import errno
import platform
import struct
import tomllib
from functools import cache
from importlib.resources import files

from msgspec import Struct, convert

from acp_agent.platform.first_use import first_use

# linux/bpf_common.h, linux/seccomp.h
_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ABOVE, _AND = 0x25, 0x54
# sys/mman.h: memory that processes share, which no limit of a process counts
_SHARED_KINDS, _SHARED = 0x2F, (0x21, 0x23)
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
# Where `struct seccomp_data` has the number of the call, the architecture, and the lower halves of
# the arguments; both architectures are little-endian.
_NUMBER, _ARCHITECTURE = 0, 4


class _Call(Struct, frozen=True, forbid_unknown_fields=True):
    """A system call: its number on each architecture; None where it does not exist."""

    x86_64: int
    aarch64: int


class _Architecture(Struct, frozen=True, forbid_unknown_fields=True):
    audit: int
    foreign: int | None = None  # numbers from here on are of another binary interface


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    architectures: dict[str, _Architecture]
    denied: dict[str, _Call]
    unknown: dict[str, _Call]
    namespaces: dict[str, _Call]
    mmap: _Call
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
        sockets: whether sockets of the network and of other programs may be made at all; false
            where nothing else confines them.
        shared_bytes: the largest piece of memory that may be shared with no file; None: any.
        machine: the architecture, as `uname -m` names it; None: this machine's.
    """
    machine = machine or platform.machine()
    table = _table()
    architecture = table.architectures.get(machine)
    if architecture is None:
        return None

    def number(call: _Call) -> int:
        return call.x86_64 if machine == "x86_64" else call.aarch64

    def refuse(error: int) -> bytes:
        return instruction(_RETURN, _ERRNO | error)

    parts = [instruction(_LOAD, _ARCHITECTURE)]
    parts += [instruction(_EQUAL, architecture.audit, 1, 0), refuse(errno.ENOSYS)]
    parts += [instruction(_LOAD, _NUMBER)]
    if architecture.foreign is not None:
        parts += [instruction(_AT_LEAST, architecture.foreign, 0, 1), refuse(errno.ENOSYS)]
    for call in table.denied.values():
        parts += [instruction(_EQUAL, number(call), 0, 1), refuse(errno.EPERM)]
    for call in table.unknown.values():  # programs do without what the kernel does not have
        parts += [instruction(_EQUAL, number(call), 0, 1), refuse(errno.ENOSYS)]
    for call in table.namespaces.values():
        parts += [instruction(_EQUAL, number(call), 0, 4), instruction(_LOAD, argument(0))]
        parts += [instruction(_ANY_BIT, table.namespace_flags, 0, 1), refuse(errno.EPERM)]
        parts += [instruction(_RETURN, _ALLOW)]
    if shared_bytes is not None:
        parts += _limit_shared(number(table.mmap), shared_bytes, refuse(errno.ENOMEM))
    requests = table.ioctl_requests
    parts += [instruction(_EQUAL, number(table.ioctl), 0, 2 + 2 * len(requests))]
    parts += [instruction(_LOAD, argument(1))]
    for request in requests:
        parts += [instruction(_EQUAL, request, 0, 1), refuse(errno.EPERM)]
    parts += [instruction(_RETURN, _ALLOW)]
    domains = [*table.socket_domains, *table.network_domains] if sockets else table.socket_domains
    parts += [instruction(_EQUAL, number(table.socket), 0, 2 + 2 * len(domains))]
    parts += [instruction(_LOAD, argument(0))]
    for domain in domains:
        parts += [instruction(_EQUAL, domain, 0, 1), instruction(_RETURN, _ALLOW)]
    parts += [refuse(errno.EACCES), instruction(_RETURN, _ALLOW)]
    return b"".join(parts)


def _limit_shared(call: int, most: int, refuse: bytes) -> list[bytes]:
    high, low = divmod(most, 1 << 32)
    allow = instruction(_RETURN, _ALLOW)
    block = [
        instruction(_LOAD, argument(3)),
        instruction(_AND, _SHARED_KINDS),
        instruction(_EQUAL, _SHARED[0], 2, 0),
        instruction(_EQUAL, _SHARED[1], 1, 0),
        allow,
        instruction(_LOAD, argument(1) + 4),
        instruction(_ABOVE, high, 3, 0),
        instruction(_EQUAL, high, 0, 3),
        instruction(_LOAD, argument(1)),
        instruction(_ABOVE, low, 0, 1),
        refuse,
        allow,
    ]
    return [instruction(_EQUAL, call, 0, len(block)), *block]


def argument(index: int) -> int:
    """Return where `struct seccomp_data` has the lower half of an argument."""
    return 16 + 8 * index


def instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Return a `struct sock_filter`; the last two say how many instructions are skipped."""
    return struct.pack("<HBBI", code, if_true, if_false, value)


@cache
def _table() -> _Table:
    text = (files(__package__) / "system_calls.toml").read_text("utf-8")
    with first_use:
        return convert(tomllib.loads(text), _Table)
