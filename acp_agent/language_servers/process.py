"""The process of a language server: started in its own process group, watched, ended.

This is the one place where such a program is started.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from acp_agent.content import printable_line
from acp_agent.platform import posix
from acp_agent.platform.watchdog import Watchdog
from acp_agent.sandbox.launch import Confine, unconfined
from acp_agent.workspace.child_process import (
    MARK,
    end_marked,
    end_process,
    start_confined,
    wait_at_most,
)
from protocol.transports.content_length import ContentLengthTransport

_EXIT_GRACE = 0.5  # seconds for a program to end by itself
_TERM_GRACE = 0.3  # seconds between asking its group to end and ending it
_MAX_LOGGED_LINES = 50  # of what it writes to stderr
_MAX_LINE = 300  # characters
_CHUNK = 64 * 1024
_PAUSE = 0.02  # seconds between pieces of one that writes much, so that nothing else starves

_log = logging.getLogger(__name__)


class ServerProcess:
    """A running program.

    Args:
        label: what it is called in the log.
        mark: the value of the variable that all its processes have.
        watch: ends it where this program is killed.
    """

    def __init__(
        self, process: asyncio.subprocess.Process, label: str, mark: str, watch: Watchdog
    ) -> None:
        assert process.stdout is not None
        assert process.stdin is not None
        self.transport = ContentLengthTransport(process.stdout, process.stdin)
        self.last_error_line = ""
        self._process = process
        self._label = label
        self._mark = mark
        self._watch = watch
        self._stderr = asyncio.create_task(self._log_stderr())

    @property
    def group(self) -> int:
        """The id of the process and of its group."""
        return self._process.pid

    def describe_end(self) -> str:
        """Return how it ended, as text for people."""
        code = self._process.returncode
        if self.transport.broken:
            text = self.transport.broken
        elif code is None:
            text = "it closed its output"
        elif code < 0:
            text = f"it was ended by {posix.signal_name(-code)}"
        else:
            text = f"it ended with exit code {code}"
        return f"{text}: {self.last_error_line}" if self.last_error_line else text

    async def wait_for_exit(self, limit: float) -> bool:
        """Wait at most `limit` seconds for its end; whether it has ended."""
        return await wait_at_most(self._process.wait(), limit)

    async def end(self) -> None:
        """Wait for its end, kill its group, and reap what is left."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        if not await self.wait_for_exit(_EXIT_GRACE):
            posix.end_group(self.group, at_once=False)
            await self.wait_for_exit(_TERM_GRACE)
        posix.end_group(self.group, at_once=True)
        # A child that left the group may hold the pipes open, and others may still read them.
        await asyncio.to_thread(end_marked, self._mark)
        self._stderr.cancel()
        self.transport.close()
        await asyncio.wait([self._stderr])
        await end_process(self._process)
        self._watch.remove_group(self.group)

    async def _log_stderr(self) -> None:
        assert self._process.stderr is not None
        count = 0
        while piece := await self._process.stderr.read(_CHUNK):
            lines = piece.decode("utf-8", "replace").splitlines()
            for line in lines[: max(0, _MAX_LOGGED_LINES - count)]:
                _log.info("%s: %s", self._label, printable_line(line, _MAX_LINE))
            count += len(lines)
            if lines:
                last = lines[-1][-4 * _MAX_LINE :]
                self.last_error_line = printable_line(last, _MAX_LINE) or self.last_error_line
            if count > _MAX_LOGGED_LINES or len(piece) == _CHUNK:
                await asyncio.sleep(_PAUSE)


async def start_server(
    command: Sequence[str],
    *,
    root: Path,
    environ: Mapping[str, str],
    label: str,
    watch: Watchdog,
    confine: Confine = unconfined,
) -> ServerProcess:
    """Start a language server.

    Args:
        command: the program, absolute, and its arguments.
        label: what it is called in the log.
        watch: ends it where this program is killed.
        confine: says how it is started.

    Raises:
        OSError: it cannot be started.
    """
    mark = f"{watch.mark.partition('=')[2]}{uuid.uuid4().hex}"
    watch.start()
    process = await start_confined(
        confine,
        command,
        {**environ, MARK: mark, "PWD": str(root)},
        str(root),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    watch.add_group(process.pid)
    return ServerProcess(process, label, mark, watch)


def new_watch() -> Watchdog:
    """Return what ends all language servers if this program is killed."""
    return Watchdog(f"{MARK}={uuid.uuid4().hex}.")
