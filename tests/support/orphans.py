"""Processes that a program left behind, found by a mark in their environment."""

from __future__ import annotations

import contextlib
from pathlib import Path

MARK = "ACP_TEST_PROCESS"


def marked_processes(mark: str) -> dict[int, str]:
    """Command lines by process id of all that inherited the mark; empty where /proc is missing."""
    wanted = f"{MARK}={mark}".encode()
    found: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted not in (folder / "environ").read_bytes().split(b"\0"):
                continue
            if (folder / "stat").read_text().rpartition(") ")[2].startswith("Z"):
                continue  # ended, and only its parent has not looked yet
            words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            continue
        found[int(folder.name)] = " ".join(words).strip()
    return found


def child_processes() -> list[int]:
    """The processes that this one has started and not reaped, on Linux."""
    tasks = Path("/proc/self/task").glob("*/children")
    children: list[int] = []
    for task in tasks:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            children += map(int, task.read_text().split())
    return children
