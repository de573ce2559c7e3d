"""`acp-agent run` in a terminal, a real pseudo-terminal: it asks, it has colours, Ctrl-C works."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import signal
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.agent_process import environment
from tests.support.model_server import ModelServer, Stall, answer
from tests.support.orphans import MARK, marked_processes

DEMO = ("--model", "demo/demo")
CTRL_C = b"\x03"


class Terminal:
    """A person at a terminal in which the command runs."""

    def __init__(self, descriptor: int, process: asyncio.subprocess.Process, mark: str) -> None:
        self.process = process
        self._mark = mark
        self.screen = ""
        self._descriptor = descriptor
        self._changed = asyncio.Event()
        asyncio.get_running_loop().add_reader(descriptor, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, 65536)
        except OSError:  # how Linux says that the other side is closed
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._descriptor)
        self.screen += data.decode("utf-8", "replace")
        self._changed.set()

    async def see(self, text: str, *, times: int = 1) -> None:
        async with asyncio.timeout(30):
            while re.sub(r"\x1b\[[0-9;]*m", "", self.screen).count(text) < times:
                self._changed.clear()
                await self._changed.wait()

    def type(self, data: bytes) -> None:
        os.write(self._descriptor, data)

    def processes(self) -> dict[int, str]:
        return marked_processes(self._mark)

    async def status(self) -> int:
        async with asyncio.timeout(30):
            return await self.process.wait()


@asynccontextmanager
async def terminal(
    home: Path, cwd: Path, *arguments: str, **variables: str
) -> AsyncIterator[Terminal]:
    ours, theirs = pty.openpty()
    mark = uuid.uuid4().hex
    process = await asyncio.create_subprocess_exec(
        # A session of its own whose terminal this is, so that Ctrl-C becomes its SIGINT.
        *(sys.executable, "-c", _IN_TERMINAL, "run", *arguments),
        cwd=cwd,
        env=environment(home, variables) | {"TERM": "xterm", MARK: mark},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Terminal(ours, process, mark)
        await _nothing_left(mark)
    finally:
        asyncio.get_running_loop().remove_reader(ours)
        os.close(ours)
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _nothing_left(mark: str) -> None:
    async with asyncio.timeout(10):
        while marked_processes(mark):
            await asyncio.sleep(0.02)


_IN_TERMINAL = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from acp_agent.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


async def test_a_person_is_asked_and_the_answer_counts(home: Path, workspace_repo: Path) -> None:
    async with terminal(home, workspace_repo, *DEMO, "$ touch made.txt") as person:
        await person.see("Your choice:")
        assert "1) Allow once" in person.screen
        assert not (workspace_repo / "made.txt").exists()
        person.type(b"1\n")
        assert await person.status() == 0
        assert (workspace_repo / "made.txt").exists()


async def test_what_is_no_answer_is_asked_again_and_then_refused(
    home: Path, workspace_repo: Path
) -> None:
    async with terminal(home, workspace_repo, *DEMO, "$ touch made.txt") as person:
        for times, typed in enumerate((b"\n", b"yes\n", b"9\n"), 1):
            await person.see("Your choice:", times=times)
            person.type(typed)
        assert await person.status() == 0
        assert not (workspace_repo / "made.txt").exists()


async def test_colours_are_for_terminals_and_can_be_turned_off(
    home: Path, workspace_repo: Path
) -> None:
    async with terminal(home, workspace_repo, *DEMO, "read README.md") as person:
        assert await person.status() == 0
        await person.see("stop reason: end_turn")
        assert "\x1b[36m* Read README.md" in person.screen
    async with terminal(home, workspace_repo, *DEMO, "read README.md", NO_COLOR="1") as person:
        assert await person.status() == 0
        await person.see("stop reason: end_turn")
        assert "\x1b" not in person.screen


async def test_a_file_cannot_drive_the_terminal(home: Path, workspace_repo: Path) -> None:
    (workspace_repo / "evil.txt").write_text("a\x1b]0;title\x07b\x9b2Jc\n")
    async with terminal(home, workspace_repo, *DEMO, "read evil.txt") as person:
        assert await person.status() == 0
        await person.see("stop reason")
        assert "\x1b]" not in person.screen
        assert "\x9b" not in person.screen


@pytest.mark.parametrize("when", ["asked", "streaming"])
async def test_ctrl_c_cancels_the_turn(
    home: Path, workspace_repo: Path, model_server: ModelServer, when: str
) -> None:
    model_server.add(answer("The first words ", Stall(), "never come."))
    if when == "asked":
        arguments, seen, variables = (*DEMO, "$ touch made.txt"), "Your choice:", {}
    else:
        arguments, seen, variables = ("talk",), "first words", model_server.environ()
    async with terminal(home, workspace_repo, *arguments, **variables) as person:
        await person.see(seen)
        person.type(CTRL_C)
        assert await person.status() == 130
        await person.see("stop reason: cancelled")
    assert not (workspace_repo / "made.txt").exists()


async def test_a_second_ctrl_c_quits_though_the_agent_does_not_answer(
    home: Path, workspace_repo: Path
) -> None:
    words = "$ echo ready; sleep 60"
    async with terminal(home, workspace_repo, *DEMO, "--mode", "full", words) as person:
        await person.see("| ready")
        [agent] = [pid for pid, line in person.processes().items() if " acp_agent acp " in line]
        os.kill(agent, signal.SIGSTOP)
        person.type(CTRL_C)
        await person.see("once more quits")
        person.type(CTRL_C)
        assert await person.status() == 130
        for pid in person.processes():  # what the stopped agent could not end any more
            os.kill(pid, signal.SIGKILL)
