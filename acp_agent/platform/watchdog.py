"""A process that kills the children of this program when the program is killed.

A program that gets SIGKILL cannot kill its children. So a small shell script waits at the other
end of a pipe. When the pipe closes, for any reason, the script kills the process groups that it
was given, runs the commands that end others (containers) and, on Linux, kills every process with
the mark in its environment. It works on every POSIX system and for whole groups. Linux's
PR_SET_PDEATHSIG reaches only the shell, and depends on the thread that started it.

The script does not help if it is killed too, nor, outside Linux, with a process that left its
group.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import subprocess
import threading
from collections.abc import Sequence

_STOP_TIMEOUT = 2.0  # seconds for the script to exit after its pipe closes

# The script ignores signals, since it must outlive other processes that receive them.
_SCRIPT = r"""
trap '' TERM INT HUP
groups=' '
while read -r what group end; do
  case $what in
    +) groups="$groups$group "; eval "end_$group=\$end" ;;
    -) case $groups in *" $group "*) groups="${groups%% $group *} ${groups#* $group }" ;; esac ;;
    done) exit 0 ;;
  esac
done
waited=0
while [ "$groups" != ' ' ] && [ "$waited" -lt "$2" ]; do
  left=' '
  for group in $groups; do kill -0 "-$group" 2>/dev/null && left="$left$group "; done
  groups=$left
  [ "$groups" = ' ' ] || sleep 1
  waited=$((waited + 1))
done
for group in $groups; do kill -KILL "-$group" 2>/dev/null; done
for group in $groups; do
  eval "end=\$end_$group"
  [ -z "$end" ] || sh -c "$end" </dev/null >/dev/null 2>&1
done
if [ -n "$1" ] && [ -d /proc/self ]; then
  for round in 1 2 3; do
    for place in $(grep -la "$1" /proc/[0-9]*/environ 2>/dev/null); do
      process=${place#/proc/}
      process=${process%/environ}
      [ "$process" = $$ ] || kill -KILL "$process" 2>/dev/null
    done
  done
fi
"""


class Watchdog:
    """A watchdog process for one owner of child processes.

    Args:
        mark: the beginning of an environment variable of all children, as `NAME=value`; if empty,
            only their groups are killed.
        grace_seconds: seconds for the children to exit by themselves.
    """

    def __init__(self, mark: str, *, grace_seconds: int = 0) -> None:
        self.mark = mark
        self._grace_seconds = grace_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._tried = False

    def start(self) -> None:
        """Start the watchdog. Call this before the first child starts, so that none is missed.

        If the watchdog cannot be started, the children run without it. Thread-safe.
        """
        with self._lock:
            if self._tried:
                return
            self._tried = True
            with contextlib.suppress(OSError):
                self._process = subprocess.Popen(
                    [
                        "/bin/sh",
                        "-c",
                        _SCRIPT,
                        "acp-agent-watch",
                        self.mark,
                        str(self._grace_seconds),
                    ],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    bufsize=0,
                    cwd="/",
                    env={"PATH": os.defpath},
                    start_new_session=True,
                )

    def add_group(self, group: int, end: Sequence[str] = ()) -> None:
        """Add the process group of a child that was started.

        Args:
            end: a command that ends processes that the child had others start; may be empty.
        """
        self._send(f"+ {group} {shlex.join(end)}")

    def remove_group(self, group: int) -> None:
        """Remove the group of a child that has ended; its number may be reused soon."""
        self._send(f"- {group}")

    async def aclose(self) -> None:
        """Stop the watchdog without killing anything."""
        with self._lock:
            self._tried = True
            process, self._process = self._process, None
        if process is not None:
            await asyncio.to_thread(_stop, process)

    def _send(self, line: str) -> None:
        process = self._process
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.write(f"{line}\n".encode())


def _stop(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError), process.stdin:
        process.stdin.write(b"done\n")
    try:
        process.wait(_STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
