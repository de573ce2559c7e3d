"""Several messages as one array, on a surface that takes them (JSON-RPC 2.0, section 6)."""

from __future__ import annotations

import asyncio
import logging
import tracemalloc
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from protocol.jsonrpc.batches import MAX_MESSAGES, split_entries
from protocol.jsonrpc.handlers import Call, Handler, Reply, Surface
from protocol.jsonrpc.messages import RpcError
from protocol.v1 import methods, types as t
from tests.protocol.connections import ALL, until, update
from tests.protocol.peer_process import cancel_request, notification, prompt, request
from tests.protocol.wires import Wire

Json = dict[str, Any]


class Agent:
    """Answers prompts that are commands; `wire` is what it is spoken to through."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.cancelled: list[str] = []
        self.release = asyncio.Event()
        handlers: Mapping[str, Handler] = {
            "initialize": self.initialize,
            "session/prompt": self.prompt,
            "session/cancel": self.cancel,
        }
        self.surface = Surface(ALL, handlers, batches=True)
        self.wire = Wire(self.surface, admit=self.admit, drain_timeout=0.01, grace=0.5)
        self.next_surface: Surface | None = None

    def admit(self, method: str, params: object) -> None:
        if method == "initialize" and self.next_surface is not None:
            self.wire.connection.serve(self.next_surface)

    async def initialize(self, params: t.InitializeRequest, call: Call) -> t.InitializeResponse:
        return t.InitializeResponse(protocol_version=1)

    def cancel(self, params: t.CancelNotification) -> None:
        self.cancelled.append(params.session_id)
        if params.session_id == "release":
            self.release.set()

    async def prompt(self, params: t.PromptRequest, call: Call) -> object:
        assert isinstance(params.prompt[0], t.TextContent)
        text = params.prompt[0].text
        self.started.append(text)
        command, _, rest = text.partition(" ")
        if command == "say":
            self.say(rest)
        elif command == "wait":
            await self.release.wait()
        elif command == "release":
            self.release.set()
        elif command == "fail":
            raise RpcError(-1, "failed", {"no": object()})
        elif command == "then":
            return Reply(t.PromptResponse(stop_reason="end_turn"), then=lambda: self.say(rest))
        elif command == "break":
            return Reply(t.PromptResponse(stop_reason="end_turn"), then=self.broken)
        elif command == "ask":
            answer = await self.wire.connection.request(
                methods.FS_READ_TEXT_FILE, t.ReadTextFileRequest(session_id="s", path="/f")
            )
            self.say(answer.content)
        return t.PromptResponse(stop_reason="end_turn")

    def say(self, text: str) -> None:
        self.wire.connection.notify(methods.SESSION_UPDATE, update(text))

    def broken(self) -> None:
        raise RuntimeError("what follows fails")


@pytest.fixture
async def agent() -> AsyncIterator[Agent]:
    one = Agent()
    async with one.wire:
        yield one
        # Nothing may be left over, and the next good request works.
        one.wire.send(prompt("fresh", "fresh"))
        assert await one.wire.receive() == ended("fresh")


def ended(request_id: object) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "result": {"stopReason": "end_turn"}}


def codes(answers: list[Json]) -> list[tuple[object, object]]:
    """Per response its id, and its error's code or None."""
    return [(one["id"], one.get("error", {}).get("code")) for one in answers]


@pytest.mark.covers("T3")
async def test_the_responses_are_sent_as_one_array_in_the_order_of_the_requests(
    agent: Agent,
) -> None:
    agent.wire.send([prompt("wait", "a"), notification("session/cancel", {"sessionId": "x"})])
    agent.wire.send([prompt("one", 1), prompt("two", "2"), prompt("three", None)])
    assert await agent.wire.receive() == [ended(1), ended("2"), ended(None)]
    assert agent.cancelled == ["x"]
    agent.release.set()
    assert await agent.wire.receive() == [ended("a")]


@pytest.mark.covers("T3")
async def test_a_message_may_wait_for_a_later_one_of_its_batch(
    agent: Agent,
) -> None:
    agent.wire.send([prompt("wait", 1), prompt("release", 2)])
    assert await agent.wire.receive() == [ended(1), ended(2)]
    agent.release.clear()
    agent.wire.send([prompt("wait", 3), notification("session/cancel", {"sessionId": "release"})])
    assert await agent.wire.receive() == [ended(3)]
    assert agent.started == ["wait", "release", "wait"]


@pytest.mark.covers("T3")
async def test_a_batch_that_asks_nothing_is_answered_with_nothing(agent: Agent) -> None:
    agent.wire.send(
        [
            notification("session/cancel", {"sessionId": "one"}),
            notification("session/cancel", {"sessionId": 5}),
            notification("session/unknown", {}),
            notification("session/prompt", {}),
            {"jsonrpc": "2.0", "id": 77, "result": {}},
            {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "?"}},
        ]
    )
    await until(lambda: agent.cancelled == ["one"])


@pytest.mark.covers("T3")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"[]", -32600),
        (b" [ ] ", -32600),
        (b"[1,", -32700),
        (b'[{"jsonrpc":"2.0","id":1,"method":"session/prompt"},]', -32700),
        (b'[{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":"\xff"}]', -32700),
        (b"[NaN]", -32700),
        (b'["\\q"]', -32700),
        (b"[" * 100_000 + b"]" * 100_000, -32700),
        (b"[1] [2]", -32700),
        (b"[" + b",".join([b"{}"] * (MAX_MESSAGES + 1)) + b"]", -32600),
    ],
    ids=lambda value: repr(value[:60]) if isinstance(value, bytes) else None,
)
async def test_an_invalid_batch_gets_one_error_and_no_array(
    agent: Agent, line: bytes, code: int
) -> None:
    agent.wire.write(line + b"\n")
    answer = await agent.wire.receive()
    assert codes([answer]) == [(None, code)]
    assert agent.started == []


@pytest.mark.covers("T3")
async def test_an_invalid_entry_gets_its_own_error_and_the_others_run(
    agent: Agent,
) -> None:
    entries = [
        *(1, "text", None, [], [prompt("nested", 9)], {}, True, 1.5),
        {"jsonrpc": "1.0", "id": 5, "method": "session/prompt"},
        {"jsonrpc": "2.0", "id": 6, "method": 7},
        {"jsonrpc": "2.0", "id": {}, "method": "session/prompt"},
    ]
    agent.wire.send([prompt("before", "a"), *entries, prompt("after", "b")])
    first, *invalid, last = await agent.wire.receive()
    assert (first, last) == (ended("a"), ended("b"))
    assert codes(invalid) == [(None, -32600)] * len(entries)
    assert agent.started == ["before", "after"]


@pytest.mark.covers("T3")
async def test_a_batch_of_as_many_messages_as_it_may_have_is_done(agent: Agent) -> None:
    agent.wire.send([prompt("one", number) for number in range(MAX_MESSAGES)])
    assert await agent.wire.receive() == [ended(number) for number in range(MAX_MESSAGES)]


@pytest.mark.covers("T4")
async def test_each_request_of_a_batch_fails_for_itself(agent: Agent) -> None:
    agent.wire.send(
        [
            request("session/unknown", {}, 1),
            request("session/prompt", {"sessionId": 5}, 2),
            prompt("fail", 3),
            prompt("good", 4),
        ]
    )
    answers = await agent.wire.receive()
    assert codes(answers) == [(1, -32601), (2, -32602), (3, -1), (4, None)]
    assert "data" not in answers[2]["error"], "what has no JSON form is left out"


@pytest.mark.covers("T6")
async def test_updates_of_a_request_precede_the_array_and_later_ones_follow(
    agent: Agent,
) -> None:
    agent.wire.send([prompt("then after", 1), prompt("wait", 2), prompt("say before", 3)])
    assert text_of(await agent.wire.receive()) == "before"
    agent.wire.send(prompt("say single", 4))
    assert text_of(await agent.wire.receive()) == "single"
    assert await agent.wire.receive() == ended(4)
    agent.release.set()
    assert await agent.wire.receive() == [ended(1), ended(2), ended(3)]
    assert text_of(await agent.wire.receive()) == "after"


async def test_a_failure_after_a_response_does_not_stop_later_messages(
    agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        agent.wire.send([prompt("break", 1), prompt("then after", 2)])
        assert await agent.wire.receive() == [ended(1), ended(2)]
        assert text_of(await agent.wire.receive()) == "after"
    assert "what follows fails" in caplog.text


@pytest.mark.covers("T5")
async def test_a_request_of_a_batch_is_cancelled_inside_and_outside_of_it(agent: Agent) -> None:
    agent.wire.send([prompt("wait", "in"), cancel_request("in"), prompt("good", 1)])
    assert codes(await agent.wire.receive()) == [("in", -32800), (1, None)]
    agent.wire.send([prompt("wait", "out"), prompt("good", 2)])
    await until(lambda: agent.started[-1:] == ["good"] and len(agent.started) == 4)
    agent.wire.send(cancel_request("out"))
    assert codes(await agent.wire.receive()) == [("out", -32800), (2, None)]


@pytest.mark.covers("T2")
async def test_an_id_is_in_use_until_the_array_with_its_response_is_out(agent: Agent) -> None:
    agent.wire.send([prompt("one", "x"), prompt("two", "x"), prompt("wait", "y")])
    await until(lambda: agent.started == ["one", "wait"])
    # The first "x" is done, but its response waits for that of "y".
    agent.wire.send(prompt("three", "x"))
    assert codes([await agent.wire.receive()]) == [("x", -32600)]
    agent.release.set()
    assert codes(await agent.wire.receive()) == [("x", None), ("x", -32600), ("y", None)]
    agent.wire.send([prompt("four", "x")])
    assert await agent.wire.receive() == [ended("x")]


@pytest.mark.covers("T3")
async def test_responses_come_in_batches_too(agent: Agent) -> None:
    agent.wire.send([prompt("ask", 1), prompt("ask", 2)])
    first, second = await agent.wire.receive(), await agent.wire.receive()
    agent.wire.send(
        [
            {"jsonrpc": "2.0", "id": second["id"], "result": {"content": "second"}},
            {"jsonrpc": "2.0", "id": first["id"], "result": {"content": "first"}},
        ]
    )
    assert {text_of(await agent.wire.receive()) for _ in range(2)} == {"first", "second"}
    assert await agent.wire.receive() == [ended(1), ended(2)]


@pytest.mark.covers("T3")
async def test_a_lone_surrogate_in_a_batch_is_replaced(agent: Agent) -> None:
    agent.wire.send([prompt("say a\ud800b and so on", 1), prompt("say \ud83d\ude00", 2)])
    assert text_of(await agent.wire.receive()) == "a\ufffdb and so on"
    assert text_of(await agent.wire.receive()) == "\U0001f600"
    assert await agent.wire.receive() == [ended(1), ended(2)]


async def test_a_new_surface_answers_the_remaining_messages_of_a_batch(
    agent: Agent,
) -> None:
    async def other(params: t.PromptRequest, call: Call) -> t.PromptResponse:
        return t.PromptResponse(stop_reason="refusal")

    old = agent.surface
    agent.next_surface = Surface(ALL, {**old.handlers, "session/prompt": other})
    hello = request("initialize", {"protocolVersion": 1}, 2)
    agent.wire.send([prompt("old", 1), hello, prompt("new", 3)])
    answers = await agent.wire.receive()
    assert [one["result"].get("stopReason") for one in answers] == ["end_turn", None, "refusal"]
    # That surface takes no batches.
    agent.wire.send([prompt("again", 4)])
    assert codes([await agent.wire.receive()]) == [(None, -32600)]
    agent.wire.connection.serve(old)


@pytest.mark.covers("T8")
async def test_a_batch_that_the_end_cuts_off_is_answered_with_cancellations() -> None:
    one = Agent()
    async with one.wire:
        one.wire.send([prompt("wait", 1), prompt("good", 2)])
        await until(lambda: one.started == ["wait", "good"])
        one.wire.end()
        assert codes(await one.wire.receive()) == [(1, -32800), (2, None)]
        assert await one.wire.rest() == b""


@pytest.mark.covers("T3")
def test_a_long_array_of_nothing_takes_no_memory_to_refuse() -> None:
    array = b"[[]" + b",[]" * 3_000_000 + b"]"
    tracemalloc.start()
    try:
        with pytest.raises(RpcError, match=f"at most {MAX_MESSAGES} messages"):
            split_entries(array)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def text_of(message: Json) -> str:
    text: str = message["params"]["update"]["content"]["text"]
    return text
