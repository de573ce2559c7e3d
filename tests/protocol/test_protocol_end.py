"""The end of a connection, and readers that are slow: real bytes to a real process."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from tests.protocol.peer_process import (
    LIMIT,
    ROOT,
    PeerProcess,
    prompt,
    request,
    running_peer,
    text_of,
)
from tests.support.process_memory import resident_memory


@pytest.mark.covers("T8")
async def test_the_end_of_input_ends_an_idle_peer_at_once(peer: PeerProcess) -> None:
    assert await peer.end() == 0


@pytest.mark.covers("T8")
@pytest.mark.parametrize("command", ["hang", "hang politely", "ask"])
async def test_the_end_of_input_ends_a_turn_and_answers_it(peer: PeerProcess, command: str) -> None:
    await peer.send(prompt(command, "t"))
    await peer.started(command)
    assert await peer.end() == 0
    assert peer.process.stdout is not None
    lines = (await peer.process.stdout.read()).splitlines()
    assert json.loads(lines[-1])["id"] == "t"


@pytest.mark.covers("T8")
async def test_requests_right_before_the_end_of_input_are_answered() -> None:
    lines = [
        request("initialize", {"protocolVersion": 1}, 0),
        prompt("say piped", 1),
        prompt("say last", 2),
    ]
    data = b"\n".join(json.dumps(line).encode() for line in lines)  # no line end at the end
    for stdin in (subprocess.PIPE, "file"):
        answers = await asyncio.to_thread(_pipe_through, data, stdin == "file")
        assert [each.get("id") for each in answers] == [0, None, 1, None, 2]


def _pipe_through(data: bytes, from_file: bool) -> list[dict[str, Any]]:
    """Run a peer on `data`, from a pipe to a pipe or from a file to a file."""
    peer = [sys.executable, str(Path(__file__).with_name("peer.py"))]
    options: dict[str, Any] = {
        "cwd": ROOT,
        "env": {**os.environ, "PYTHONPATH": str(ROOT)},
        "stderr": subprocess.DEVNULL,
        "timeout": LIMIT,
    }
    if not from_file:
        output = subprocess.run(
            peer, input=data, stdout=subprocess.PIPE, check=True, **options
        ).stdout
        return [json.loads(line) for line in output.splitlines()]
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as target:
        source.write(data)
        source.seek(0)
        subprocess.run(peer, stdin=source, stdout=target, check=True, **options)
        target.seek(0)
        return [json.loads(line) for line in target.read().splitlines()]


@pytest.mark.covers("T8")
async def test_a_client_that_closes_its_reading_end_ends_the_peer() -> None:
    read, write = os.pipe()
    async with running_peer(stdout=write) as peer:
        os.close(write)
        await peer.send(request("initialize", {"protocolVersion": 1}, 0), prompt("hang"))
        await peer.started("hang")
        os.close(read)
        await peer.send(prompt("say into the void", 2))
        assert await asyncio.wait_for(peer.process.wait(), LIMIT) == 0


@pytest.mark.covers("T8")
async def test_a_client_that_stops_reading_does_not_keep_the_peer_from_exiting(
    peer: PeerProcess,
) -> None:
    await peer.send(prompt("flood 100000 100"))
    await peer.started("flood 100000 100")
    assert await peer.end() == 0


@pytest.mark.covers("T9")
@pytest.mark.parametrize("merging", [False, True])
async def test_a_slow_reader_loses_nothing_and_costs_bounded_memory(merging: bool) -> None:
    count, size = 30_000, 1_000
    async with running_peer(*(["--merge"] if merging else []), limit=64 * 1024) as peer:
        await peer.initialize()
        before = resident_memory(peer.process.pid)
        await peer.send(prompt(f"flood {count} {size}"))
        await peer.started(f"flood {count} {size}")
        await _stalled(peer.process.pid)
        # 30 MB are to come; a megabyte may be queued, twice that while it is joined.
        assert resident_memory(peer.process.pid) - before < 12 * 1024 * 1024
        await peer.send(prompt("say between", "b", "another session"))
        pieces: list[str] = []
        others: list[Any] = []
        while len(others) < 3:
            message = await peer.receive()
            if message.get("method") == "session/update" and text_of(message) != "between":
                pieces.append(text_of(message))
            else:
                others.append(message)
        assert "".join(pieces) == "".join(f"{number:0{size}d}" for number in range(count))
        assert len(pieces) < count if merging else len(pieces) == count
        answered = [other["id"] for other in others if "id" in other]
        assert answered == ["b", 1]


async def _stalled(pid: int) -> None:
    """Wait until a process does nothing any more."""
    deadline = time.monotonic() + LIMIT
    spent, calm = -1.0, 0
    while calm < 5:
        assert time.monotonic() < deadline, "the peer never waits for its reader"
        now = cpu_time(pid)
        calm = calm + 1 if now == spent else 0
        spent = now
        await asyncio.sleep(0.03)


def cpu_time(pid: int) -> float:
    """Clock ticks that a process has worked."""
    stat = _proc(pid, "stat").rpartition(")")[2].split()
    return float(stat[11]) + float(stat[12])


def _proc(pid: int, name: str) -> str:
    path = Path(f"/proc/{pid}/{name}")
    if not path.exists():
        pytest.skip("the system has no /proc to ask about a process")
    return path.read_text()


@pytest.mark.covers("T9")
async def test_the_connection_works_over_sockets_and_non_blocking_descriptors() -> None:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)  # as some hosts hand them over
    async with running_peer(stdin=theirs, stdout=theirs) as peer:
        theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours, limit=2**24)
        writer.write(json.dumps(request("initialize", {"protocolVersion": 1}, 0)).encode())
        writer.write(b"\n" + json.dumps(prompt("flood 3000 1000")).encode() + b"\n")
        lines = [await asyncio.wait_for(reader.readline(), LIMIT) for _ in range(3002)]
        texts = [text_of(json.loads(line)) for line in lines[1:-1]]
        assert texts == [f"{number:01000d}" for number in range(3000)]
        writer.write(json.dumps(prompt("say still here")).encode() + b"\n")
        said = json.loads(await asyncio.wait_for(reader.readline(), LIMIT))
        assert text_of(said) == "still here"
        writer.close()
        assert await asyncio.wait_for(peer.process.wait(), LIMIT) == 0
