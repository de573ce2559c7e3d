"""Requests over HTTP with the real agent: what the user is asked, and what is never sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.server.server_session import OpenSession, messages
from tests.support.agent_process import config_file
from tests.support.editor import Editor
from tests.support.model_server import Call, ModelServer, answer

POST = Call("http_request", {"url": "https://api.example.com/v1", "method": "POST", "body": "{}"})


@pytest.fixture
def enable_tool(home: Path) -> None:
    config_file(home, "http_requests = true\n")


def tools(server: ModelServer) -> dict[str, object]:
    return {tool["function"]["name"]: tool for tool in server.requests[0].json["tools"]}


async def test_the_model_knows_nothing_of_it_unless_the_user_wants_it(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(answer("Hi."))
    running, session = await opened()
    await running.prompt(session, "hello")
    assert "http_request" not in tools(model_server)


@pytest.mark.usefixtures("enable_tool")
async def test_the_question_shows_host_method_and_body_and_offers_nothing_permanent(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(answer(POST), answer("Not sent."))
    editor = Editor(permission="reject_once")
    running, session = await opened(editor=editor)
    await running.prompt(session, "post it to api.example.com")
    assert len(json.dumps(tools(model_server)["http_request"])) < 650
    (question,) = editor.asked
    assert [option["kind"] for option in question["options"]] == ["allow_once", "reject_once"]
    assert question["toolCall"]["title"] == "POST api.example.com/v1"
    assert question["toolCall"]["kind"] == "fetch"
    text = json.dumps(question["toolCall"]["content"])
    assert "may change something at `api.example.com`" in text
    assert "POST https://api.example.com/v1" in text
    assert "2 bytes" in text
    (result,) = [
        message["content"] for message in messages(model_server) if message["role"] == "tool"
    ]
    assert "refused" in result


@pytest.mark.usefixtures("enable_tool")
async def test_plan_mode_refuses_it_and_a_secret_is_sent_nowhere(
    opened: OpenSession, model_server: ModelServer
) -> None:
    key = "a-key-that-is-one-21c4"
    leak = Call("http_request", {"url": "https://api.example.com/v1", "headers": {"X-Key": key}})
    model_server.add(answer(POST, leak), answer("No."))
    editor = Editor(permission="allow_once")
    running, session = await opened(
        editor=editor, environ={"ACP_AGENT_MODE": "plan", "OPENAI_API_KEY": key}
    )
    await running.prompt(session, "try it")
    assert editor.asked == []
    refused, secret = [
        message["content"] for message in messages(model_server) if message["role"] == "tool"
    ]
    assert "plan mode" in refused
    assert "a header contains a credential" in secret
