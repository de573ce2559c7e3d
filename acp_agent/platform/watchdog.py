"""A process that ends the children of this program when the program is killed.

A program that gets SIGKILL cannot end anything. So a small shell script waits at the other end of a
pipe: when the pipe is closed, however that happens, it ends the process groups that it was given
and, on Linux, every process with the mark in its environment. It works on every POSIX system and
for whole groups. Linux's PR_SET_PDEATHSIG does not: it reaches the shell alone, and follows the
thread that started it.

It cannot help when it is killed too, nor, outside Linux, with a process that left its group.
"""

from __future__ import annotations

import asyncio
import contextlib
import os

_STOP_TIMEOUT = 2.0  # seconds for the script to end once its pipe is closed

# Signals to this process are not its end: it has to outlive whoever gets them with it.
_SCRIPT = """
trap '' TERM INT HUP
groups=' '
while read -r what group; do
  case $what in
    +) groups="$groups$group " ;;
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
    """The watching process of one owner of children.

    Args:
        mark: the beginning of the variable that all the children have, written `NAME=value`; empty
            where they have none, and only their groups are ended.
        grace_seconds: seconds for the children to end by themselves.
    """

    def __init__(self, mark: str, *, grace_seconds: int = 0) -> None:
        self.mark = mark
        self._grace_seconds = grace_seconds
        self._process: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()
        self._tried = False

    async def start(self) -> None:
        """Begin to watch; before the first child, so that none is missed.

        Where no process can be started, the children run all the same.
        """
        async with self._starting:
            if self._tried:
                return
            with contextlib.suppress(OSError):
                self._process = await asyncio.create_subprocess_exec(
                    "/bin/sh",
                    "-c",
                    _SCRIPT,
                    "acp-agent-watch",
                    self.mark,
                    str(self._grace_seconds),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.DEVNULL,
                    cwd="/",
                    env={"PATH": os.defpath},
                    start_new_session=True,
                )
            self._tried = True  # not before: whoever starts it may be cancelled

    def add_group(self, group: int) -> None:
        """A child began to run."""
        self._say(f"+ {group}")

    def remove_group(self, group: int) -> None:
        """Nothing of a child is left: its number may be another's soon."""
        self._say(f"- {group}")

    async def aclose(self) -> None:
        """There is nothing to watch any more."""
        async with self._starting:  # where it is being started, it is ended with the others
            self._tried = True
            process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.write(b"done\n")
            process.stdin.close()
        try:
            async with asyncio.timeout(_STOP_TIMEOUT):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def _say(self, line: str) -> None:
        if self._process is None or self._process.stdin is None:
            return
        with contextlib.suppress(OSError):
            self._process.stdin.write(f"{line}\n".encode())
