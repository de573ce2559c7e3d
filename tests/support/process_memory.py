"""How much memory a process takes, where the system tells it under /proc.

Elsewhere it is 0, which is below every limit: what else a test asserts is still asserted there.
A test that is about memory alone has the mark `needs_memory`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

_TOLD = Path("/proc/self/status").exists()

needs_memory = pytest.mark.skipif(not _TOLD, reason="the system does not tell a process's memory")


def resident_memory(pid: int) -> int:
    """Bytes that it has at the moment."""
    return _told(pid, "VmRSS:")


def peak_memory(pid: int) -> int:
    """The most bytes that it ever had."""
    return _told(pid, "VmHWM:")


def _told(pid: int, what: str) -> int:
    if not _TOLD:
        return 0
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(what))
    return int(line.split()[1]) * 1024
