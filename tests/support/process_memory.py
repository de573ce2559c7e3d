"""How much memory a process takes, where /proc says so.

Elsewhere it is 0, which is below every limit: what else a test asserts is still asserted there.
A test that is about memory alone has the mark `needs_memory`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

_HAS_STATUS = Path("/proc/self/status").exists()

needs_memory = pytest.mark.skipif(not _HAS_STATUS, reason="needs /proc/PID/status")


def resident_memory(pid: int) -> int:
    """Bytes that it has at the moment."""
    return _status_bytes(pid, "VmRSS:")


def peak_memory(pid: int) -> int:
    """The highest number of bytes that it had."""
    return _status_bytes(pid, "VmHWM:")


def _status_bytes(pid: int, field: str) -> int:
    if not _HAS_STATUS:
        return 0
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024
