"""Finds out from the outside what programs in the sandbox reached."""

from __future__ import annotations

import os
import stat
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.sandbox.escape_cases import SECRET
from tests.sandbox.escape_world import World


class Judge:
    """Knows how the world was, and what of it changed."""

    def __init__(self, world: World) -> None:
        self.reached: defaultdict[str, list[str]] = defaultdict(list)  # by the case's name
        self._world = world
        self._files = self._look()
        self._processes = _processes()

    def _look(self) -> dict[str, str]:
        """What is to stay as it is, by path."""
        found = {}
        for root in (self._world.home, self._world.outside):
            for folder, folders, files in os.walk(root):
                for name in [".", *folders, *files]:
                    found[os.path.join(folder, name)] = _describe(Path(folder, name))
        return found

    def judge(self) -> dict[str, list[str]]:
        """What each case reached, by its name."""
        self._judge_files()
        self._judge_project()
        for said in [*self._world.heard, *self._world.shown().split(b"\n")]:
            names = [case.name for case in self._world.cases if case.name.encode() in said]
            if said:
                self.reached[max(names, key=len, default="server")].append(f"sent {said!r}")
        for name, victim in self._world.victims.items():
            problem = _problem_of(victim)
            if problem:
                self.reached[name].append(problem)
        for process in _processes() - self._processes:
            self.reached[_case_of(process)].append(f"left {_command(process)}")
        return self.reached

    def _judge_files(self) -> None:
        world, after = self._world, self._look()
        by_path = {case.path: case.name for case in world.cases if case.check == "outside"}
        for path in sorted(self._files.keys() | after.keys()):
            if self._files.get(path) == after.get(path):
                continue
            owner = (*Path(path).relative_to(world.base).parts, path)[1]
            if Path(path).is_relative_to(world.home):
                relative = str(Path(path).relative_to(world.home))
                owner = by_path.get(relative) or relative
            self.reached[owner].append(f"{path}: {self._files.get(path)} -> {after.get(path)}")

    def _judge_project(self) -> None:
        world = self._world
        for case in world.cases:
            if case.check == "project":
                file = world.folder_of(case) / case.path
                text = file.read_text() if file.exists() else None
                if text != ("before\n" if case.folder == "filled" else None):
                    self.reached[case.name].append(f"left {text!r}")
        for path in self._left_files():
            with open(path, "rb") as opened:
                if SECRET.encode() in opened.read(1_000_000):
                    self.reached[path.relative_to(world.project).parts[0]].append(f"left {path}")

    def _left_files(self) -> Iterator[Path]:
        for folder, folders, files in os.walk(self._world.project):
            folders[:] = [name for name in folders if not os.path.ismount(f"{folder}/{name}")]
            for name in files:
                path = Path(folder, name)
                if stat.S_ISREG(path.lstat().st_mode) and name != "results.json":
                    yield path


def _describe(path: Path) -> str:
    found = path.lstat()
    content = path.read_bytes() if stat.S_ISREG(found.st_mode) else b""
    attributes = [] if path.is_symlink() else os.listxattr(path)
    times = 0 if stat.S_ISFIFO(found.st_mode) else found.st_mtime_ns
    owner = f"{found.st_uid}:{found.st_gid}"
    return f"{found.st_mode:o} {owner} {found.st_nlink} {times} {attributes} {content[:99]!r}"


def _processes() -> set[int]:
    """All processes but zombies."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if path.read_text().rpartition(") ")[2][0] not in "ZX":
                found.add(int(path.parent.name))
    return found


def _command(process: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_text("utf-8", "replace")
    return str(process)


def _case_of(process: int) -> str:
    with suppress(OSError):
        for entry in Path(f"/proc/{process}/environ").read_text("utf-8", "replace").split("\0"):
            if entry.startswith("CASE="):
                return entry.removeprefix("CASE=")
    return "left"


def _problem_of(victim: subprocess.Popen[bytes]) -> str:
    if victim.poll() is not None:
        return f"ended with {victim.returncode}"
    folder = Path(f"/proc/{victim.pid}")
    status = dict(
        line.split(":\t", 1)
        for line in (folder / "status").read_text().splitlines()
        if ":\t" in line
    )
    problems = [
        f"state {status['State']}" if status["State"][0] in "Tt" else "",
        "traced" if status["TracerPid"].strip() != "0" else "",
        "memory changed" if SECRET.encode() not in (folder / "environ").read_bytes() else "",
        "priority changed"
        if os.getpriority(os.PRIO_PROCESS, victim.pid) != os.getpriority(os.PRIO_PROCESS, 0)
        else "",
        "processors changed" if os.sched_getaffinity(victim.pid) != os.sched_getaffinity(0) else "",
        "limits changed"
        if "Max open files            3 " in (folder / "limits").read_text()
        else "",
        "oom_score_adj" if (folder / "oom_score_adj").read_text() == "900\n" else "",
    ]
    return ", ".join(filter(None, problems))
