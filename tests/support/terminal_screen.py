"""A person at a terminal: a real pseudo-terminal, and a terminal emulator that reads the screen.

    async with terminal(home, cwd, "chat", "--model", "demo/demo") as person:
        await person.see("Demo (offline)")      # on the screen or scrolled off it
        person.type("read README.md\\r")
        await person.see("Done.")
        assert await person.status() == 0

`program_in_terminal` does so with any other program. `pyte` is the emulator: what it shows is what
a terminal would show, after every cursor movement. Leaving the block asserts that no process was
left behind.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import struct
import sys
import termios
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

import pyte

from tests.support.agent_process import Process, environment
from tests.support.orphans import MARK, marked_processes
from tests.support.warm_parent import shared_parent

CTRL_C, CTRL_D, CTRL_J, ESCAPE, ENTER, TAB = "\x03", "\x04", "\n", "\x1b", "\r", "\t"

_SECONDS = 30.0
_PASTE_PIECE = 1024  # bytes; a terminal holds 4096 at least

_TAKE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execvp(sys.argv[1], sys.argv[1:])"
)


class Person:
    """Sees what the screen shows, and types."""

    def __init__(
        self,
        descriptor: int,
        process: Process,
        *,
        mark: str,
        columns: int,
        rows: int,
    ) -> None:
        self.process = process
        self.raw = b""  # everything that was written to the terminal
        self._mark = mark
        self._descriptor = descriptor
        self._screen = pyte.HistoryScreen(columns, rows, history=2000)
        self._stream = pyte.ByteStream(self._screen)
        self._changed = asyncio.Event()
        asyncio.get_running_loop().add_reader(descriptor, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, 65536)
        except OSError:  # how Linux says that the other side is closed
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._descriptor)
        self.raw += data
        self._stream.feed(data)
        self._changed.set()

    @property
    def screen(self) -> list[str]:
        """The rows that the terminal shows now, without the spaces behind them."""
        return [row.rstrip() for row in self._screen.display]

    @property
    def column(self) -> int:
        """The column of the cursor, counted from 0."""
        return int(self._screen.cursor.x)

    @property
    def scrolled(self) -> list[str]:
        """The rows that scrolled off the screen."""
        width = self._screen.columns
        return [
            "".join(row[column].data for column in range(width)).rstrip()
            for row in self._screen.history.top
        ]

    @property
    def text(self) -> str:
        """All rows, the oldest first."""
        return "\n".join([*self.scrolled, *self.screen])

    async def see(self, *texts: str) -> None:
        """Wait until all of the texts are to be seen; spaces and line ends count as one space."""
        await self._until(lambda: all(_plain(text) in _plain(self.text) for text in texts), texts)

    async def count(self, text: str, times: int) -> None:
        """Wait until a text is to be seen so many times."""
        await self._until(lambda: _plain(self.text).count(_plain(text)) >= times, (text,))

    async def see_row(self, row: str) -> None:
        """Wait until one row of the screen is `row`."""
        await self._until(lambda: row in self.screen, (row,))

    async def miss(self, text: str) -> None:
        """Wait until a text is not on the screen any more."""
        await self._until(lambda: _plain(text) not in _plain("\n".join(self.screen)), (text,))

    async def _until(self, true: object, wanted: tuple[str, ...]) -> None:
        assert callable(true)
        try:
            async with asyncio.timeout(_SECONDS):
                while not true():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(
                f"did not come: {wanted}\n--- the terminal:\n{self.text}"
            ) from None

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._descriptor, keys.encode())

    def paste(self, text: str) -> None:
        """Paste, as terminals do that say what is pasted."""
        self.type(f"\x1b[200~{text}\x1b[201~")

    async def paste_slowly(self, text: str) -> None:
        """Paste a text that is longer than what a terminal holds until it is read."""
        rest = f"\x1b[200~{text}\x1b[201~".encode()
        while rest:
            await asyncio.to_thread(os.write, self._descriptor, rest[:_PASTE_PIECE])
            rest = rest[_PASTE_PIECE:]

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size."""
        self._screen.resize(rows, columns)
        set_size(self._descriptor, columns, rows)

    def processes(self) -> dict[int, str]:
        """Command lines by process id of what runs in the terminal."""
        return marked_processes(self._mark)

    async def status(self) -> int:
        """The exit status, once the program ended."""
        async with asyncio.timeout(_SECONDS):
            return await self.process.wait()


def set_size(descriptor: int, columns: int, rows: int) -> None:
    """Give a terminal a size."""
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@asynccontextmanager
async def terminal(
    home: Path,
    cwd: Path,
    *arguments: str,
    columns: int = 80,
    rows: int = 24,
    environ: Mapping[str, str] | None = None,
) -> AsyncIterator[Person]:
    """Run `acp-agent` with `arguments` in a terminal of its own, until it ends."""
    env = environment(home) | {"TERM": "xterm-256color", "LANG": "C.UTF-8"} | dict(environ or {})
    start = partial(shared_parent().start_in_terminal, arguments=arguments)
    async with _started(start, cwd=cwd, env=env, columns=columns, rows=rows) as person:
        yield person
        await _nothing_left(person)


@asynccontextmanager
async def program_in_terminal(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], columns: int = 80, rows: int = 24
) -> AsyncIterator[Person]:
    """Run any program in a terminal of its own; it is ended with the block, if it still runs."""
    start = partial(_start_program, command=command)
    async with _started(start, cwd=cwd, env=env, columns=columns, rows=rows) as person:
        yield person
    await _nothing_left(person)


async def _start_program(
    terminal: int, *, command: Sequence[str], cwd: Path, env: Mapping[str, str]
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-c", _TAKE_TERMINAL, *command),
        cwd=cwd,
        env=env,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )


class _Start(Protocol):
    async def __call__(self, terminal: int, /, *, cwd: Path, env: Mapping[str, str]) -> Process: ...


@asynccontextmanager
async def _started(
    start: _Start, *, cwd: Path, env: Mapping[str, str], columns: int, rows: int
) -> AsyncIterator[Person]:
    """A session of its own whose terminal this is, so that signals of the terminal reach it."""
    ours, theirs = pty.openpty()
    set_size(ours, columns, rows)
    mark = uuid.uuid4().hex
    process = await start(theirs, cwd=cwd, env={**env, MARK: mark})
    os.close(theirs)
    try:
        yield Person(ours, process, mark=mark, columns=columns, rows=rows)
    finally:
        asyncio.get_running_loop().remove_reader(ours)
        os.close(ours)
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _nothing_left(person: Person) -> None:
    async with asyncio.timeout(60):
        while person.processes():
            await asyncio.sleep(0.02)


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text)
