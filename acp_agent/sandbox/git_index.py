"""Read the submodules from a git index (gitformat-index(5))."""

from __future__ import annotations

import os
import stat
import struct
from functools import lru_cache

_MAX_SIZE = 200_000_000  # bytes
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
    status = os.stat(path)  # noqa: PTH116 - one of many
    if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_SIZE:
        return ()
    return _read(path, status.st_ino, status.st_size, status.st_ctime_ns)


@lru_cache(maxsize=64)
def _read(path: str, _inode: int, _size: int, _changed: int) -> tuple[str, ...]:
    with open(path, "rb") as file:  # noqa: PTH123 - as above
        data = file.read(_MAX_SIZE)
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
    submodules: list[str] = []
    offset, path = 12, b""
    for _ in range(count):
        start = offset
        (mode,) = struct.unpack_from(">I", data, offset + _MODE)
        offset += _HASHED + hash_length
        (flags,) = struct.unpack_from(">H", data, offset)
        offset += 4 if version > 2 and flags & _EXTENDED else 2
        prefix = b""
        if version == 4:
            removed, offset = _read_varint(data, offset)
            prefix = path[: len(path) - removed]
        end = data.index(b"\0", offset)
        path = prefix + data[offset:end]
        offset = end + 1 if version == 4 else start + (end - start + 8) // 8 * 8
        if mode >> 12 not in {0o4, 0o10, 0o12, 0o16}:
            raise ValueError(mode)
        if mode == 0o160000:
            submodules.append(os.fsdecode(path))
    return tuple(submodules)


def _read_varint(data: bytes, offset: int) -> tuple[int, int]:
    """Return a number of variable length, as in pack offsets, and the position after it."""
    value = data[offset] & 0x7F
    while data[offset] & 0x80:
        offset += 1
        value = ((value + 1) << 7) | (data[offset] & 0x7F)
    return value, offset + 1
