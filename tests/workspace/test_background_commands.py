"""Background commands: what is kept of their output, how they are awaited, how many may run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from acp_agent.errors import ToolError, WorkspaceError
from acp_agent.workspace import command_output
from acp_agent.workspace.background_commands import (
    UNREAD_TAIL,
    BackgroundCommand,
    BackgroundCommands,
)
from acp_agent.workspace.processes import LocalProcesses


@pytest.fixture
async def processes(tmp_path: Path) -> AsyncIterator[LocalProcesses]:
    local_processes = LocalProcesses(tmp_path / "outputs", environ=os.environ)
    yield local_processes
    await local_processes.aclose()


async def ignore_output(text: str) -> None:
    del text


async def ignore_end(command: BackgroundCommand) -> None:
    del command


async def start(
    commands: BackgroundCommands, processes: LocalProcesses, line: str, folder: Path
) -> BackgroundCommand:
    command = commands.new("call", line)
    await command.start(processes, folder, timeout=None, on_output=ignore_output, on_end=ignore_end)
    return command


async def test_long_unread_output_is_cut_to_its_end_and_names_its_file(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    commands = BackgroundCommands()
    command = await start(commands, processes, "seq 1 100000", tmp_path)
    await command.wait(20)
    await command.ended()
    text = command.read_output()
    note, _, unread = text.partition("\n")
    assert len(unread) == UNREAD_TAIL
    assert unread.endswith("99999\n100000\n")
    assert command.file is not None
    assert str(command.file) in note
    assert command.file.read_text().startswith("1\n2\n3\n")
    stored = len("".join(f"{number}\n" for number in range(1, 100_001)))
    assert note.startswith(f"[... {stored - UNREAD_TAIL:,} characters are left out here")
    assert command.read_output() == ""


@pytest.mark.parametrize("full", [False, True])
async def test_output_beyond_the_files_limit_is_still_read_and_awaited(
    processes: LocalProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    if full:
        monkeypatch.setattr(command_output, "FILE_LIMIT", 100_000)
    else:  # the folder for outputs cannot be made
        (tmp_path / "outputs").touch()
    commands = BackgroundCommands()
    line = "seq 1 50000; while [ ! -e go ]; do sleep 0.05; done; echo on port 8080; exec sleep 1000"
    command = await start(commands, processes, line, tmp_path)
    assert await command.wait(20, "50000")
    command.read_output()
    (tmp_path / "go").touch()
    assert await command.wait(20, "on port")
    assert command.read_output() == "on port 8080\n"


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("ready", True), ("on port *80*", True), ("server*port", True), ("*", True),
        ("port*server", False), ("Ready", False), ("s.rver", False), ("server\nready", False),
    ],
)  # fmt: skip
async def test_waiting_ends_with_a_line_that_matches(
    processes: LocalProcesses, tmp_path: Path, pattern: str, matches: bool
) -> None:
    commands = BackgroundCommands()
    line = "echo 'server on port 8080'; echo ready; exec sleep 1000"
    command = await start(commands, processes, line, tmp_path)
    assert await command.wait(20, "ready")
    assert await command.wait(0.01, pattern) is matches
    assert command.is_running


async def test_an_awaited_line_matches_even_if_much_output_follows() -> None:
    command = BackgroundCommand("1", "call", "npm run build")
    waiting = asyncio.create_task(command.wait(20, "on port"))
    await asyncio.sleep(0)
    command.wrote("on port 8080\n" + "a warning\n" * 10_000, None)
    command.wrote("a warning\n" * 10_000, None)
    assert await waiting
    assert not await command.wait(0.01, "on port")  # the next one waits for another


async def test_the_number_of_running_commands_is_limited(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    commands = BackgroundCommands(limit=1)
    first = await start(commands, processes, "exec sleep 1000", tmp_path)
    with pytest.raises(ToolError, match="1 background commands run already"):
        commands.check_limit()
    first.stop()
    await first.ended()
    assert first.result is not None
    assert first.result.signal == "SIGTERM"
    commands.check_limit()


async def test_the_error_for_a_command_that_cannot_start_says_why(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    commands = BackgroundCommands()
    with pytest.raises(WorkspaceError, match="does not exist any more"):
        await start(commands, processes, "true", tmp_path / "gone")
    assert not commands.running


async def test_the_error_for_an_unknown_name_lists_the_existing_ones(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    commands = BackgroundCommands()
    await start(commands, processes, "true", tmp_path)
    with pytest.raises(ToolError, match=r"no background command '7'; there are: 1"):
        commands.get("7")
    assert commands.get("#1").name == "1"


async def test_all_commands_end_when_their_processes_are_closed(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    commands = BackgroundCommands()
    command = await start(commands, processes, "trap '' TERM; sleep 1000 & wait", tmp_path)
    async with asyncio.timeout(60):
        await processes.aclose()
        await commands.ended()
    assert command.result is not None
    assert not command.is_running
