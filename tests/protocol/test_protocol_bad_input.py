"""Lines that are no proper messages, sent as real bytes to a real process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.protocol.peer_process import (
    PeerProcess,
    notification,
    prompt,
    request,
    running_peer,
    text_of,
)
from tests.support.process_memory import peak_memory

# One peer takes it all: every test finds it as the tests before have left it.
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_peer() -> AsyncIterator[PeerProcess]:
    async with running_peer() as one:
        await one.initialize()
        yield one


@pytest_asyncio.fixture(loop_scope="module")
async def peer(shared_peer: PeerProcess) -> AsyncIterator[PeerProcess]:
    yield shared_peer
    # What a test left unread must not reach the next one.
    await shared_peer.send(prompt("say end of test", "end of test"))
    while (await shared_peer.receive()).get("id") != "end of test":
        pass


async def assert_alive(peer: PeerProcess) -> None:
    """The very next message has to be the answer to a fresh request."""
    await peer.send(prompt("say alive", "fresh"))
    assert text_of(await peer.receive()) == "alive"
    assert await peer.receive() == {
        "jsonrpc": "2.0",
        "id": "fresh",
        "result": {"stopReason": "end_turn"},
    }


@pytest.mark.covers("T3")
@pytest.mark.parametrize(
    "line",
    [
        b"not json\n",
        b'{"jsonrpc":"2.0","id":1,\n',
        b'{"jsonrpc":"2.0","id":1,"method":5,\n',
        b"42 43\n",
        b'{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":NaN}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"\xff"}}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}\n',
        b'{"jsonrpc":"2.0","id":1,"m\xffthod":"m"}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"nobody\xc3":1}}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":'
        + b"[" * 200_000
        + b"]" * 200_000
        + b"}\n",
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"\n",
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\\ud800","b":Infinity}}\n',
        b"\x00\x01\x02\n",
    ],
    ids=[
        *("words", "cut-off", "wrong-type-cut-off", "two-values", "nan", "utf8", "utf8-method"),
        *("utf8-key", "utf8-unknown-parameter"),
        *("deep-params", "deep-message", "surrogate-and-infinity", "control-characters"),
    ],
)
async def test_a_line_that_is_no_json_is_answered_once_and_the_connection_continues(
    peer: PeerProcess, line: bytes
) -> None:
    answer = await peer.ask(line)
    assert answer["id"] is None
    assert answer["error"]["code"] == -32700
    assert "\n" not in answer["error"]["message"]
    await assert_alive(peer)


@pytest.mark.covers("T3")
@pytest.mark.parametrize(
    ("line", "answered_id"),
    [
        (b"[]\n", None),
        (b"42\n", None),
        (b"{}\n", None),
        (b"null\n", None),
        (b'"text"\n', None),
        (b'{"jsonrpc":"2.0","id":5}\n', 5),
        (b'{"jsonrpc":"2.0","id":"x","params":{}}\n', "x"),
        (b'{"jsonrpc":"2.0","id":6,"method":7}\n', 6),
        (b'{"jsonrpc":"1.0","id":7,"method":"session/prompt"}\n', 7),
        (b'{"id":8,"method":"session/prompt"}\n', 8),
        (b'{"jsonrpc":"2.0","id":true,"method":"session/prompt"}\n', None),
        (b'{"jsonrpc":"2.0","id":{},"method":"session/prompt"}\n', None),
    ],
)
async def test_json_that_is_no_request_is_reported_as_an_invalid_request(
    peer: PeerProcess, line: bytes, answered_id: object
) -> None:
    answer = await peer.ask(line)
    assert (answer["error"]["code"], answer["id"]) == (-32600, answered_id)
    await assert_alive(peer)


@pytest.mark.covers("T3")
async def test_a_batch_is_refused_once_as_a_whole(peer: PeerProcess) -> None:
    batch = [prompt("say one", 1), prompt("say two", 2)]
    answer = await peer.ask(json.dumps(batch).encode() + b"\n")
    assert (answer["error"]["code"], answer["id"]) == (-32600, None)
    await assert_alive(peer)


@pytest.mark.covers("T3")
async def test_a_line_over_the_limit_is_reported_and_the_next_is_read() -> None:
    async with running_peer("--limit=100000") as peer:
        await peer.initialize()
        await peer.send(prompt("say " + "x" * 100_000), prompt("say after", 2))
        answer = await peer.receive()
        assert (answer["error"]["code"], answer["id"]) == (-32600, 1)
        assert "a message is longer than the limit of 100000 bytes" in answer["error"]["message"]
        assert text_of(await peer.receive()) == "after"


@pytest.mark.covers("T2")
@pytest.mark.parametrize(
    "raw_id",
    [
        b"1", b"0", b"-0", b"-7", b"1.0", b"1e2", b"1E+2", b"1.5", b"-0.0", b"1e400", b"5e-324",
        b"123456789012345678901234567890", b"9" * 5000, b"0." + b"1" * 2000, b'""', b'"x"',
        b'"\\u0041"', b'"\\ud83d\\ude00"', b'"\\ud800"', b'"a\\udfffb\\\\"', b'"\\\\ud800"',
        '"é 😀 \u2028"'.encode(), b'"' + b"x" * 5000 + b'"', b'"\\u0000"', b'"\\/"', b"null",
    ],
    ids=lambda raw: repr(raw[:24]),
)  # fmt: skip
@pytest.mark.parametrize(
    "rest",
    [
        b'"method":"session/prompt","params":{"sessionId":"s","prompt":[]}',
        b'"method":"nowhere/known"',
        b'"method":"nowhere/known","params":{"text":"\\ud800"}',
        b'"method":7',
    ],
)
async def test_an_id_comes_back_as_it_was_written(
    peer: PeerProcess, raw_id: bytes, rest: bytes
) -> None:
    await peer.send(b'{"jsonrpc":"2.0","id":%b,%b}\n' % (raw_id, rest))
    line = await peer.receive_line()
    assert line.startswith(b'{"jsonrpc":"2.0","id":%b,' % raw_id)


@pytest.mark.covers("T2", "T3")
async def test_a_request_over_the_limit_is_refused_by_its_id() -> None:
    async with running_peer("--limit=100000") as peer:
        await peer.initialize()
        text = b"x" * 400_000
        for line in (
            b'{"jsonrpc":"2.0","id":"mine","method":"m","params":{"text":"%b"}}\n' % text,
            b'{"jsonrpc":"2.0","method":"m","params":{"text":"%b"},"id":"mine"}\n' % text,
        ):
            answer = await peer.ask(line)
            assert (answer["error"]["code"], answer["id"]) == (-32600, "mine")
        await assert_alive(peer)


@pytest.mark.covers("T3", "T7")
async def test_an_answer_over_the_limit_fails_the_request_that_waits_for_it() -> None:
    async with running_peer("--limit=100000") as peer:
        await peer.initialize()
        asked = await peer.ask(prompt("ask 30"))
        answer = {"outcome": {"outcome": "selected", "optionId": "x" * 200_000}}
        await peer.send({"jsonrpc": "2.0", "id": asked["id"], "result": answer})
        failed = text_of(await peer.receive())
        assert failed.startswith("InvalidResultError")
        assert "longer than the limit of 100000 bytes" in failed


@pytest.mark.covers("T3")
async def test_a_line_over_the_limit_neither_ends_the_connection_nor_fills_the_memory(
    peer: PeerProcess,
) -> None:
    piece = b"x" * (1024 * 1024)
    for _ in range(64):  # twice the limit
        await peer.send(piece)
    answer = await peer.ask(b"\n")
    assert answer["error"]["code"] == -32600
    assert "33554432 bytes" in answer["error"]["message"]
    await assert_alive(peer)
    assert peak_memory(peer.process.pid) < 76 * 1024 * 1024  # and no more than the limit


@pytest.mark.covers("T3")
async def test_a_long_line_within_the_limit_arrives_whole(peer: PeerProcess) -> None:
    text = "0123456789" * 1_000_000
    await peer.send(prompt(f"say {text}"))
    assert text_of(await peer.receive()) == text


@pytest.mark.covers("T3")
async def test_a_lone_surrogate_is_replaced_on_the_way_in_and_on_the_way_out(
    peer: PeerProcess,
) -> None:
    line = json.dumps(prompt("say a\ud800b \ud83d\ude00")).encode() + b"\n"
    assert b"\\ud800" in line
    assert text_of(await peer.ask(line)) == "a\ufffdb \U0001f600"
    assert (await peer.receive())["result"]["stopReason"] == "end_turn"
    assert text_of(await peer.ask(prompt("surrogate"))) == "a\ufffdb"


@pytest.mark.covers("T3")
async def test_blank_lines_and_carriage_returns_are_tolerated(peer: PeerProcess) -> None:
    line = json.dumps(prompt("say hello")).encode()
    assert text_of(await peer.ask(b"\n\r\n  \n" + line + b"\r\n\r\n")) == "hello"
    await peer.receive()
    await assert_alive(peer)


@pytest.mark.covers("T4")
@pytest.mark.parametrize(
    "method", ["session/frobnicate", "_vendor/method", "fs/read_text_file", ""]
)
async def test_an_unknown_method_is_method_not_found(peer: PeerProcess, method: str) -> None:
    answer = await peer.ask(request(method, {"any": "thing"}, "u"))
    assert answer["id"] == "u"
    assert answer["error"]["code"] == -32601
    assert method in answer["error"]["message"]


@pytest.mark.covers("T4")
async def test_an_unknown_notification_is_ignored(peer: PeerProcess) -> None:
    await peer.send(notification("_vendor/event", {}), notification("session/nothing", [1]))
    await assert_alive(peer)


@pytest.mark.covers("T4")
@pytest.mark.parametrize(
    ("method", "params", "field", "reason"),
    [
        ("session/new", {"mcpServers": []}, "cwd", "is required"),
        ("session/new", {"cwd": 5, "mcpServers": []}, "cwd", "expected string, got integer"),
        ("session/new", {"cwd": "/"}, "mcpServers", "is required"),
        ("session/new", {"cwd": "/", "mcpServers": {}}, "mcpServers", "expected array, got object"),
        (
            "session/new",
            {"cwd": "/", "mcpServers": [{"name": "a", "command": "b", "args": [1], "env": []}]},
            "mcpServers[0].args[0]",
            "expected string, got integer",
        ),
        (
            "session/new",
            {"cwd": "/", "mcpServers": [{"type": "carrier-pigeon"}]},
            "mcpServers[0].type",
            "expected acp, http, sse or stdio",
        ),
        (
            "session/prompt",
            {"sessionId": "s", "prompt": [{"type": "text", "text": "x"}, {"type": "smell"}]},
            "prompt[1].type",
            "invalid value 'smell'",
        ),
        ("session/prompt", {"sessionId": "s", "prompt": [{"type": "text"}]}, "prompt[0].text", ""),
        (
            "session/prompt",
            {"sessionId": ["s"], "prompt": []},
            "sessionId",
            "expected string, got array",
        ),
        ("session/prompt", ["s"], "", "expected object, got array"),
        ("session/prompt", None, "sessionId", "is required"),
        ("initialize", {"protocolVersion": "1"}, "protocolVersion", "expected integer, got string"),
        ("initialize", {}, "protocolVersion", "is required"),
        ("initialize", {"protocolVersion": 65536}, "protocolVersion", "expected integer <= 65535"),
        ("initialize", {"protocolVersion": -1}, "protocolVersion", "expected integer >= 0"),
        ("initialize", {"protocolVersion": 1.5}, "protocolVersion", "expected integer, got number"),
    ],
)
async def test_wrong_params_are_refused_with_the_field_s_name(
    peer: PeerProcess, method: str, params: object, field: str, reason: str
) -> None:
    answer = await peer.ask(request(method, params))
    error = answer["error"]
    assert error["code"] == -32602
    assert error.get("data") == ({"field": field} if field else None)
    assert f"{field}: {reason}" in error["message"] if field else reason in error["message"]
    assert "$" not in error["message"]
    assert "`" not in error["message"]
    assert "\n" not in error["message"]


@pytest.mark.covers("T4")
async def test_unknown_keys_nulls_and_tolerable_values_are_accepted(
    peer: PeerProcess,
) -> None:
    params = {
        "protocolVersion": 1,
        "clientCapabilities": {"terminal": None, "fs": {"readTextFile": "yes"}, "new": {}},
        "clientInfo": {"name": "no version"},
        "_meta": 7,
    }
    answer = await peer.ask(request("initialize", params) | {"type": "request", "trace": [1]})
    assert "result" in answer
    answer = await peer.ask(request("session/new", {"cwd": "/", "mcpServers": None}))
    assert answer["result"] == {"sessionId": "s"}


@pytest.mark.covers("T4")
async def test_a_handler_s_crash_tells_the_peer_nothing_but_a_reference_to_the_log(
    peer: PeerProcess,
) -> None:
    answer = await peer.ask(prompt("crash"))
    assert answer["error"]["code"] == -32603
    assert "data" not in answer["error"]
    message = answer["error"]["message"]
    assert message.startswith("internal error, see the log for reference ")
    reference = message.rpartition(" ")[2]
    await peer.started("crash")
    assert reference in await peer.stderr_line()
    mapped = await peer.ask(prompt("crash lookup"))
    assert mapped["error"]["code"] == -32002
    assert "\n" not in mapped["error"]["message"]
