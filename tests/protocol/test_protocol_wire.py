"""What a connection does on the wire: real bytes to a real process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.protocol.peer_process import (
    LIMIT,
    ROOT,
    PeerProcess,
    notification,
    prompt,
    request,
    running_peer,
    text_of,
)


@pytest.fixture
async def peer() -> AsyncIterator[PeerProcess]:
    async with running_peer() as one:
        await one.initialize()
        yield one


def cancel_request(request_id: object) -> dict[str, Any]:
    return notification("$/cancel_request", {"requestId": request_id})


@pytest.mark.covers("T1")
async def test_prints_writes_logs_and_children_go_to_standard_error_only(
    peer: PeerProcess,
) -> None:
    assert text_of(await peer.ask(prompt("print"))) == "leaked 0"
    assert (await peer.receive())["result"]["stopReason"] == "end_turn"
    said = [await peer.stderr_line() for _ in range(5)]
    for stray in ("a stray print", "a stray write", "a stray log line", "a stray child"):
        assert f"{stray}\n" in said
    assert all(line.startswith(b'{"jsonrpc":"2.0",') for line in peer.lines)


@pytest.mark.covers("T1")
async def test_line_ends_inside_of_texts_never_break_a_line(peer: PeerProcess) -> None:
    text = "one\ntwo\r\nthree\u2028four\x85\x00"
    assert text_of(await peer.ask(prompt(f"say {text}"))) == text


@pytest.mark.covers("T1")
@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_closed_standard_stream_never_puts_the_protocol_where_prints_go(closed: int) -> None:
    script = (
        "from protocol.transports.claim import claim_stdio\n"
        "import os\n"
        "pair = claim_stdio()\n"
        "print('stray', flush=True)\n"
        "os.write(2, b'noise')\n"
        "assert min(pair) > 2 and not any(map(os.get_inheritable, pair))\n"
        "assert all(map(os.get_inheritable, (0, 1, 2)))\n"
        "os.write(pair[1], b'message')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import os\nos.close({closed})\n{script}"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (b"" if closed == 1 else b"message")


def test_claiming_the_streams_imports_nothing_beyond_the_bare_interpreter() -> None:
    script = (
        "import sys, os\nbefore = set(sys.modules)\n"
        "from protocol.transports.claim import claim_stdio\n"
        "print(sorted(set(sys.modules) - before))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    ours = ["__future__", "protocol", "protocol.transports", "protocol.transports.claim"]
    assert json.loads(done.stdout.replace("'", '"')) == ours


@pytest.mark.covers("T2")
@pytest.mark.parametrize(
    "raw",
    ["0", "-7", "12345678901234567890123456789", '"x"', '""', '"\\u0041\\n"', "null", '"1.0"'],
)
async def test_an_id_comes_back_exactly_as_it_was(peer: PeerProcess, raw: str) -> None:
    head = f'{{"jsonrpc":"2.0","id":{raw},'
    await peer.send(f'{head}"method":"session/close"}}\n'.encode())
    await peer.receive()
    assert peer.lines[-1].startswith(head.encode() + b'"error":')
    params = '{"cwd":"/","mcpServers":[]}'
    await peer.send(f'{head}"method":"session/new","params":{params}}}\n'.encode())
    await peer.receive()
    assert peer.lines[-1].startswith(head.encode() + b'"result":')


@pytest.mark.covers("T2")
async def test_a_notification_is_never_answered_not_even_a_failing_one(
    peer: PeerProcess,
) -> None:
    await peer.send(
        notification("session/cancel", {"sessionId": "raise"}),
        notification("session/cancel", {"sessionId": 5}),
        notification("session/cancel", {"sessionId": "no such session"}),
        notification("session/prompt", {"sessionId": "s", "prompt": []}),
        {"jsonrpc": "2.0", "method": "session/cancel"},
    )
    assert text_of(await peer.ask(prompt("say next"))) == "next"


@pytest.mark.covers("T2")
async def test_a_response_has_either_a_result_or_an_error(peer: PeerProcess) -> None:
    good = await peer.ask(request("session/new", {"cwd": "/", "mcpServers": []}))
    assert set(good) == {"jsonrpc", "id", "result"}
    await peer.receive()
    bad = await peer.ask(request("session/new", {}))
    assert set(bad) == {"jsonrpc", "id", "error"}


@pytest.mark.covers("T2")
async def test_an_id_in_use_is_refused_and_the_first_request_goes_on(peer: PeerProcess) -> None:
    await peer.send(prompt("hang politely", 9))
    refused = await peer.ask(prompt("say again", 9))
    assert (refused["id"], refused["error"]["code"]) == (9, -32600)
    answer = await peer.ask(cancel_request(9))
    assert answer["result"]["stopReason"] == "cancelled"
    assert text_of(await peer.ask(prompt("say again", 9))) == "again"


@pytest.mark.covers("T5")
async def test_a_cancelled_request_is_answered_once_with_request_cancelled(
    peer: PeerProcess,
) -> None:
    await peer.send(prompt("hang", "h"))
    await peer.started("hang")
    await peer.send(cancel_request("h"), cancel_request("h"))
    answer = await peer.receive()
    assert (answer["id"], answer["error"]["code"]) == ("h", -32800)
    assert text_of(await peer.ask(prompt("say next"))) == "next"


@pytest.mark.covers("T5")
async def test_a_handler_that_knows_how_to_stop_answers_by_itself(peer: PeerProcess) -> None:
    # Both lines in one piece: the cancellation is read before the handler has begun.
    await peer.send(prompt("hang politely", 3), cancel_request(3))
    assert (await peer.receive())["result"] == {"stopReason": "cancelled"}


@pytest.mark.covers("T5")
async def test_cancelling_what_is_not_there_is_silent(peer: PeerProcess) -> None:
    await peer.send(
        cancel_request("nobody"),
        cancel_request(None),
        cancel_request([1]),
        notification("$/cancel_request", None),
    )
    assert text_of(await peer.ask(prompt("say next"))) == "next"


@pytest.mark.covers("T5", "T7")
async def test_a_request_of_ours_that_times_out_is_withdrawn(peer: PeerProcess) -> None:
    asked = await peer.ask(prompt("ask 0.05"))
    assert asked["method"] == "session/request_permission"
    withdrawn = await peer.receive()
    assert "id" not in withdrawn
    assert (withdrawn["method"], withdrawn["params"]) == (
        "$/cancel_request",
        {"requestId": asked["id"]},
    )
    assert text_of(await peer.receive()).startswith("TimeoutError")
    assert (await peer.receive())["result"]["stopReason"] == "end_turn"
    # The late answer is dropped.
    late = {"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": {"outcome": "cancelled"}}}
    await peer.send(late)
    assert text_of(await peer.ask(prompt("say next"))) == "next"


@pytest.mark.covers("T5")
async def test_cancelling_a_turn_withdraws_what_it_asked(peer: PeerProcess) -> None:
    asked = await peer.ask(prompt("ask", 4))
    withdrawn = await peer.ask(cancel_request(4))
    assert withdrawn["params"] == {"requestId": asked["id"]}
    assert (await peer.receive())["error"]["code"] == -32800


@pytest.mark.covers("T6")
async def test_updates_of_a_turn_come_before_its_response_and_what_follows_a_reply_after_it(
    peer: PeerProcess,
) -> None:
    texts = "".join(chr(97 + number % 26) for number in range(200))
    await peer.send(prompt(f"slow {texts}", 1))
    for letter in texts:
        assert text_of(await peer.receive()) == letter
    assert (await peer.receive())["id"] == 1
    assert (await peer.ask(request("session/new", {"cwd": "/", "mcpServers": []}, 2)))["id"] == 2
    assert text_of(await peer.receive()) == "welcome"


@pytest.mark.covers("T6")
async def test_requests_begin_in_the_order_of_arrival(peer: PeerProcess) -> None:
    await peer.send(*(prompt(f"say {number}", number) for number in range(300)))
    for number in range(300):
        assert text_of(await peer.receive()) == str(number)
        assert (await peer.receive())["id"] == number


@pytest.mark.covers("T6")
async def test_a_slow_handler_holds_up_nobody(peer: PeerProcess) -> None:
    await peer.send(prompt("hang", 1, "a"), prompt("say quick", 2, "b"))
    assert text_of(await peer.receive()) == "quick"
    assert (await peer.receive())["id"] == 2


@pytest.mark.covers("T7")
@pytest.mark.parametrize(
    "stray",
    [
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no"}},
        {"id": None, "error": "no"},
        {"jsonrpc": "2.0", "id": 4711, "result": {}},
        {"jsonrpc": "2.0", "id": "4711", "result": None},
        {"jsonrpc": "2.0", "id": 1.5, "result": {}},
        {"jsonrpc": "2.0", "result": {}},
    ],
)
async def test_an_answer_that_nobody_waits_for_is_ignored(
    peer: PeerProcess, stray: dict[str, Any]
) -> None:
    await peer.send(stray)
    assert text_of(await peer.ask(prompt("say next"))) == "next"


@pytest.mark.covers("T7")
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"result": {"outcome": {"outcome": "selected", "optionId": "y"}}}, "option_id='y'"),
        ({"result": {"outcome": {"outcome": "cancelled"}, "new": 1}}, "CancelledPermission"),
        ({"result": None}, "InvalidResultError: the answer to session/request_permission"),
        ({"result": {"outcome": "yes"}}, "outcome: expected object, got string"),
        ({"result": {"outcome": {"outcome": "maybe"}}}, "outcome.outcome: invalid value 'maybe'"),
        ({"error": {"code": 1, "message": "two\nlines", "data": {"a": 1}}}, "RpcError: two lines"),
        ({"error": "just text"}, "RpcError: the peer failed"),
        ({"error": None, "result": {"outcome": {"outcome": "cancelled"}}}, "CancelledPermission"),
    ],
)
async def test_whatever_a_client_answers_the_turn_goes_on(
    peer: PeerProcess, answer: dict[str, Any], said: str
) -> None:
    asked = await peer.ask(prompt("ask"))
    assert said in text_of(await peer.ask({"jsonrpc": "2.0", "id": asked["id"]} | answer))
    assert (await peer.receive())["result"]["stopReason"] == "end_turn"


@pytest.mark.covers("T7")
async def test_our_id_sent_back_as_a_string_is_understood(peer: PeerProcess) -> None:
    asked = await peer.ask(prompt("ask"))
    result = {"outcome": {"outcome": "selected", "optionId": "y"}}
    said = await peer.ask({"id": str(asked["id"]), "result": result})
    assert "option_id='y'" in text_of(said)


@pytest.mark.covers("T8")
async def test_the_end_of_input_ends_an_idle_peer_at_once(peer: PeerProcess) -> None:
    begin = time.monotonic()
    assert await peer.end() == 0
    assert time.monotonic() - begin < 2


@pytest.mark.covers("T8")
@pytest.mark.parametrize("command", ["hang", "hang politely", "ask"])
async def test_the_end_of_input_ends_a_turn_and_answers_it(peer: PeerProcess, command: str) -> None:
    await peer.send(prompt(command, "t"))
    await peer.started(command)
    begin = time.monotonic()
    assert await peer.end() == 0
    assert time.monotonic() - begin < 5
    assert peer.process.stdout is not None
    lines = (await peer.process.stdout.read()).splitlines()
    assert json.loads(lines[-1])["id"] == "t"


@pytest.mark.covers("T8")
async def test_what_was_asked_right_before_the_end_of_input_is_answered() -> None:
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
        begin = time.monotonic()
        await peer.send(prompt("say into the void", 2))
        assert await asyncio.wait_for(peer.process.wait(), LIMIT) == 0
        assert time.monotonic() - begin < 5


@pytest.mark.covers("T8")
async def test_a_client_that_stops_reading_does_not_keep_the_peer_from_exiting(
    peer: PeerProcess,
) -> None:
    await peer.send(prompt("flood 100000 100"))
    await peer.started("flood 100000 100")
    begin = time.monotonic()
    assert await peer.end() == 0
    assert time.monotonic() - begin < 5


@pytest.mark.covers("T9")
@pytest.mark.parametrize("merging", [False, True])
async def test_a_slow_reader_loses_nothing_and_costs_bounded_memory(merging: bool) -> None:
    count, size = 30_000, 1_000
    async with running_peer(*(["--merge"] if merging else []), limit=64 * 1024) as peer:
        await peer.initialize()
        before = memory(peer.process.pid)
        await peer.send(prompt(f"flood {count} {size}"))
        await peer.started(f"flood {count} {size}")
        await _stalled(peer.process.pid)
        # 30 MB are to come; a megabyte may be queued, twice that while it is joined.
        assert memory(peer.process.pid) - before < 12 * 1024 * 1024
        await peer.send(prompt("say between", "b", "another session"))
        text, messages = "", 0
        others = []
        while len(others) < 3:
            message = await peer.receive()
            if message.get("method") == "session/update" and text_of(message) != "between":
                text += text_of(message)
                messages += 1
            else:
                others.append(message)
        assert text == "".join(f"{number:0{size}d}" for number in range(count))
        assert messages < count if merging else messages == count
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


def memory(pid: int) -> int:
    """Bytes of memory that a process holds."""
    line = next(line for line in _proc(pid, "status").splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


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
        writer.close()
        assert await asyncio.wait_for(peer.process.wait(), LIMIT) == 0


@pytest.mark.covers("I2")
async def test_requests_before_initialize_are_refused_and_say_so() -> None:
    async with running_peer() as peer:
        for method in ("session/new", "session/prompt", "_vendor/method"):
            answer = await peer.ask(request(method, {}))
            assert answer["error"]["code"] == -32600
            assert "initialize first" in answer["error"]["message"]
        await peer.send(notification("session/cancel", {"sessionId": "s"}))
        await peer.initialize()


@pytest.mark.covers("I2")
async def test_requests_sent_along_with_initialize_are_served_after_it() -> None:
    async with running_peer() as peer:
        await peer.send(request("initialize", {"protocolVersion": 1}, 0), prompt("say early"))
        assert (await peer.receive())["id"] == 0
        assert text_of(await peer.receive()) == "early"


async def test_a_signal_in_mid_line_costs_nothing(peer: PeerProcess) -> None:
    line = json.dumps(prompt("say whole")).encode() + b"\n"
    await peer.send(line[:40])
    peer.process.send_signal(signal.SIGSTOP)
    peer.process.send_signal(signal.SIGCONT)
    assert text_of(await peer.ask(line[40:])) == "whole"
