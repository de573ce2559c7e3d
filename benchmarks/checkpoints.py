"""The cost of checkpoints of a folder, compared with git alone.

The two are taken in turn in the same run: `git add -A && git write-tree` in a repository of its
own, and a checkpoint, of folders with the same files. On its own: `python -m benchmarks
checkpoints`.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

from acp_agent.workspace.checkpoints.base import Deadline, Rules
from acp_agent.workspace.checkpoints.folders import FolderCheckpoints
from benchmarks.table import Row, pairs, row

FILES = 1_000
CHANGED = 10
COLD_ROUNDS = 7
WARM_ROUNDS = 25


class _Folder:
    """A folder of source files that were written a minute ago.

    Of a file that is as young as the index, git cannot tell by its times whether it is unchanged,
    and reads it. Whether the files of a benchmark are would be chance: they and the index are
    written in one second or in two.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._round = 0
        written = time.time() - 60
        for number in range(FILES):
            file = self._file(number)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"def function_{number}(x):\n    return x + {number}\n" * 30)
            os.utime(file, (written, written))

    def _file(self, number: int) -> Path:
        return self.path / f"package_{number % 25}" / f"module_{number}.py"

    def change(self) -> None:
        """Write some of the files again."""
        self._round += 1
        for number in range(CHANGED):
            self._file(number * 31).write_text(f"# round {self._round}\n" * 40)


class _Alone:
    """Git alone, as a person would use it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.run("init", "-q")

    def run(self, *arguments: str) -> None:
        """A command of git."""
        subprocess.run(["git", *arguments], cwd=self._folder, check=True, capture_output=True)

    def keep(self) -> float:
        """Seconds that `git add -A && git write-tree` takes."""
        began = time.perf_counter()
        self.run("add", "-A")
        self.run("write-tree")
        return time.perf_counter() - began


class _Ours:
    """A session's checkpoints."""

    def __init__(self, folder: Path, data: Path) -> None:
        self._checkpoints = FolderCheckpoints(
            data / "checkpoints", "sess_benchmark", [folder], Rules()
        )
        self._count = 0

    def keep(self) -> float:
        """Seconds that a checkpoint takes."""
        self._count += 1
        began = time.perf_counter()
        self._checkpoints.save(f"ckpt_{self._count}", Deadline(60))
        return time.perf_counter() - began


def _cold(base: Path) -> tuple[list[float], list[float]]:
    count = 0

    def fresh() -> Path:
        nonlocal count
        count += 1
        return _Folder(base / f"cold-{count}").path

    def ours() -> float:
        return _Ours(fresh(), base / f"data-{count}").keep()

    def floor() -> float:
        return _Alone(fresh()).keep()

    return pairs(ours, floor, COLD_ROUNDS)


def _warm(base: Path, *, changing: bool) -> tuple[list[float], list[float]]:
    mine, other = _Folder(base / f"mine-{changing}"), _Folder(base / f"other-{changing}")
    ours, alone = _Ours(mine.path, base / f"data-{changing}"), _Alone(other.path)
    ours.keep()
    alone.keep()

    def change(folder: _Folder) -> None:
        if changing:
            folder.change()

    def keep_ours() -> float:
        change(mine)
        return ours.keep()

    def keep_alone() -> float:
        change(other)
        return alone.keep()

    return pairs(keep_ours, keep_alone, WARM_ROUNDS)


def rows() -> list[Row]:
    """The measurements of checkpoints."""
    found = []
    with tempfile.TemporaryDirectory(prefix="acp-agent-benchmark-") as name:
        base = Path(name)
        for what, (ours, floor) in (
            (f"checkpoint of {FILES:,} files, the first", _cold(base)),
            (f"… with {CHANGED} files changed", _warm(base, changing=True)),
            ("… with none changed", _warm(base, changing=False)),
        ):
            found.append(
                row(
                    what,
                    "ms",
                    [value * 1000 for value in ours],
                    "git add -A && git write-tree",
                    [value * 1000 for value in floor],
                    times=2,
                )
            )
    return found
