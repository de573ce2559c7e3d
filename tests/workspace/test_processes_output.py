"""Output in bounded memory: plain text, both its ends for the model, the whole in a file."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from acp_agent.workspace.command_output import (
    CommandOutput,
    PlainText,
    invalid_bytes,
    replace_invalid,
)
from acp_agent.workspace.processes import CommandResult, LocalProcesses


async def run(command: str, folder: Path, outputs: Path) -> CommandResult:
    async def ignore(text: str) -> None:
        del text

    processes = LocalProcesses(outputs, environ=os.environ)
    try:
        return await processes.run(command, folder, timeout=30, on_output=ignore)
    finally:
        await processes.aclose()


async def test_a_long_output_is_cut_in_the_middle_and_stored_in_a_file(
    tmp_path: Path,
) -> None:
    result = await run("seq 1 40000; echo the end", tmp_path, tmp_path / "new" / "outputs")
    assert len(result.output) < 50_000
    assert result.output.startswith("1\n2\n3\n")
    assert result.output.endswith("\n40000\nthe end\n")
    assert result.full_output is not None
    assert result.full_output in result.output
    full_text = "".join(f"{number}\n" for number in range(1, 40_001)) + "the end\n"
    assert Path(result.full_output).read_text() == full_text
    assert result.total_bytes == len(full_text)
    assert stat.S_IMODE(Path(result.full_output).stat().st_mode) == 0o600


async def test_a_cut_output_begins_and_ends_at_line_ends(tmp_path: Path) -> None:
    result = await run("seq 100000 140000", tmp_path, tmp_path)
    lines = result.output.splitlines()
    gap = next(number for number, line in enumerate(lines) if line.startswith("[..."))
    assert all(len(line) == 6 for line in lines[:gap] + lines[gap + 1 :])


async def test_a_short_output_creates_no_file(tmp_path: Path) -> None:
    result = await run("seq 1 1000", tmp_path, tmp_path / "outputs")
    assert result.output == "".join(f"{number}\n" for number in range(1, 1001))
    assert not (tmp_path / "outputs").exists()


async def test_an_output_that_cannot_be_stored_is_still_returned_with_the_reason(
    tmp_path: Path,
) -> None:
    (tmp_path / "outputs").write_text("a file where a folder is wanted")
    result = await run("seq 1 40000; exit 4", tmp_path, tmp_path / "outputs")
    assert result.exit_code == 4
    assert result.full_output is None
    assert result.output.startswith("1\n2\n")
    assert result.output.endswith("40000\n")
    assert "could not be kept" in result.output


FLOOD = """
import asyncio, os, resource, sys
from pathlib import Path
from acp_agent.workspace.processes import LocalProcesses

async def main():
    async def ignore(text):
        pass
    processes = LocalProcesses(Path(sys.argv[1]), environ=os.environ)
    await processes.run("yes | head -c 1000000", Path("/"), timeout=60, on_output=ignore)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await processes.run(sys.argv[2], Path("/"), timeout=100, on_output=ignore)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    await processes.aclose()
    unit = 1024 if sys.platform == "darwin" else 1
    size = os.path.getsize(result.full_output)
    print(grown // unit, result.total_bytes, size, len(result.output))
    print(result.output[-100:].strip().splitlines()[-1])
    print("ends after" in result.output)

asyncio.run(main())
"""


def test_a_flood_of_output_is_held_in_bounded_memory_and_a_bounded_file(tmp_path: Path) -> None:
    command = "yes 'all work and no play' | head -c 100000000; echo; echo the end"
    ended = subprocess.run(
        [sys.executable, "-c", FLOOD, str(tmp_path), command],
        capture_output=True,
        text=True,
        check=True,
        timeout=110,
    )
    numbers, last, cut = ended.stdout.splitlines()
    grown_kib, total, file_size, live_text = map(int, numbers.split())
    assert total == 100_000_000 + len("\nthe end\n")
    assert file_size == 64 * 1024 * 1024
    assert live_text < 50_000
    assert grown_kib < 30_000
    assert (last, cut) == ("the end", "True")


@pytest.mark.parametrize(
    ("raw", "plain"),
    [
        (b"\x1b[1;31mred\x1b[0m", "red"),
        (b"\x1b]0;title\x07text", "text"),
        (b"\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1b]52;c;Y2xpcA==\x07", ""),
        (b"\x1bP1$r0m\x1b\\x", "x"),
        (b"\x1b(Bx\x1b7\x1b8\x1bcy", "xy"),
        (b"\x9b31m", "\udc9b31m"),
        ("\u009b31mx".encode(), "31mx"),
        (b"a\x00b\x07c\x08d\x7fe", "abcde"),
        (b"one\r\ntwo\r\n", "one\ntwo\n"),
        (b"tab\there\n", "tab\there\n"),
        ("naïve € 😀".encode(), "naïve € 😀"),
    ],
)
def test_output_becomes_plain_text_wherever_its_pieces_end(raw: bytes, plain: str) -> None:
    assert PlainText().feed(raw, final=True) == plain
    for cut in range(len(raw) + 1):
        text = PlainText()
        assert text.feed(raw[:cut]) + text.feed(raw[cut:], final=True) == plain
    text = PlainText()
    assert "".join([text.feed(bytes([byte])) for byte in raw]) + text.feed(b"", final=True) == plain


def test_an_escape_sequence_that_never_ends_does_not_swallow_the_output() -> None:
    text = PlainText()
    live_text = text.feed(b"\x1b]0;" + b"x" * 10_000) + text.feed(b"after", final=True)
    assert live_text.endswith("after")
    assert "x" * 9_000 in live_text


@given(st.binary(max_size=300), st.integers(0, 300))
def test_no_bytes_put_a_control_character_into_the_text(raw: bytes, cut: int) -> None:
    text = PlainText()
    plain = text.feed(raw[:cut]) + text.feed(raw[cut:], final=True)
    assert all(c in "\t\n\r" or not (ord(c) < 32 or 127 <= ord(c) < 160) for c in plain)
    replace_invalid(plain).encode()


@given(st.binary(max_size=300))
def test_the_bytes_of_invalid_text_can_be_restored(
    raw: bytes,
) -> None:
    plain = PlainText().feed(raw, final=True)
    invalid = iter(invalid_bytes(plain))
    restored = b"".join(
        bytes([byte]) if char == "\ufffd" and (byte := next(invalid, 0)) else char.encode()
        for char in replace_invalid(plain)
    )
    assert restored == plain.encode("utf-8", "surrogateescape")
    assert next(invalid, None) is None


def test_of_an_overwritten_line_the_model_sees_the_final_and_the_user_every_state(
    tmp_path: Path,
) -> None:
    output = CommandOutput(tmp_path)
    live = output.feed(b"start\n 10%\r 50%\r100%\nend\n", final=True)
    assert live == "start\n 10%\n 50%\n100%\nend\n"
    assert output.model_text() == "start\n100%\nend\n"


def test_an_endless_line_is_cut(tmp_path: Path) -> None:
    output = CommandOutput(tmp_path)
    output.feed(b"x" * 500_000, final=True)
    output.write()
    output.close()
    assert 40_000 < len(output.model_text()) < 50_000
