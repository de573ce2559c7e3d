"""What the user is told of a turn that stopped without an answer, or in the middle of one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acp_agent.events import Usage
from tests.server.either_version import EitherClient
from tests.server.server_session import MODELS, OpenSession, messages, say_meanwhile
from tests.support.agent_process import StartAgent, config_file
from tests.support.model_server import Answer, Call, ModelServer, Stall, Thought, answer

CUT = "The answer is cut off: it reached"
NOTHING = "No answer: the model reached"
REFUSED = "The model refused. Your prompt"


@pytest.mark.covers("P8")
@pytest.mark.parametrize("version", [1, 2])
async def test_the_reason_of_a_missing_or_cut_answer_is_shown_once(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    client = await EitherClient.before(agent, version, model_server)
    session = await client.new(workspace_repo)
    cases: list[tuple[Answer, str, str]] = [
        (answer("As far as", stop="length"), "max_tokens", CUT),
        (answer(stop="length"), "max_tokens", NOTHING),
        (answer(Thought("Hm"), stop="length"), "max_tokens", NOTHING),
        (answer("I will not", stop="content_filter"), "refusal", REFUSED),
        (answer(stop="content_filter"), "refusal", REFUSED),
    ]
    for reply, reason, expected in cases:
        before = len(client.wire.text(session))
        model_server.otherwise = reply
        assert await client.say(session, "go on") == reason
        text = client.wire.text(session)[before:]
        assert text.count(expected) == 1
        if reason == "refusal":
            assert text.count("*The provider stopped the answer: content_filter*") == 1
        assert text.count("*") == (4 if reason == "refusal" else 2), text
    assert CUT not in json.dumps(messages(model_server))


@pytest.mark.covers("P8")
async def test_a_turn_that_has_its_answer_or_did_something_says_nothing_more(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    model_server.add(
        answer("Hello."), answer(Call("read", {"path": "greeting.py"})), answer("Fine.")
    )
    await running.prompt(session, "hi")
    await running.prompt(session, "read it")
    assert running.text(session).strip() == "Hello.Fine."


@pytest.mark.covers("P8")
async def test_an_empty_answer_to_tool_results_is_requested_again_once(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    model_server.add(answer(Call("read", {"path": "greeting.py"})), answer(), answer("Hello."))
    assert (await running.prompt(session, "read it"))["stopReason"] == "end_turn"
    assert len(model_server.requests) == 3
    assert running.text(session).strip() == "Hello."


@pytest.mark.covers("P8", "P9")
async def test_a_message_sent_while_an_answer_is_cut_off_is_answered(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    stall = Stall()
    model_server.add(answer("As far", stall, stop="length"), answer("In short: yes."))
    first, second = await say_meanwhile(running, session, stall, "well?", "shorter")
    for request in (first, second):
        assert (await running.result(request))["stopReason"] == "end_turn"
    assert running.text(session) == "As farIn short: yes."


@pytest.mark.covers("P8")
async def test_the_note_about_a_missing_answer_is_in_the_users_language(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened(environ={"ACP_AGENT_LANGUAGE": "zh"})
    model_server.otherwise = answer(stop="length")
    await running.prompt(session, "说吧")
    assert running.text(session).strip().startswith("*模型没有给出回答")


@pytest.mark.covers("P8")
@pytest.mark.parametrize("version", [1, 2])
async def test_prompts_that_a_budget_refuses_are_not_sent_later(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, home: Path, version: int
) -> None:
    config_file(home, f"{MODELS}\n[budget]\nsession_tokens = 20_000\n")
    client = await EitherClient.before(agent, version, model_server)
    session = await client.new(workspace_repo)
    model_server.add(
        answer("Yes.", usage=Usage(input=19_999, output=2)), answer("By the new budget.")
    )
    assert await client.say(session, "first question") == "end_turn"
    for number in range(3):
        assert await client.say(session, f"refused {number}") == "refusal"
    text = client.wire.text(session)
    assert text.count("The budget of this session is used up: 20,001 tokens of 20,000 tokens.") == 3
    assert text.count("Your prompt was not sent") == 3
    await client.say(session, "/budget session none")
    assert await client.say(session, "second question") == "end_turn"
    request_text = json.dumps(messages(model_server))
    assert "first question" in request_text
    assert "second question" in request_text
    assert "refused" not in request_text
    assert "budget" not in request_text
