"""Landlock's system calls: read the version and create rulesets (linux/landlock.h)."""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress

from acp_agent.sandbox.landlock.path_rules import PathRules

# The same numbers on every architecture.
_CREATE_RULESET, _ADD_RULE = 444, 445
_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHARACTER_DEVICE, _MAKE_BLOCK_DEVICE = 1 << 6, 1 << 11
_FIRST = (1 << 13) - 1  # the rights of version 1
_LATER = {2: 1 << 13, 3: 1 << 14, 5: 1 << 15}  # link between folders, truncate, control devices
_READ = _EXECUTE | _READ_FILE | _READ_FOLDER
_FOR_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | 1 << 14 | 1 << 15
_TCP = 0b11  # to bind and to connect
_SCOPES = 0b11  # abstract sockets and signals stay inside
_TCP_SINCE, SCOPES_SINCE = 4, 6
_DEVICES = ("null", "zero", "full", "random", "urandom")

_libc = ctypes.CDLL(None, use_errno=True)


def landlock_version() -> int:
    """Return the version of the kernel's Landlock.

    Raises:
        OSError: the kernel has no Landlock (ENOSYS), or it is disabled (EOPNOTSUPP).
    """
    return _call(_CREATE_RULESET, None, 0, _VERSION)


def make_ruleset(rules: PathRules, version: int) -> int:
    """Return the descriptor of a ruleset, which refuses everything that it does not grant.

    Missing files are skipped.

    Args:
        version: the version of Landlock to use; the kernel has at least this one.

    Raises:
        OSError: the kernel refuses the ruleset.
    """
    handled = _FIRST
    for since, right in _LATER.items():
        handled |= right if version >= since else 0
    tcp = _TCP if version >= _TCP_SINCE else 0
    words = 3 if version >= SCOPES_SINCE else 2 if version >= _TCP_SINCE else 1
    attributes = (ctypes.c_uint64 * words)(*(handled, tcp, _SCOPES)[:words])
    ruleset = _call(_CREATE_RULESET, attributes, ctypes.sizeof(attributes), 0)
    os.set_inheritable(ruleset, False)
    change = handled & ~(_MAKE_CHARACTER_DEVICE | _MAKE_BLOCK_DEVICE)
    try:
        _grant(ruleset, rules.read, _READ)
        _grant(ruleset, rules.write, change)
        _grant(ruleset, (f"/dev/{name}" for name in _DEVICES), change)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def _grant(ruleset: int, paths: Iterable[str], rights: int) -> None:
    for path in paths:
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                mode = os.fstat(descriptor).st_mode
                if stat.S_ISLNK(mode):
                    continue
                granted = rights if stat.S_ISDIR(mode) else rights & _FOR_FILES
                rule = granted.to_bytes(8, sys.byteorder) + descriptor.to_bytes(4, sys.byteorder)
                _call(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
            finally:
                os.close(descriptor)


def _call(number: int, *arguments: object) -> int:
    converted = [
        ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments
    ]
    result: int = _libc.syscall(ctypes.c_long(number), *converted)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
