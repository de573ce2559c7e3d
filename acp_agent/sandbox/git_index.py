"""Read the names in a git index (gitformat-index(5))."""

from __future__ import annotations

import os
import stat
import struct
from functools import lru_cache

_MAX_SIZE = 200_000_000  # bytes
_GITLINK = struct.pack(">I", 0o160000)
_MODE = 24  # bytes of an entry before its mode
_HASHED = 40  # bytes of an entry before the hash of its content
_MAX_ENTRY = 300  # bytes of an entry, on average
_SPLIT = b"link"  # the extension that names a shared index
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
    return tuple(name for name, mode in _entries(data) or () if mode == 0o160000)


def index_names(path: str, limit: int) -> tuple[str, ...] | None:
    """Return the names of all tracked files.

    None is returned if there are more than `limit`, or if not all of them are in this file: a split
    or sparse index refers to others.

    Raises:
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:  # noqa: PTH123 - as above
        data = file.read(limit * _MAX_ENTRY)
    if int.from_bytes(data[8:12], "big") > limit:
        return None
    entries = _entries(data)
    is_whole = entries and all(mode and not stat.S_ISDIR(mode) for _, mode in entries)
    return tuple(name for name, _ in entries) if entries and is_whole else None


def _entries(data: bytes) -> list[tuple[str, int]] | None:
    """Return the names and modes in an index; None if it cannot be parsed.

    The last one of a split index is a name without a mode.
    """
    for length in _HASHES:
        try:
            return _parse(data, length)
        except (ValueError, struct.error, IndexError):
            continue
    return None


def _parse(data: bytes, hash_length: int) -> list[tuple[str, int]]:
    signature, version, count = struct.unpack_from(">4sII", data)
    if signature != b"DIRC" or version not in {2, 3, 4}:
        raise ValueError(version)
    entries: list[tuple[str, int]] = []
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
        entries.append((os.fsdecode(path), mode))
    if data.startswith(_SPLIT, offset):
        entries.append(("", 0))
    return entries


def _read_varint(data: bytes, offset: int) -> tuple[int, int]:
    """Return a number of variable length, as in pack offsets, and the position after it."""
    value = data[offset] & 0x7F
    while data[offset] & 0x80:
        offset += 1
        value = ((value + 1) << 7) | (data[offset] & 0x7F)
    return value, offset + 1
