"""Whether a file of a folder is kept."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from acp_agent.workspace.checkpoints.contract import LeftOut, Rules, is_plain, join


class Judge:
    """Looks at files, each once, while nothing of ours changes them.

    Args:
        top: the folder that the paths are relative to.
        data: our own files, which may lie in there.
        rules: what is kept.
    """

    def __init__(self, top: Path, data: Path, rules: Rules) -> None:
        self._top = os.fsencode(top)
        self._data = os.fsencode(data) + b"/"
        self._rules = rules
        self._real: dict[bytes, bool] = {b"": True}  # folders that no symlink stands for

    def judge(self, path: bytes) -> os.stat_result | LeftOut | None:
        """What is known of a file that is kept; None where there is none of ours to keep."""
        if not is_plain(path):
            return LeftOut(path, "name")
        absolute = join(self._top, path)
        if absolute.startswith(self._data) or not self._is_real(path.rpartition(b"/")[0]):
            return None
        try:
            found = os.lstat(absolute)
        except PermissionError:
            return LeftOut(path, "unreadable")
        except OSError:
            return None
        if stat.S_ISLNK(found.st_mode):
            # Git refuses links of this name.
            is_taken = path.rpartition(b"/")[2].lower() != b".gitmodules"
            return found if is_taken else LeftOut(path, "name")
        if not stat.S_ISREG(found.st_mode):
            return None
        if found.st_size > self._rules.max_file_bytes:
            return LeftOut(path, "size")
        if not os.access(absolute, os.R_OK):
            return LeftOut(path, "unreadable")
        return found

    def private(self, paths: Iterable[bytes]) -> set[bytes]:
        """Those of the files that are for their owner alone."""
        found: set[bytes] = set()
        top = os.open(self._top, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for path in paths:
                try:
                    known = os.stat(path, dir_fd=top, follow_symlinks=False)
                except OSError:
                    continue
                if is_private(known):
                    found.add(path)
        finally:
            os.close(top)
        return found

    def _is_real(self, folder: bytes) -> bool:
        known = self._real.get(folder)
        if known is None:
            known = self._is_real(folder.rpartition(b"/")[0])
            if known:
                try:
                    known = stat.S_ISDIR(os.lstat(join(self._top, folder)).st_mode)
                except PermissionError:
                    known = True  # what is in it may not be looked at either
                except OSError:
                    known = False
            self._real[folder] = known
        return known


def is_private(found: os.stat_result) -> bool:
    """Whether a file is for its owner alone."""
    return stat.S_ISREG(found.st_mode) and not found.st_mode & 0o077
