"""Read the submodules from a git index (gitformat-index(5))."""

from __future__ import annotations

import os
import stat
import struct
from functools import lru_cache

_LARGEST = 200_000_000  # bytes
_GITLINK = struct.pack(">I", 0o160000)
_MODE = 24  # bytes of an entry before its mode
_HASHED = 40  # bytes of an entry before the hash of its content
_HASHES = (20, 32)  # bytes of a hash: SHA-1, SHA-256
_EXTENDED = 0x4000


def index_gitlinks(path: str) -> tuple[str, ...]:
    """Return the paths of the submodules in an index; none if it cannot be parsed.

    Raises:
        OSError: the file cannot be read.
    """
    found = os.stat(path)  # noqa: PTH116 - one of many
    if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
        return ()
    return _read(path, found.st_ino, found.st_size, found.st_ctime_ns)


@lru_cache(maxsize=64)
def _read(path: str, _inode: int, _size: int, _changed: int) -> tuple[str, ...]:
    with open(path, "rb") as file:  # noqa: PTH123 - as above
        data = file.read(_LARGEST)
    if _GITLINK not in data:
        return ()
    for length in _HASHES:
        try:
            return _parse(data, length)
        except (ValueError, struct.error, IndexError):
            continue
    return ()


def _parse(data: bytes, hash_length: int) -> tuple[str, ...]:
    signature, version, count = struct.unpack_from(">4sII", data)
    if signature != b"DIRC" or version not in {2, 3, 4}:
        raise ValueError(version)
    found: list[str] = []
    at, path = 12, b""
    for _ in range(count):
        start = at
        (mode,) = struct.unpack_from(">I", data, at + _MODE)
        at += _HASHED + hash_length
        (flags,) = struct.unpack_from(">H", data, at)
        at += 4 if version > 2 and flags & _EXTENDED else 2
        kept = b""
        if version == 4:
            removed, at = _variable(data, at)
            kept = path[: len(path) - removed]
        end = data.index(b"\0", at)
        path = kept + data[at:end]
        at = end + 1 if version == 4 else start + (end - start + 8) // 8 * 8
        if mode >> 12 not in {0o4, 0o10, 0o12, 0o16}:
            raise ValueError(mode)
        if mode == 0o160000:
            found.append(os.fsdecode(path))
    return tuple(found)


def _variable(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, as in pack offsets, and the position after it."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1
