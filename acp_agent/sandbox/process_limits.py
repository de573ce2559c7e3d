"""Kill processes of a confined command that exceed limits which the kernel does not enforce.

The kernel does not limit the number of root's processes or the memory that processes share.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from msgspec import Struct, field

from acp_agent.sandbox.git_data import read_small_file

_PAGE = os.sysconf("SC_PAGE_SIZE")
# Memory that is not backed by files on disk; proc_pid_status(5)
_SHARED = (b"RssAnon:", b"RssShmem:")


class ProcessLimits(Struct):
    """The limits of a command.

    Attributes:
        killed: killed processes that still exist; they do not count.
    """

    processes: int
    memory: int
    killed: set[int] = field(default_factory=set)

    def enforce(self, leader: int) -> str:
        """Kill processes that exceed the limits; return the exceeded limit, or "".

        If there are too many processes, the one that started most of them is killed with all its
        descendants. Reads a few small files for each process.
        """
        children: dict[int, list[int]] = {}
        sizes: dict[int, int] = {}
        processes = [leader]
        for process in processes:
            sizes[process], children[process] = _inspect_process(process)
            processes += children[process]
        self.killed.intersection_update(processes)
        sizes |= dict.fromkeys(self.killed, 0)
        if sum(sizes.values()) > self.processes:
            for process in reversed(processes):
                sizes[process] += sum(sizes[child] for child in children[process])
            victim = leader
            while larger := [
                candidate
                for candidate in children[victim]
                if sizes[candidate] > self.processes // 2
            ]:
                victim = max(larger, key=sizes.__getitem__)
            self.killed.update(_kill_tree(victim))
            return f"more than {self.processes:,} processes"
        for process in processes:
            if _resident(process) > self.memory and _private_memory(process) > self.memory:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(process, signal.SIGKILL)
                return f"a process with more than {self.memory:,} bytes of memory"
        return ""


def _inspect_process(process: int) -> tuple[int, list[int]]:
    """Return the number of threads of a process, and its children."""
    threads: list[str] = []
    children: list[int] = []
    with suppress(OSError):
        threads = os.listdir(f"/proc/{process}/task")  # noqa: PTH208 - many, and pathlib is slow
    for thread in threads:
        children += map(int, read_small_file(f"/proc/{process}/task/{thread}/children").split())
    return len(threads), children


def _kill_tree(victim: int) -> list[int]:
    """Kill a process, then its descendants; in this order, so that it starts no new ones."""
    processes = [victim]
    for process in processes:
        processes += _inspect_process(process)[1]
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)
    return processes


def _resident(process: int) -> int:
    fields = read_small_file(f"/proc/{process}/statm").split()
    return int(fields[1]) * _PAGE if len(fields) > 1 else 0


def _private_memory(process: int) -> int:
    lines = read_small_file(f"/proc/{process}/status").splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(_SHARED))
