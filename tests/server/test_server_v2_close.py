"""Closing, listing and deleting sessions of version 2.

Source: Agent Client Protocol v2, Session Setup, Closing; Session List; Session Delete.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.server.v2_session import OpenV2, connect, prompt_params, states, user_texts
from tests.support.agent_process import StartAgent
from tests.support.framing import Json
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.v2_client import V2Client
from tests.support.wire_client import AnswerError

WRITE = Call("write", {"path": "new.txt", "content": "x"})
SLEEP = Call("shell", {"command": "echo begun; sleep 300"})


def of_session(client: V2Client, session: str, *, since: int) -> list[Json]:
    """Requests and notifications of a session among the messages since a place."""
    return [
        message
        for message in client.wire.messages[since:]
        if message.get("params", {}).get("sessionId") == session
    ]


async def ended_by(client: V2Client, method: str, session: str) -> None:
    """Send a request that ends a session; what is told of it comes before the answer, or never."""
    request = client.wire.post(method, {"sessionId": session}, checked=True)
    response = await client.wire.answer(request)
    assert response["result"] == {}
    since = client.wire.messages.index(response)
    assert client.view(session).state == "idle"
    await client.wire.request("session/list", {})
    assert of_session(client, session, since=since) == []


@pytest.mark.covers("S5", "P7")
@pytest.mark.parametrize("method", ["session/close", "session/delete"])
async def test_running_calls_are_reported_cancelled_before_the_session_is_closed(
    opened_v2: OpenV2, model_server: ModelServer, method: str
) -> None:
    model_server.add(answer(SLEEP))
    client, session = await opened_v2()
    await client.said(client.post_prompt(session, "Go"))
    await client.expect_update(session, "terminal_output_chunk")
    await ended_by(client, method, session)
    assert states(client, session) == ["running", "idle: cancelled"]
    view = client.view(session)
    assert [call["status"] for call in view.calls.values()] == ["cancelled"]
    assert all(terminal.exit_status is not None for terminal in view.terminals.values())
    with pytest.raises(AnswerError) as caught:
        await client.wire.request("session/prompt", prompt_params(session, "still there?"))
    assert caught.value.code == -32002


@pytest.mark.covers("S5", "P6")
async def test_closing_withdraws_the_question_that_is_asked(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer(WRITE))
    client, session = await opened_v2(permission="never")
    await client.said(client.post_prompt(session, "Go"))
    question = await client.wire.expect(lambda m: m.get("method") == "session/request_permission")
    await ended_by(client, "session/close", session)
    withdrawn = await client.wire.expect(lambda m: m.get("method") == "$/cancel_request")
    assert withdrawn["params"]["requestId"] == question["id"]
    assert states(client, session)[-1] == "idle: cancelled"
    assert not (workspace_repo / "new.txt").exists()


@pytest.mark.covers("S5")
async def test_closing_an_idle_session_tells_no_further_state(opened_v2: OpenV2) -> None:
    client, session = await opened_v2()
    await ended_by(client, "session/close", session)
    assert states(client, session) == []


@pytest.mark.covers("S5", "S6")
@pytest.mark.parametrize("method", ["session/close", "session/delete"])
async def test_closing_and_deleting_an_unknown_session_succeeds(
    opened_v2: OpenV2, method: str
) -> None:
    client, session = await opened_v2()
    params = {"sessionId": "sess_nobody_made"}
    assert await client.wire.request(method, params, checked=True) == {}
    for _ in range(2):
        assert await client.wire.request(method, {"sessionId": session}, checked=True) == {}
    with pytest.raises(AnswerError) as caught:
        await client.wire.request(method, {"sessionId": 7})
    assert caught.value.code == -32602


@pytest.mark.covers("S5", "T5")
async def test_a_prompt_that_closing_prevents_is_answered_as_cancelled(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    model_server.add(answer("Begun", Stall()))
    client, session = await opened_v2()
    first = await client.said(client.post_prompt(session, "one"))
    await client.expect_view(session, lambda view: view.text() == "Begun")
    params = {"sessionId": session}
    requests: list[Json] = [
        {"method": "session/cancel", "params": params},
        {"id": "waits", "method": "session/prompt", "params": prompt_params(session, "two")},
        {"id": "closes", "method": "session/close", "params": params},
        {"id": "late", "method": "session/prompt", "params": prompt_params(session, "three")},
    ]
    await client.wire.send(
        b"".join(json.dumps({"jsonrpc": "2.0"} | m).encode() + b"\n" for m in requests)
    )
    assert await client.wire.result("closes") == {}
    codes = []
    for request in ("waits", "late"):
        with pytest.raises(AnswerError) as caught:
            await client.wire.result(request)
        codes.append(caught.value.code)
    assert codes == [-32800, -32002]
    assert user_texts(client, session) == [first]
    assert states(client, session) == ["running", "idle: cancelled"]
    assert len(model_server.requests) == 1


@pytest.mark.covers("S5", "S4")
async def test_a_closed_session_can_be_resumed_and_a_deleted_one_cannot(
    opened_v2: OpenV2, agent: StartAgent, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer("Half", Stall()), answer("Whole."))
    client, session = await opened_v2()
    await client.said(client.post_prompt(session, "Go"))
    await client.expect_view(session, lambda view: view.text() == "Half")
    await client.close(session)
    view = await client.resume(session, workspace_repo, replay=True)
    assert view.text("user") == "Go"
    assert view.text() == "Half"
    assert (await client.prompt(session, "go on"))["stopReason"] == "end_turn"
    await ended_by(client, "session/delete", session)
    second_client = await connect(agent, model_server)
    for resuming_client in (client, second_client):
        with pytest.raises(AnswerError) as caught:
            await resuming_client.resume(session, workspace_repo)
        assert caught.value.code == -32002
        assert caught.value.data == {"sessionId": session}


@pytest.mark.covers("S5")
async def test_sessions_are_listed_newest_first_with_title_and_folder(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path, tmp_path: Path
) -> None:
    model_server.otherwise = answer("Yes.")
    second_folder = tmp_path / "other"
    second_folder.mkdir()
    client, first = await opened_v2()
    second = await client.new_session(second_folder, additionalDirectories=[str(workspace_repo)])
    empty = await client.new_session(second_folder)
    for session, words in ((first, "mend the lamp"), (second, "paint the door")):
        assert (await client.prompt(session, words))["stopReason"] == "end_turn"
    listed = (await client.wire.request("session/list", {}, checked=True))["sessions"]
    assert [entry["sessionId"] for entry in listed] == [second, first]
    assert [entry["title"] for entry in listed] == ["paint the door", "mend the lamp"]
    assert listed[0]["additionalDirectories"] == [str(workspace_repo)]
    assert listed[0]["cwd"] == str(second_folder)
    assert listed[0]["updatedAt"].endswith("Z")
    assert empty not in [entry["sessionId"] for entry in listed]
    of_one = await client.wire.request("session/list", {"cwd": str(workspace_repo)}, checked=True)
    assert [entry["sessionId"] for entry in of_one["sessions"]] == [first]
    nobody = await client.wire.request("session/list", {"cwd": "/nowhere"}, checked=True)
    assert nobody["sessions"] == []
    for wrong in ({"cursor": "no cursor of ours"}, {"cursor": 5}):
        with pytest.raises(AnswerError) as caught:
            await client.wire.request("session/list", wrong)
        assert caught.value.code == -32602
