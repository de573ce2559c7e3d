"""Our own methods, and what a client of version 1 may say about steering."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.server.server_session import DEMO, OPENAI, OpenSession, messages
from tests.support.agent_process import AgentProcess, StartAgent
from tests.support.framing import Json
from tests.support.model_server import ModelServer, Stall, answer
from tests.support.v2_client import V2Client
from tests.support.v2_editor import EditorV2
from tests.support.wire_client import AnswerError

EXPORT = "_acp-agent/session/export"
LIST = "_acp-agent/checkpoints/list"
RESTORE = "_acp-agent/checkpoints/restore"
RESOURCES = "_acp-agent/resources/list"
STEER = "_session/steering"


def words(session: str, text: str, **meta: Any) -> Json:
    params: Json = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
    return params | ({"_meta": meta} if meta else {})


QUEUE: Json = {"acp-agent": {"whileRunning": "queue"}}
ONLY_STEER: Json = {"steering": {"idleBehavior": "promptRequired"}}


@pytest.mark.covers("I3")
async def test_only_advertised_methods_are_answered(agent: StartAgent) -> None:
    first = await agent(*DEMO)
    result = await first.initialize()
    extensions = result["agentCapabilities"]["_meta"]["acp-agent"]
    methods = [EXPORT, LIST, RESTORE, RESOURCES]
    both = {"methods": methods, "fork": ["before", "through"], "tellsStopReasons": True}
    assert extensions == {**both, "whileRunning": ["steer", "queue"]}
    steering = {"supported": True}
    assert result["_meta"]["steering"] == steering
    assert result["agentCapabilities"]["_meta"]["steering"] == steering
    second = await agent(*DEMO, editor=EditorV2())
    result = await V2Client(second).initialize()
    assert result["capabilities"]["_meta"] == {"acp-agent": both}
    for running, unknown in (
        (first, "_acp-agent/checkpoints/delete"),
        (first, "_acp-agent/session/exports"),
        (second, STEER),
    ):
        with pytest.raises(AnswerError) as caught:
            await running.request(unknown, {})
        assert caught.value.code == -32601
    for running in (first, second):
        for method in methods:
            with pytest.raises(AnswerError) as caught:
                await running.request(method, {})
            assert caught.value.code == -32602


async def export(running: AgentProcess, session: str, **params: Any) -> list[str]:
    pages: list[str] = []
    cursor: Json = {}
    while True:
        result = await running.request(EXPORT, {"sessionId": session} | params | cursor)
        pages.append(result["content"])
        if "nextCursor" not in result:
            return pages
        cursor = {"cursor": result["nextCursor"]}


async def test_a_session_is_exported_while_it_is_open_and_when_it_is_stored(
    opened: OpenSession, agent: StartAgent, model_server: ModelServer
) -> None:
    secret = "open-sesame-0123456789"
    environ = {"DEPLOY_TOKEN": secret}
    model_server.add(answer(f"Your token is {secret}."))
    running, session = await opened(environ=environ)
    await running.prompt(session, "tell me")
    (text,) = await export(running, session)
    head, *lines = [json.loads(line) for line in text.splitlines()]
    assert head["session"]["id"] == session
    assert lines[-1]["event"]["event"] == "turn_ended"
    assert [line["seq"] for line in lines] == sorted({line["seq"] for line in lines})
    assert secret not in text

    second_client = await agent(
        *OPENAI, editor=EditorV2(), environ=model_server.environ() | environ
    )
    await V2Client(second_client).initialize()
    (stored,) = await export(second_client, session, format="md")
    assert "\n## User\n\ntell me\n\n## Agent\n\n" in stored
    assert secret not in stored
    content = await export(second_client, session, maxBytes=1_000)
    assert len(content) > 1
    assert "".join(content) == text
    # Nothing was opened by that: the first one goes on.
    model_server.add(answer("More."))
    assert (await running.prompt(session, "go on"))["stopReason"] == "end_turn"


@pytest.mark.covers("T4", "S6")
async def test_a_wrong_export_is_refused_by_the_name_of_what_is_wrong(
    opened: OpenSession,
) -> None:
    running, session = await opened()
    for params, field in (
        ({"sessionId": 7}, "sessionId"),
        ({"sessionId": session, "format": "pdf"}, "format"),
        ({"sessionId": session, "maxBytes": 1}, "maxBytes"),
        ({"sessionId": session, "maxBytes": 1e12}, "maxBytes"),
        ({"sessionId": session, "cursor": "mine"}, "cursor"),
        ({"sessionId": session, "cursor": 3}, "cursor"),
        ([session], ""),
    ):
        with pytest.raises(AnswerError) as caught:
            await running.request(EXPORT, params)  # type: ignore[arg-type]  # meant to be wrong
        assert caught.value.code == -32602
        assert field in caught.value.message
    with pytest.raises(AnswerError) as caught:
        await running.request(EXPORT, {"sessionId": "sess_nobody"})
    assert caught.value.code == -32002
    assert caught.value.data == {"sessionId": "sess_nobody"}
    assert await export(running, session, format="md", _meta={"any": 1}, more="fields")


@pytest.mark.covers("P9")
async def test_a_message_is_inserted_into_the_running_turn(
    opened: OpenSession, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("Nearly ", stall, "done."), answer("In French."))
    running, session = await opened()
    prompt = running.post_prompt(session, "work")
    await running.expect_update(session, "agent_message_chunk")
    injected = await running.request(STEER, words(session, "answer in French", **ONLY_STEER))
    assert injected == {"outcome": "injected"}
    stall.release()
    assert (await running.result(prompt))["stopReason"] == "end_turn"
    assert "answer in French" in json.dumps(messages(model_server)[-1])


@pytest.mark.covers("P9")
@pytest.mark.parametrize("meta", [ONLY_STEER, {}], ids=str)
async def test_a_message_that_comes_too_late_to_steer_is_not_recorded(
    opened: OpenSession, model_server: ModelServer, meta: Json
) -> None:
    running, session = await opened()
    answered = await running.request(STEER, words(session, "lost?", **meta))
    assert answered == {"outcome": "promptRequired", "reason": "noRunningTurn"}
    model_server.add(answer("Hi."))
    await running.prompt(session, "hello")
    assert "lost?" not in json.dumps(messages(model_server))


@pytest.mark.covers("P9")
async def test_a_prompt_that_must_not_steer_waits_and_begins_the_next_turn(
    opened: OpenSession, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("One ", stall, "done."), answer("Two."), answer("Three."))
    running, session = await opened()
    first = running.post_prompt(session, "one")
    await running.expect_update(session, "agent_message_chunk")
    second = running.post("session/prompt", words(session, "two", **QUEUE))
    third = running.post("session/prompt", words(session, "three", **QUEUE))
    await running.request("session/list", {})  # they were taken in by now
    stall.release()
    for request in (first, second, third):
        assert (await running.result(request))["stopReason"] == "end_turn"
    assert len(model_server.requests) == 3
    assert [m["role"] for m in messages(model_server, 1)] == ["user", "assistant", "user"]
    request_text = [json.dumps(message) for message in messages(model_server)]
    assert "two" in request_text[2]
    assert "three" in request_text[4]
    done = [message["id"] for message in running.messages if message.get("id") in {second, third}]
    assert done == [second, third]


@pytest.mark.covers("P9", "T6")
async def test_others_may_steer_while_a_prompt_waits(
    opened: OpenSession, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("One ", stall, "done."), answer("Steered."), answer("Queued."))
    running, session = await opened()
    first = running.post_prompt(session, "one")
    await running.expect_update(session, "agent_message_chunk")
    queued = running.post("session/prompt", words(session, "later", **QUEUE))
    mode = {"sessionId": session, "modeId": "plan"}
    assert await running.request("session/set_mode", mode) == {}  # nothing is held up by it
    steering = running.post_prompt(session, "now")
    await running.request("session/list", {})
    stall.release()
    for request in (first, steering, queued):
        assert (await running.result(request))["stopReason"] == "end_turn"
    assert "later" not in json.dumps(messages(model_server, 1))
    assert "now" in json.dumps(messages(model_server, 1)[-1])
    assert "later" in json.dumps(messages(model_server, 2)[-1])


@pytest.mark.covers("P9", "T5")
async def test_a_waiting_prompt_can_be_withdrawn_and_the_turn_continues(
    opened: OpenSession, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("One ", stall, "done."))
    running, session = await opened()
    first = running.post_prompt(session, "one")
    await running.expect_update(session, "agent_message_chunk")
    queued = running.post("session/prompt", words(session, "later", **QUEUE))
    await running.request("session/list", {})
    running.notify("$/cancel_request", {"requestId": queued})
    with pytest.raises(AnswerError) as caught:
        await running.result(queued)
    assert caught.value.code == -32800
    stall.release()
    assert (await running.result(first))["stopReason"] == "end_turn"
    assert running.text(session) == "One done."


@pytest.mark.covers("P9", "P7")
async def test_a_cancel_ends_the_waiting_prompts_too(
    opened: OpenSession, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("One ", stall, "done."))
    running, session = await opened()
    first = running.post_prompt(session, "one")
    await running.expect_update(session, "agent_message_chunk")
    queued = running.post("session/prompt", words(session, "later", **QUEUE))
    await running.request("session/list", {})
    running.cancel(session)
    for request in (first, queued):
        assert (await running.result(request))["stopReason"] == "cancelled"
    stall.release()
    assert len(model_server.requests) == 1


@pytest.mark.covers("T4")
async def test_a_marker_with_an_unknown_word_is_refused_and_others_marks_are_left_alone(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    for method, meta, word in (
        ("session/prompt", {"acp-agent": {"whileRunning": "drop"}}, "whileRunning"),
        ("session/prompt", {"acp-agent": {"whileRunning": 1}}, "whileRunning"),
        (STEER, {"steering": {"idleBehavior": "explode"}}, "idleBehavior"),
    ):
        with pytest.raises(AnswerError) as caught:
            await running.request(method, words(session, "x", **meta))
        assert caught.value.code == -32602
        assert word in caught.value.message
    with pytest.raises(AnswerError) as caught:
        await running.request(STEER, {"sessionId": session, "prompt": "text"})
    assert caught.value.code == -32602
    with pytest.raises(AnswerError) as caught:
        await running.request(STEER, words("sess_nobody", "x"))
    assert caught.value.code == -32002
    model_server.add(answer("Fine."))
    odd: Json = {"acp-agent": "text", "steering": [], "other.example": {"whileRunning": 3}}
    result = await running.request("session/prompt", words(session, "x", **odd))
    assert result["stopReason"] == "end_turn"
