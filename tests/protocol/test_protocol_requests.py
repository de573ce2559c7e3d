"""Cancellation in both directions, and what clients answer: real bytes to a real process."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocol.peer_process import (
    PeerProcess,
    cancel_request,
    notification,
    prompt,
    text_of,
)


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
async def test_cancelling_an_unknown_request_is_silent(peer: PeerProcess) -> None:
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
async def test_cancelling_a_turn_withdraws_its_questions(peer: PeerProcess) -> None:
    asked = await peer.ask(prompt("ask", 4))
    withdrawn = await peer.ask(cancel_request(4))
    assert withdrawn["params"] == {"requestId": asked["id"]}
    assert (await peer.receive())["error"]["code"] == -32800


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
async def test_an_answer_without_a_request_is_ignored(
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
async def test_the_turn_continues_after_any_answer_of_a_client(
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
