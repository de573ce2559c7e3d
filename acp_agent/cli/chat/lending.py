"""The terminal, lent to other programs while nothing of the chat's is drawn in it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Protocol, TextIO, TypeVar

from acp_agent.cli.chat.user_command import Ran, UserCommand
from acp_agent.cli.output import FAILED

_R_co = TypeVar("_R_co", covariant=True)

_END_SECONDS = 2.0  # for a program to end that is asked to
_LOOK_SECONDS = 0.2  # between two looks whether it is asked to


class _Guest(Protocol[_R_co]):
    """Who has the terminal."""

    def run(self) -> _R_co:
        """Have it until the end."""

    def stop(self) -> None:
        """Come to an end."""


class Lending:
    """Runs programs in the terminal, one after the other.

    Args:
        free: takes whatever is drawn off the terminal, and draws it again at its end.
        cwd: the folder that the user's commands run in.
        screen: the terminal that their output goes to.
    """

    def __init__(
        self, free: Callable[[], AbstractAsyncContextManager[None]], cwd: Path, *, screen: TextIO
    ) -> None:
        self._free = free
        self._cwd = cwd
        self._screen = screen
        self._guest: _Guest[object] | None = None
        self._closed = False

    @property
    def lent(self) -> bool:
        """Whether another program has the terminal: Ctrl-C is for that."""
        return self._guest is not None

    async def run(self, program: Sequence[str], environ: Mapping[str, str]) -> int:
        """Run a program with more variables than the chat has; its exit status."""
        try:
            return await self._lend(_Program(program, environ))
        except OSError:
            return FAILED

    async def run_command(self, command: str) -> Ran:
        """Run a command of the user's in the user's shell. Raises OSError."""
        return await self._lend(
            UserCommand(command, self._cwd, keys=0, screen=self._screen.fileno())
        )

    def close(self) -> None:
        """Lend it no more; a program that has it is ended."""
        self._closed = True
        if self._guest is not None:
            self._guest.stop()

    async def _lend(self, guest: _Guest[_R_co]) -> _R_co:
        async with self._free():
            self._guest = guest
            if self._closed:
                guest.stop()
            try:
                return await asyncio.to_thread(guest.run)
            finally:
                self._guest = None


class _Program:
    """A program that has the terminal as it is; asked to stop, it has `_END_SECONDS` for that."""

    def __init__(self, program: Sequence[str], environ: Mapping[str, str]) -> None:
        self._program = program
        self._environ = {**os.environ, **environ}
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Have it ended; returns at once."""
        self._stopped.set()

    def run(self) -> int:
        """Run it to its end; its exit status. Raises OSError."""
        with subprocess.Popen(self._program, env=self._environ) as process:
            while process.poll() is None:
                if not self._stopped.is_set():
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(_LOOK_SECONDS)
                    continue
                process.terminate()
                try:
                    process.wait(_END_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
            return process.returncode
