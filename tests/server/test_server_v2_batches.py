"""Batches of a client of version 2 on the real agent's stdio.

Source: Agent Client Protocol v2, Transports, JSON-RPC Batch Messages; JSON-RPC 2.0, section 6.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server.v2_session import OpenV2, prompt_params, user_texts
from tests.support.framing import Json
from tests.support.model_server import ModelServer, Stall, answer
from tests.support.v2_client import V2Client


def ask(request: object, method: str, params: Json | None = None) -> Json:
    return {"jsonrpc": "2.0", "id": request, "method": method, "params": params or {}}


def tell(method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params}


async def answers(client: V2Client, *requests: object) -> dict[object, Json]:
    """The responses to the requests of a batch, which came in one line."""
    answers_by_id = {request: await client.wire.answer(request) for request in requests}  # type: ignore[arg-type]
    fragments = {b'"id":"%b"' % str(request).encode() for request in requests}
    (line,) = [line for line in client.wire.lines if any(piece in line for piece in fragments)]
    assert line.startswith(b"[")
    return answers_by_id


@pytest.mark.covers("T3", "T2")
async def test_a_batch_of_both_kinds_is_answered_in_one_line_with_an_answer_a_request(
    opened_v2: OpenV2, workspace_repo: Path
) -> None:
    client, session = await opened_v2()
    await client.wire.send(
        [
            ask("a", "session/list"),
            tell("session/cancel", {"sessionId": session}),
            ask("b", "no/such_method"),
            tell("_unknown/notification", {}),
            ask("c", "session/new", {"cwd": "relative"}),
        ]
    )
    answers_by_id = await answers(client, "a", "b", "c")
    assert answers_by_id["a"]["result"] == {"sessions": []}
    assert [answers_by_id[name]["error"]["code"] for name in "bc"] == [-32601, -32602]


@pytest.mark.covers("T3", "T2")
async def test_a_batch_of_notifications_is_not_answered(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    model_server.add(answer("Begun", Stall()))
    client, session = await opened_v2()
    message = await client.said(client.post_prompt(session, "Go"))
    await client.expect_view(session, lambda view: view.text() == "Begun")
    cancel = tell("session/cancel", {"sessionId": session})
    await client.wire.send([cancel, tell("$/cancel_request", {"requestId": "x"}), cancel])
    assert (await client.idle(session, message))["stopReason"] == "cancelled"
    await client.wire.request("session/list", {})
    assert not [line for line in client.wire.lines if line.startswith(b"[")]


@pytest.mark.covers("T3")
async def test_a_wrong_entry_fails_alone(opened_v2: OpenV2) -> None:
    client, _ = await opened_v2()
    entries: list[Any] = [1, "x", None, [], {}, {"jsonrpc": "2.0"}, {"id": 5}]
    for wrong in entries:
        client.wire.forget_what_came()
        await client.wire.send([ask("a", "session/list"), wrong])
        answers_by_id = await answers(client, "a")
        assert "result" in answers_by_id["a"]
        fault = await client.wire.expect(lambda m: "error" in m)
        assert fault["error"]["code"] == -32600
    assert (await client.wire.request("session/list", {}))["sessions"] == []


@pytest.mark.covers("T3")
async def test_an_empty_batch_is_one_wrong_request(opened_v2: OpenV2) -> None:
    client, _ = await opened_v2()
    await client.wire.send([])
    fault = await client.wire.expect(lambda m: "error" in m)
    assert (fault["id"], fault["error"]["code"]) == (None, -32600)
    assert not [line for line in client.wire.lines if line.startswith(b"[")]
    assert (await client.wire.request("session/list", {}))["sessions"] == []


@pytest.mark.covers("T3", "P9")
async def test_two_prompts_in_a_batch_are_recorded_in_their_order(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("Yes.")
    client, session = await opened_v2()
    await client.wire.send(
        [ask(name, "session/prompt", prompt_params(session, name)) for name in ("one", "two")]
    )
    answers_by_id = await answers(client, "one", "two")
    message_ids = [answers_by_id[name]["result"]["messageId"] for name in ("one", "two")]
    assert (await client.idle(session, message_ids[1]))["stopReason"] == "end_turn"
    assert user_texts(client, session) == message_ids
    assert [client.view(session).messages[message_id].text for message_id in message_ids] == [
        "one",
        "two",
    ]


@pytest.mark.covers("T3", "T6")
async def test_a_batch_waits_for_its_slowest_request_and_other_requests_do_not(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path
) -> None:
    client, session = await opened_v2()
    await client.wire.send(
        [ask("new", "session/new", {"cwd": str(workspace_repo)}), ask("list", "session/list")]
    )
    assert (await client.wire.request("session/list", {}))["sessions"] == []
    answers_by_id = await answers(client, "new", "list")
    assert answers_by_id["new"]["result"]["sessionId"] != session
