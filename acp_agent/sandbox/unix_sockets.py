"""Find the unix sockets of other programs, which a confined program could otherwise connect to.

The kernel lists a socket by the name that its program used. The name may be relative to that
program's folder, and the file may have been renamed or linked since (supervisors do that).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_LIST = Path(
    "/proc/net/unix"
)  # unix(7); the seventh column is the socket's number, the eighth its name


class UnixSockets:
    """The sockets that have a name in a file system."""

    def __init__(self) -> None:
        self._relative: dict[str, str] = {}  # absolute paths of sockets by number; "" if unknown

    def find(self) -> set[str]:
        """Return the resolved paths of all sockets and pipes in folders that have a socket."""
        paths: set[str] = set()
        relative: dict[str, str] = {}
        with suppress(OSError), _LIST.open(encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                fields = line.rstrip("\n").split(maxsplit=7)
                if len(fields) < 8 or fields[0] == "Num" or fields[7].startswith("@"):
                    continue
                if fields[7].startswith("/"):
                    paths.add(fields[7])
                else:
                    relative[fields[6]] = fields[7]
        unknown = relative.keys() - self._relative.keys()
        if unknown:
            self._relative |= dict.fromkeys(unknown, "") | _resolve(unknown, relative)
        paths.update(filter(None, map(self._relative.get, relative)))
        folders = {os.path.realpath(os.path.dirname(path)) for path in paths}  # noqa: PTH120 - strings
        return {*_special_files(folders), *map(os.path.realpath, filter(os.path.lexists, paths))}


def _resolve(numbers: Iterable[str], names: dict[str, str]) -> dict[str, str]:
    """Return the paths of sockets with relative names, from the folders of their processes."""
    numbers_by_link = {f"socket:[{number}]": number for number in numbers}
    paths: dict[str, str] = {}
    for process in os.listdir("/proc"):  # noqa: PTH208 - strings
        if process.isdecimal():
            with suppress(OSError), os.scandir(f"/proc/{process}/fd") as entries:
                for entry in entries:
                    number = numbers_by_link.get(os.readlink(entry.path))  # noqa: PTH115 - strings
                    if number is not None:
                        folder = os.readlink(f"/proc/{process}/cwd")  # noqa: PTH115 - strings
                        paths[number] = os.path.join(folder, names[number])  # noqa: PTH118 - strings
    return paths


def _special_files(folders: Iterable[str]) -> Iterable[str]:
    for folder in folders:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink() or entry.is_file() or entry.is_dir():
                    continue  # known without a stat call
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode):
                    yield entry.path
