"""System calls for the launcher and the supervisor, without `ctypes`.

Importing `ctypes` takes a third of Python's start-up time; `_ctypes`, on which it is based, takes a
tenth of that. A module of the launcher: it imports nothing of this package.
"""

from __future__ import annotations

import _ctypes
import os

_C_CALL, _USE_ERRNO = 1, 8  # FUNCFLAG_CDECL and FUNCFLAG_USE_ERRNO of _ctypes
_NUMBERS = {  # x86_64, aarch64
    "prctl": (157, 167),
    "capset": (126, 91),
    "seccomp": (317, 277),
    "landlock_restrict_self": (446, 446),
    "landlock_add_rule": (445, 445),
    "unshare": (272, 97),
    "mount": (165, 40),
    "prlimit64": (302, 261),
    "renameat2": (316, 276),
    "utimensat": (280, 88),
    "tgkill": (234, 131),
}
_IS_ARM = os.uname().machine == "aarch64"


class _Long(_ctypes._SimpleCData):  # type: ignore[type-arg] # noqa: SLF001 - see above
    _type_ = "l"


class _Text(_ctypes._SimpleCData):  # type: ignore[type-arg] # noqa: SLF001
    _type_ = "z"


class _Function(_ctypes.CFuncPtr):
    _flags_ = _C_CALL | _USE_ERRNO
    _restype_ = _Long


class Pair(_ctypes.Array):  # type: ignore[type-arg]
    """Two numbers that a call may change."""

    _type_ = _Long
    _length_ = 2


_this_program = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]
_syscall = _Function(_ctypes.dlsym(_this_program, "syscall"))


def call(name: str, *arguments: int | bytes | Pair | None) -> int:
    """Make a system call and return its result.

    Args:
        arguments: numbers, bytes to read, or a `Pair` that the call may change.

    Raises:
        OSError: the call fails.
    """
    converted = [
        _Long(argument) if isinstance(argument, int) else argument for argument in arguments
    ]
    result: int = _syscall(_Long(_NUMBERS[name][_IS_ARM]), *converted)
    if result < 0:
        code = _ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def pointer(data: bytes) -> bytes:
    """Return the address of `data` as bytes for a structure; `data` must outlive its use."""
    return memoryview(_Text(data)).tobytes()
