"""What MCP servers ask the user: passed on to the editor, but never for a secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acp_agent.extensions.mcp.elicitation import asks_for_a_secret
from tests.extensions.mcp_session import OpenWithServers, call, notices, program, results
from tests.support.editor import EVERYTHING, Editor
from tests.support.model_server import ModelServer, answer
from tests.support.waiting import until


@pytest.mark.covers("P12")
async def test_a_form_reaches_the_user_and_their_answer_the_server(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    editor = Editor(offers=EVERYTHING, permission="allow_once")
    editor.answer = lambda _: {"action": "accept", "content": {"value": "Ada"}}
    model_server.add(answer(call("name")), answer("Done."))
    running, session = await with_servers(program("elicits"), editor=editor)
    await running.prompt(session, "go")
    (asked,) = editor.questions
    assert asked["message"] == "The MCP server 'memo' asks: Please tell me"
    assert asked["requestedSchema"]["properties"]["value"]["title"] == "Your name"
    assert results(model_server) == ['form: {"action": "accept", "content": {"value": "Ada"}}']


async def test_an_omitted_field_has_the_servers_default(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    editor = Editor(offers=EVERYTHING, permission="allow_once")
    editor.answer = lambda _: {"action": "accept", "content": {"value": "Ada"}}
    model_server.add(answer(call("age")), answer("Done."))
    running, session = await with_servers(program("elicits"), editor=editor)
    await running.prompt(session, "go")
    (result,) = results(model_server)
    assert json.loads(result.removeprefix("form: "))["content"] == {"age": 30, "value": "Ada"}


@pytest.mark.covers("P12", "I6")
async def test_a_server_gets_a_refusal_if_the_client_has_no_forms(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    editor = Editor(offers=EVERYTHING - {"elicitation"}, permission="allow_once")
    model_server.add(answer(call("name"), call("visit")), answer("Done."))
    running, session = await with_servers(program("elicits"), editor=editor)
    await running.prompt(session, "go")
    assert results(model_server) == ['form: {"action": "decline"}', "page: decline"]


@pytest.mark.covers("P12")
async def test_no_form_requests_a_password(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    editor = Editor(offers=EVERYTHING, permission="allow_once")
    editor.answer = lambda _: {"action": "accept", "content": {"value": "hunter2"}}
    model_server.add(answer(call("password")), answer("Done."))
    running, session = await with_servers(program("elicits"), editor=editor)
    await running.prompt(session, "go")
    assert editor.questions == []
    assert results(model_server) == ['form: {"action": "decline"}']
    (notice,) = notices(running, session)
    assert "it asked for what looks like a secret in a form" in notice


@pytest.mark.covers("P12")
async def test_a_page_is_opened_and_its_completion_is_reported(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    editor = Editor(offers=EVERYTHING, permission="allow_once")
    editor.answer = lambda _: {"action": "accept"}
    model_server.add(answer(call("visit")), answer("Done."))
    running, session = await with_servers(program("elicits"), editor=editor)
    await running.prompt(session, "go")
    (asked,) = editor.questions
    assert asked["mode"] == "url"
    assert asked["url"] == "https://example.org/login"
    assert results(model_server) == ["page: accept"]
    done = await running.expect(lambda message: message.get("method") == "elicitation/complete")
    assert done["params"]["elicitationId"] == asked["elicitationId"]


@pytest.mark.parametrize(
    ("action", "result"), [("accept", "unlocked"), ("decline", "unlock it first")]
)
async def test_a_call_that_requires_a_page_is_repeated_after_the_users_visit(
    with_servers: OpenWithServers, model_server: ModelServer, action: str, result: str
) -> None:
    editor = Editor(offers=EVERYTHING, permission="allow_once")
    editor.answer = lambda _: {"action": action}
    model_server.add(answer(call("locked")), answer("Done."))
    running, session = await with_servers(program("elicits"), editor=editor)
    await running.prompt(session, "go")
    (asked,) = editor.questions
    assert asked["url"] == "https://example.org/unlock"
    assert result in results(model_server)[0]


async def test_a_form_that_no_editor_can_show_is_declined(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    model_server.add(answer(call("odd")), answer("Done."))
    running, session = await with_servers(program("elicits"))
    await running.prompt(session, "go")
    assert "decline" in results(model_server)[0]


async def test_a_server_without_a_running_request_may_not_question_the_user(
    with_servers: OpenWithServers, model_server: ModelServer, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    running, _ = await with_servers(
        program("asks-out-of-the-blue", env={"MCP_RECORD": str(record)})
    )
    await until(lambda: record.is_file() and "answered" in record.read_text())
    assert "answered decline" in record.read_text()
    assert running.editor.questions == []


@pytest.mark.parametrize(
    ("name", "field", "secret"),
    [
        ("value", {"type": "string", "title": "Password"}, True),
        ("userPassword", {"type": "string"}, True),
        ("api_key", {"type": "string"}, True),
        ("value", {"type": "string", "description": "Your access token"}, True),
        ("value", {"type": "string", "format": "password"}, True),
        ("value", {"type": "string", "title": "Seed phrase"}, True),
        ("value", {"type": "string", "title": "2FA code"}, True),
        ("value", {"type": "string", "description": "请输入你的密钥"}, True),
        ("pin", {"type": "string"}, True),
        ("value", {"type": "string", "title": "您的密码"}, True),
        ("value", {"description": "Do not share it: your PIN. Your password"}, True),
        ("value", {"description": "An integer (do not give us your phone number, pin)"}, False),
        ("spinner", {"type": "string"}, False),
        ("name", {"type": "string", "title": "Your name"}, False),
        ("branch", {"type": "string", "description": "Passes are counted here"}, False),
    ],
)
def test_fields_for_secrets_are_recognised_by_their_names(
    name: str, field: dict[str, str], secret: bool
) -> None:
    schema = {"type": "object", "properties": {name: field}}
    assert asks_for_a_secret(json.loads(json.dumps(schema))) is secret
