"""Find the other paths of a file on a file system that is mounted more than once.

This is common: ostree has `/var` below `/sysroot` too, btrfs has its subvolumes below the mount of
the top volume, and containers bind-mount folders. See proc_pid_mountinfo(5).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from acp_agent.platform.posix import is_below

_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPE = re.compile(r"\\([0-7]{3})")


class _Mount(Struct, frozen=True):
    device: str
    root: str  # the folder of the file system that is mounted; "" for the root
    point: str  # the mount point; "" for /

    def path_in(self, path: str) -> str | None:
        """Return a path below the mount point as a path in the file system, else None."""
        return self.root + path[len(self.point) :] if is_below(path, self.point) else None


def find_aliases(paths: Iterable[str]) -> Iterator[str]:
    """Yield the other paths of existing files.

    Args:
        paths: absolute paths with links resolved.
    """
    mounts = _mounts()
    shared = [mount.device for mount in mounts]
    if len(shared) == len(set(shared)):
        return
    for path in paths:
        containing = max(
            (mount for mount in mounts if is_below(path, mount.point)),
            key=lambda mount: len(mount.point),
            default=None,
        )
        relative = None if containing is None else containing.path_in(path)
        for mount in mounts:
            if (
                containing is None
                or relative is None
                or mount is containing
                or mount.device != containing.device
            ):
                continue
            if is_below(relative, mount.root):
                alias = mount.point + relative[len(mount.root) :]
                with suppress(OSError):
                    if alias != path and os.path.samefile(alias, path):  # noqa: PTH121 - strings
                        yield alias


def _mounts() -> list[_Mount]:
    with suppress(OSError), _MOUNTS.open(encoding="utf-8", errors="surrogateescape") as file:
        return [_parse_mount(line.split(" ")) for line in file]
    return []


def _parse_mount(fields: list[str]) -> _Mount:
    root, point = (
        _ESCAPE.sub(lambda match: chr(int(match[1], 8)), text).rstrip("/") for text in fields[3:5]
    )
    return _Mount(fields[2], root, point)
