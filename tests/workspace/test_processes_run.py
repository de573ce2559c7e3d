"""Running commands: what comes out, how it ends, and what cannot be started."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from acp_agent.errors import WorkspaceError
from acp_agent.workspace.command_output import LIVE_LIMIT, LiveOutput
from acp_agent.workspace.processes import CommandResult, LocalProcesses


@pytest.fixture
async def processes(tmp_path: Path) -> AsyncIterator[LocalProcesses]:
    local = LocalProcesses(tmp_path / "outputs", environ=os.environ)
    yield local
    await local.aclose()


class Pieces:
    """What came live, and when."""

    def __init__(self) -> None:
        self.pieces: list[tuple[float, str]] = []
        self.arrived = asyncio.Event()

    async def __call__(self, text: str) -> None:
        self.pieces.append((time.monotonic(), text))
        self.arrived.set()

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.pieces)


async def run(
    processes: LocalProcesses, command: str, cwd: Path, pieces: Pieces | None = None
) -> CommandResult:
    return await processes.run(command, cwd, timeout=20, on_output=pieces or Pieces())


async def test_output_and_errors_come_as_one_stream_in_the_order_they_were_written(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    pieces = Pieces()
    result = await run(processes, "echo one; echo two >&2; echo three", tmp_path, pieces)
    assert result.output == pieces.text == "one\ntwo\nthree\n"
    assert (result.exit_code, result.signal, result.timed_out) == (0, None, False)
    assert result.total_bytes == len("one\ntwo\nthree\n")
    assert result.full_output is None


async def test_the_exit_code_is_the_commands_own(processes: LocalProcesses, tmp_path: Path) -> None:
    assert (await run(processes, "exit 7", tmp_path)).exit_code == 7


async def test_a_command_that_a_signal_ends_names_the_signal(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    result = await run(processes, "kill -SEGV $$", tmp_path)
    assert (result.exit_code, result.signal) == (None, "SIGSEGV")


async def test_the_command_runs_in_the_folder_it_was_given(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    assert (await run(processes, "pwd -P", tmp_path)).output == f"{tmp_path.resolve()}\n"


@pytest.mark.skipif(shutil.which("bash") is None, reason="this machine has no bash")
async def test_bash_runs_the_command_if_installed(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    result = await run(processes, "a=(x y); [[ ${a[1]} == y ]] && echo array", tmp_path)
    assert result.output == "array\n"


async def test_sh_runs_the_command_without_bash(tmp_path: Path) -> None:
    processes = LocalProcesses(tmp_path, environ={"PATH": str(tmp_path)})
    assert (await run(processes, "echo $0", tmp_path)).output == "/bin/sh\n"
    await processes.aclose()


async def test_a_command_that_reads_input_gets_its_end_at_once(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    # Our own input, which in an editor is the protocol, is open and has something to read.
    own_descriptor, editors = os.pipe()
    before = os.dup(0)
    os.dup2(own_descriptor, 0)
    try:
        os.write(editors, b"a message of the protocol\n")
        result = await asyncio.wait_for(run(processes, "cat; read x; echo read=$?", tmp_path), 60)
        assert os.read(0, 100) == b"a message of the protocol\n"
    finally:
        os.dup2(before, 0)
        for descriptor in (own_descriptor, editors, before):
            os.close(descriptor)
    assert result.output == "read=1\n"


async def test_a_line_is_shown_while_the_command_still_runs(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    pieces = Pieces()
    go_on = tmp_path / "go-on"
    task = asyncio.create_task(
        run(processes, f"echo early; until [ -e {go_on} ]; do sleep 0.02; done", tmp_path, pieces)
    )
    await asyncio.wait_for(pieces.arrived.wait(), 60)
    assert pieces.text == "early\n"
    assert not task.done()
    go_on.touch()
    await task


async def test_an_unfinished_line_is_shown_while_the_command_still_runs(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    pieces = Pieces()
    go_on = tmp_path / "go-on"
    task = asyncio.create_task(
        run(
            processes,
            f"printf 'Name: '; until [ -e {go_on} ]; do sleep 0.02; done",
            tmp_path,
            pieces,
        )
    )
    await asyncio.wait_for(pieces.arrived.wait(), 60)
    assert pieces.text == "Name: "
    go_on.touch()
    await task


async def test_many_small_writes_become_few_pieces(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    pieces = Pieces()
    began = time.monotonic()
    result = await run(
        processes, "for i in $(seq 60); do echo $i; sleep 0.005; done", tmp_path, pieces
    )
    took = time.monotonic() - began
    assert pieces.text == result.output == "".join(f"{number}\n" for number in range(1, 61))
    assert len(pieces.pieces) <= took / 0.1 + 2


async def test_a_character_split_between_two_writes_is_decoded(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    pieces = Pieces()
    script = "printf 'a\\xe2'; sleep 0.25; printf '\\x82'; sleep 0.25; printf '\\xacz\\n'"
    result = await run(processes, script, tmp_path, pieces)
    assert result.output == pieces.text == "a€z\n"


async def test_bytes_that_are_not_utf8_become_replacement_characters(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    result = await run(processes, "printf 'a\\xff\\xfeb\\0c\\n'; printf '\\xe2\\x82'", tmp_path)
    assert result.output == "a\ufffd\ufffdbc\n\ufffd"


async def test_a_missing_working_folder_is_reported(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    missing = tmp_path / "gone"
    with pytest.raises(WorkspaceError, match="gone does not exist any more"):
        await run(processes, "true", missing)


@pytest.mark.parametrize("command", ["echo a\0b", "echo \ud800"])
async def test_a_command_that_no_shell_accepts_is_refused(
    processes: LocalProcesses, tmp_path: Path, command: str
) -> None:
    with pytest.raises(WorkspaceError, match="NUL or a lone surrogate"):
        await run(processes, command, tmp_path)


async def test_the_error_for_a_too_long_command_has_a_remedy(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    with pytest.raises(WorkspaceError, match="write it to a script"):
        await run(processes, "true " + "x" * 4_000_000, tmp_path)


async def test_a_child_holds_no_descriptor_of_ours(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    inherited = os.open(tmp_path / "protocol", os.O_CREAT | os.O_RDWR)
    os.set_inheritable(inherited, True)
    try:
        listing = "import os; print([n for n in range(3, 64) if os.path.exists(f'/dev/fd/{n}')])"
        command = f"{shlex.quote(sys.executable)} -c {shlex.quote(listing)}"
        result = await run(processes, command, tmp_path)
    finally:
        os.close(inherited)
    assert str(inherited) not in result.output.strip("[]\n").split(", ")


async def test_commands_run_side_by_side(processes: LocalProcesses, tmp_path: Path) -> None:
    # Each waits for the other's file, so neither could end alone.
    first = f"touch {tmp_path}/a; until [ -e {tmp_path}/b ]; do sleep 0.02; done; echo first"
    second = f"touch {tmp_path}/b; until [ -e {tmp_path}/a ]; do sleep 0.02; done; echo second"
    results = await asyncio.gather(
        run(processes, first, tmp_path), run(processes, second, tmp_path)
    )
    assert [result.output for result in results] == ["first\n", "second\n"]


async def test_live_output_ends_with_a_note_at_its_limit() -> None:
    pieces = Pieces()
    live = LiveOutput(pieces)
    live.add("x" * LIVE_LIMIT + "\n", 0.0)
    await live.flush(0.0)
    live.add("more\n", 1.0)
    assert live.wait(1.0) is None
    assert pieces.text.count("x") == LIVE_LIMIT
    assert "not shown live" in pieces.text


async def test_a_piece_of_live_output_ends_at_a_complete_line() -> None:
    pieces = Pieces()
    live = LiveOutput(pieces)
    live.add("done\nkey=abc", 0.0)
    assert live.wait(0.0) == 0
    await live.flush(0.0)
    assert pieces.text == "done\n"
    assert live.wait(0.0) == pytest.approx(0.1)
    live.add("def\n", 0.05)
    await live.flush(0.1)
    assert [text for _, text in pieces.pieces] == ["done\n", "key=abcdef\n"]
