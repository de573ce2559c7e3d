"""A started command: its process group, and how both come to their end.

What it leaves behind:

- Background processes of its group are ended as soon as the shell itself has ended.
- A process that left the group on purpose (a daemon that called setsid) lives on after a command
  that ended by itself, as build daemons want to. It is ended when its command is cancelled or timed
  out, and when the session closes. It is found by a variable in its environment, which only Linux
  shows, and which a program can erase: there the sandbox has to hold it.
- When this program itself is killed, another process ends what it left (`platform.death_watch`).
"""

from __future__ import annotations

import asyncio

from acp_agent.platform import posix
from acp_agent.workspace.child_output import ChildOutput, within

MARK = "ACP_AGENT_COMMAND"  # the variable that tells whose a process is

_TERM_GRACE = 0.7  # seconds between asking a group to end and ending it
LINGER = 0.25  # seconds for background processes to end by themselves
REAP_LIMIT = 5.0  # seconds for an ended process to go; more only in the kernel's own waits
_POLL = 0.02  # seconds between two looks at a group


class StartedCommand:
    """A command whose shell was started, as the leader of a group."""

    def __init__(
        self, transport: asyncio.SubprocessTransport, reader: ChildOutput, mark: str
    ) -> None:
        self.transport = transport
        self.reader = reader
        self.group = transport.get_pid()
        self.mark = mark
        self.background_ended = False

    async def end(self) -> None:
        """Ask the group to end, and end what is left of it after a moment."""
        posix.end_group(self.group, at_once=False)
        await within(self.reader.exited.wait(), _TERM_GRACE)
        if not self.reader.exited.is_set() or not await self._group_gone(LINGER):
            posix.end_group(self.group, at_once=True)
        await within(self.reader.exited.wait(), REAP_LIMIT)
        await self.end_strays()

    async def end_background(self) -> None:
        """After the shell has ended: end what it left running in its group."""
        if await self._group_gone(LINGER):
            return
        self.background_ended = True
        posix.end_group(self.group, at_once=False)
        if not await self._group_gone(_TERM_GRACE):
            posix.end_group(self.group, at_once=True)
            await self._group_gone(LINGER)

    async def end_strays(self) -> None:
        """End the processes of this command that left its group."""
        await asyncio.to_thread(end_marked, self.mark)

    async def _group_gone(self, limit: float) -> bool:
        if not posix.group_alive(self.group):
            return True
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limit
        while await asyncio.to_thread(posix.group_runs, self.group):
            if loop.time() >= deadline:
                return False
            await asyncio.sleep(_POLL)
        return True


def end_marked(mark: str) -> None:
    """End all processes with the mark; again, since they may have started others meanwhile."""
    for _ in range(3):
        strays = posix.marked_processes(f"{MARK}={mark}")
        if not strays:
            return
        for process in strays:
            posix.end_process(process)
