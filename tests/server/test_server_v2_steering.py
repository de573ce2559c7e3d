"""Prompts of version 2 that come while something runs already.

Source: Agent Client Protocol v2, Prompt Lifecycle; the schema's `session/prompt`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.server.server_session import READ, messages
from tests.server.v2_session import OpenV2, states, user_texts
from tests.support.model_server import Call, ModelServer, Stall, Status, answer

WRITE = Call("write", {"path": "new.txt", "content": "x"})


@pytest.mark.covers("P9", "T6")
async def test_a_message_sent_during_an_answer_is_inserted_at_once_and_one_idle_ends_the_turn(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("Reading.", stall, READ), answer("In French, then."))
    client, session = await opened_v2()
    first = await client.said(client.post_prompt(session, "read it"))
    await client.expect_view(session, lambda view: view.text() == "Reading.")
    second = await client.said(client.post_prompt(session, "answer in French"))
    assert second != first
    await client.expect_view(session, lambda view: second in view.messages)
    assert client.view(session).state == "running"
    stall.release()
    assert (await client.idle(session, second))["stopReason"] == "end_turn"
    assert user_texts(client, session) == [first, second]
    assert states(client, session) == ["running", "idle: end_turn"]
    assert len(model_server.requests) == 2
    assert [message["role"] for message in messages(model_server)] == [
        "user",
        "assistant",
        "tool",
        "user",
    ]
    assert "answer in French" in json.dumps(messages(model_server)[-1])


@pytest.mark.covers("P9", "P6")
async def test_a_message_sent_during_a_question_is_recorded_at_once_and_leaves_it_open(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer(WRITE), answer("Done, in tabs."))
    client, session = await opened_v2(permission="never")
    first = await client.said(client.post_prompt(session, "write"))
    await client.expect_view(session, lambda view: view.state == "requires_action")
    question = await client.wire.expect(lambda m: m.get("method") == "session/request_permission")
    second = await client.said(client.post_prompt(session, "use tabs"))
    assert client.view(session).state == "requires_action"
    option = question["params"]["options"][0]["optionId"]
    outcome = {"outcome": {"outcome": "selected", "optionId": option}}
    await client.wire.send({"jsonrpc": "2.0", "id": question["id"], "result": outcome})
    assert (await client.idle(session, second))["stopReason"] == "end_turn"
    assert user_texts(client, session) == [first, second]
    assert (workspace_repo / "new.txt").exists()
    assert "use tabs" in json.dumps(messages(model_server)[-1])


@pytest.mark.covers("P9", "P11", "P6")
async def test_a_command_answered_while_the_user_is_asked_is_work_and_the_question_stays(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    model_server.add(answer(WRITE))
    client, session = await opened_v2(permission="never")
    await client.said(client.post_prompt(session, "write"))
    await client.expect_view(session, lambda view: view.state == "requires_action")
    await client.said(client.post_prompt(session, "/mode plan"))
    await client.said(client.post_prompt(session, "/compact"))
    await client.expect_view(session, lambda view: "will be summarised" in view.text())
    assert "(current)" in client.view(session).text()
    await client.expect_view(session, lambda view: view.state == "requires_action")
    between = ["running", "requires_action"]
    assert states(client, session) == [*between, *between, *between]
    client.cancel(session)
    await client.expect_view(session, lambda view: view.state == "idle")


@pytest.mark.covers("P9", "P11")
async def test_a_command_of_the_agents_own_is_answered_while_the_model_continues(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("Half", stall, " and half"))
    client, session = await opened_v2()
    first = await client.said(client.post_prompt(session, "Go"))
    await client.expect_view(session, lambda view: view.text() == "Half")
    second = await client.said(client.post_prompt(session, "/help"))
    view = await client.expect_view(session, lambda view: "/help" in view.text())
    assert view.state == "running"
    stall.release()
    assert (await client.idle(session, first))["stopReason"] == "end_turn"
    assert user_texts(client, session) == [first, second]
    assert states(client, session) == ["running", "idle: end_turn"]
    agent_message, _ = [
        message for message in client.view(session).messages.values() if message.author == "agent"
    ]
    assert agent_message.text == "Half and half"
    assert len(model_server.requests) == 1


@pytest.mark.covers("P9")
async def test_a_message_sent_during_the_last_answer_is_answered_before_idle(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("Nearly ", stall, "done."), answer("That as well."))
    client, session = await opened_v2()
    await client.said(client.post_prompt(session, "work"))
    await client.expect_view(session, lambda view: view.text() == "Nearly ")
    second = await client.said(client.post_prompt(session, "and this"))
    stall.release()
    assert (await client.idle(session, second))["stopReason"] == "end_turn"
    assert client.view(session).text() == "Nearly done.That as well."
    assert states(client, session) == ["running", "idle: end_turn"]


@pytest.mark.covers("P9", "P8")
async def test_a_failure_ends_the_work_of_both_prompts_with_one_idle(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("So", stall, READ), Status(code=400, message="too odd"), answer("Now."))
    client, session = await opened_v2()
    first = await client.said(client.post_prompt(session, "one"))
    await client.expect_view(session, lambda view: view.text() == "So")
    second = await client.said(client.post_prompt(session, "two"))
    stall.release()
    ended = await client.idle(session, second)
    assert ended["stopReason"] == "error"
    assert "too odd" in ended["error"]["message"]
    assert user_texts(client, session) == [first, second]
    assert (await client.prompt(session, "again"))["stopReason"] == "end_turn"
    assert states(client, session) == ["running", "idle: error", "running", "idle: end_turn"]


@pytest.mark.covers("P9", "P7")
async def test_a_cancel_ends_the_work_of_both_prompts_with_one_idle(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    model_server.add(answer("So", Stall()), answer("Now."))
    client, session = await opened_v2()
    first = await client.said(client.post_prompt(session, "one"))
    await client.expect_view(session, lambda view: view.text() == "So")
    second = await client.said(client.post_prompt(session, "two"))
    client.cancel(session)
    assert (await client.idle(session, second))["stopReason"] == "cancelled"
    assert user_texts(client, session) == [first, second]
    assert (await client.prompt(session, "again"))["stopReason"] == "end_turn"
    assert states(client, session) == ["running", "idle: cancelled", "running", "idle: end_turn"]
    request_text = json.dumps(messages(model_server))
    assert request_text.index("one") < request_text.index("two") < request_text.index("again")
