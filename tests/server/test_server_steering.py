"""A second prompt while a turn runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.server.server_session import READ, OpenSession, messages, say_meanwhile
from tests.support.agent_process import AgentProcess
from tests.support.editor import Editor
from tests.support.model_server import Call, ModelServer, Stall, Status, answer
from tests.support.wire_client import AnswerError


@pytest.mark.covers("P9", "T6")
async def test_a_second_prompt_reaches_the_model_with_the_next_request_of_the_turn(
    opened: OpenSession, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("Reading.", stall, READ), answer("In French, then."))
    running, session = await opened()
    first, second = await say_meanwhile(running, session, stall, "read it", "answer in French")
    for request in (first, second):
        assert (await running.result(request))["stopReason"] == "end_turn"
    assert len(model_server.requests) == 2
    roles = [message["role"] for message in messages(model_server)]
    assert roles == ["user", "assistant", "tool", "user"]
    assert "answer in French" in json.dumps(messages(model_server)[-1])
    assert running.text(session) == "Reading.In French, then."


@pytest.mark.covers("P9")
async def test_a_message_during_the_last_answer_gets_its_own_answer(
    opened: OpenSession, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("Nearly ", stall, "done."), answer("That as well."))
    running, session = await opened()
    first, second = await say_meanwhile(running, session, stall, "work", "and this")
    for request in (first, second):
        assert (await running.result(request))["stopReason"] == "end_turn"
    history = messages(model_server)
    assert [message["role"] for message in history] == ["user", "assistant", "user"]
    assert "Nearly done." in json.dumps(history[1])
    assert "and this" in json.dumps(history[2])
    answered = [m["id"] for m in running.messages if m.get("id") in {first, second}]
    assert answered == [first, second]


@pytest.mark.covers("P9", "P7")
async def test_a_cancel_ends_every_prompt_of_the_turn_and_loses_no_message(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(answer("begun", Stall()), answer("All of it."))
    running, session = await opened()
    first = running.post_prompt(session, "the first")
    await running.expect_update(session, "agent_message_chunk")
    second = running.post_prompt(session, "the second")
    await running.request("session/list", {})
    running.cancel(session)
    for request in (first, second):
        assert (await running.result(request))["stopReason"] == "cancelled"
    await running.prompt(session, "the third")
    request_text = json.dumps(messages(model_server))
    assert (
        request_text.index("the first")
        < request_text.index("the second")
        < request_text.index("the third")
    )


@pytest.mark.covers("P9", "P8")
async def test_every_prompt_of_a_turn_gets_its_failure(
    opened: OpenSession, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(Status(code=401, hold=stall))
    running, session = await opened()
    first = running.post_prompt(session, "one")
    await model_server.arrived(1)
    second = running.post_prompt(session, "two")
    await running.request("session/list", {})
    stall.release()
    for request in (first, second):
        with pytest.raises(AnswerError) as caught:
            await running.result(request)
        assert "401" in caught.value.message


@pytest.mark.covers("P9", "S4")
async def test_a_replay_shows_messages_sent_during_the_turn(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    stall = Stall()
    model_server.add(answer("Reading.", stall, READ), answer("Done."))
    running, session = await opened()
    first, second = await say_meanwhile(running, session, stall, "read it", "quickly")
    for request in (first, second):
        await running.result(request)
    before = len(running.updates(session))
    load = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    await running.request("session/load", load)
    replayed = running.updates(session)[before:]
    texts = [u["content"]["text"] for u in replayed if u["sessionUpdate"] == "user_message_chunk"]
    assert texts == ["read it", "quickly"]


@pytest.mark.covers("P9", "P6")
async def test_a_message_during_a_question_is_sent_with_the_result(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running: AgentProcess | None = None
    editor = Editor()

    async def speak_first(request: dict[str, object]) -> dict[str, object]:
        assert running is not None
        running.post_prompt(str(request["sessionId"]), "and call it made.md")
        await running.request("session/list", {})
        return {"outcome": "selected", "optionId": "reject_once"}

    editor.permission = speak_first
    model_server.add(answer(Call("shell", {"command": "touch made.txt"})), answer("As you wish."))
    running, session = await opened(editor=editor)
    assert (await running.prompt(session, "make it"))["stopReason"] == "end_turn"
    roles = [message["role"] for message in messages(model_server)]
    assert roles == ["user", "assistant", "tool", "user"]
    assert "made.md" in json.dumps(messages(model_server)[-1])
