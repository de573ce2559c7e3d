"""Streams, ids, order and initialization: real bytes to a real process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from tests.protocol.peer_process import (
    LIMIT,
    ROOT,
    PeerProcess,
    cancel_request,
    notification,
    prompt,
    request,
    running_peer,
    text_of,
)


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
def test_a_closed_standard_stream_never_mixes_protocol_and_prints(closed: int) -> None:
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
async def test_an_id_in_use_is_refused_and_the_first_request_continues(peer: PeerProcess) -> None:
    await peer.send(prompt("hang politely", 9))
    refused = await peer.ask(prompt("say again", 9))
    assert (refused["id"], refused["error"]["code"]) == (9, -32600)
    answer = await peer.ask(cancel_request(9))
    assert answer["result"]["stopReason"] == "cancelled"
    assert text_of(await peer.ask(prompt("say again", 9))) == "again"


@pytest.mark.covers("T6")
async def test_updates_of_a_turn_precede_its_response_and_later_ones_follow(
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
async def test_a_slow_handler_delays_no_other_request(peer: PeerProcess) -> None:
    await peer.send(prompt("hang", 1, "a"), prompt("say quick", 2, "b"))
    assert text_of(await peer.receive()) == "quick"
    assert (await peer.receive())["id"] == 2


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
