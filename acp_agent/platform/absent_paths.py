"""Find out whether any of many paths exists, with a few `stat` calls if none does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

# A later change may show the same time, as the times of folders are as coarse as this, in
# nanoseconds: in whole seconds (vfat, HFS+), or in the ticks of the system's clock.
_SECONDS, _COARSE = 1_000_000_000, 2_000_000_000
_TICKS = 50_000_000

_Stamp: TypeAlias = tuple[int, int, int]


class _Group(NamedTuple):
    """Absent paths that can only appear if `folder` changes; without a stamp, look each time."""

    folder: str
    stamp: _Stamp | None
    paths: list[str]


class AbsentPaths:
    """Remembers that paths do not exist while the folders in which they could appear are unchanged.

    A path can only appear if the nearest existing folder above it changes or is replaced. If that
    folder has just changed, its time is not relied on, as git does not rely on the times of files
    that changed just before its index.

    Args:
        now: returns the time in nanoseconds since 1970.
    """

    def __init__(self, now: Callable[[], int] = time.time_ns) -> None:
        self._now = now
        self._groups: dict[tuple[str, ...], list[_Group]] = {}

    def any_exists(self, paths: tuple[str, ...]) -> bool:
        """Return whether a path exists, be it a broken link. Blocks: reads the disk.

        Args:
            paths: absolute paths; what is known is stored for this tuple.
        """
        known_groups = self._groups.get(paths)
        if known_groups is None:
            groups, unsure = [], list(paths)
        else:
            groups = [
                group
                for group in known_groups
                if group.stamp and group.stamp == _stamp(group.folder)
            ]
            if len(groups) == len(known_groups):
                return False
            unsure = [path for group in known_groups if group not in groups for path in group.paths]
        absent = self._find_absent(unsure)
        if absent is None:
            self._groups.pop(paths, None)
            return True
        self._groups[paths] = groups + absent
        return False

    def _find_absent(self, paths: Sequence[str]) -> list[_Group] | None:
        """Return the groups of paths that do not exist; None if one exists."""
        now = self._now()
        nearest: dict[str, tuple[str, _Stamp | None]] = {}
        groups: dict[str, _Group] = {}
        # The folders come first, so that a path that appears in between is not missed.
        for path in paths:
            folder, stamp = _nearest_folder(os.path.dirname(path), nearest)  # noqa: PTH120 - strings are faster
            if stamp is not None and now - stamp[2] < (_TICKS if stamp[2] % _SECONDS else _COARSE):
                stamp = None
            groups.setdefault(folder, _Group(folder, stamp, [])).paths.append(path)
        return None if any(map(os.path.lexists, paths)) else list(groups.values())


def _nearest_folder(
    folder: str, nearest: dict[str, tuple[str, _Stamp | None]]
) -> tuple[str, _Stamp | None]:
    """Return the nearest existing folder above a path, with its stamp; cached in `nearest`.

    A broken link has no stamp: when its target appears, no folder above the path changes.
    """
    if folder not in nearest:
        stamp = _stamp(folder)
        if stamp is not None or os.path.lexists(folder):
            nearest[folder] = folder, stamp
        else:
            nearest[folder] = _nearest_folder(os.path.dirname(folder), nearest)  # noqa: PTH120 - as above
    return nearest[folder]


def _stamp(path: str) -> _Stamp | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - of a few folders before each prompt
    except (OSError, ValueError):  # ValueError: a null character
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns
