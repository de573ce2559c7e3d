"""Questions that the model asks the user."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from jsonrpcserver import Error

from tests.server.server_session import OpenSession, calls_of, messages
from tests.support.editor import Editor
from tests.support.model_server import Call, ModelServer, answer

ASK = Call(
    "ask_user",
    {
        "question": "Which colour?",
        "options": [{"label": "Red", "description": "Loud"}, {"label": "Blue"}],
    },
)
FORMS: Any = frozenset({"elicitation"})


@pytest.mark.covers("P12")
async def test_a_question_is_a_form_where_the_client_shows_forms(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(answer(ASK), answer("Blue it is."))
    editor = Editor(offers=FORMS)
    editor.answer = lambda request: {
        "action": "accept",
        "content": {next(iter(request["requestedSchema"]["properties"])): "Blue"},
    }
    running, session = await opened(editor=editor)
    assert (await running.prompt(session, "paint"))["stopReason"] == "end_turn"
    (asked,) = editor.questions
    assert asked["mode"] == "form"
    assert asked["message"] == "Which colour?"
    assert asked["sessionId"] == session
    (call,) = calls_of(running.updates(session)).values()
    assert asked["toolCallId"] == call[0]["toolCallId"]
    (field,) = asked["requestedSchema"]["properties"].values()
    assert [option["const"] for option in field["oneOf"]] == ["Red", "Blue"]
    assert "Blue" in str(messages(model_server)[-1]["content"])
    assert running.text(session) == "Blue it is."


@pytest.mark.covers("P12")
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_question_that_the_user_does_not_answer_is_told_to_the_model(
    opened: OpenSession, model_server: ModelServer, action: str
) -> None:
    model_server.add(answer(ASK), answer("I choose."))
    editor = Editor(offers=FORMS)
    editor.answer = lambda _: {"action": action}
    running, session = await opened(editor=editor)
    assert (await running.prompt(session, "paint"))["stopReason"] == "end_turn"
    assert len(editor.questions) == 1
    assert "does not want to answer" in str(messages(model_server)[-1]["content"])


@pytest.mark.covers("P12", "I6")
async def test_without_forms_the_question_is_asked_in_text_and_the_turn_ends(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(answer(ASK), answer("Blue it is."))
    editor = Editor()
    running, session = await opened(editor=editor)
    assert (await running.prompt(session, "paint"))["stopReason"] == "end_turn"
    assert editor.questions == []
    assert len(model_server.requests) == 1
    for word in ("Which colour?", "Red", "Blue"):
        assert word in running.text(session)
    await running.prompt(session, "Blue")
    assert [m["role"] for m in messages(model_server)] == ["user", "assistant", "tool", "user"]
    assert "Blue" in json.dumps(messages(model_server)[-1])


@pytest.mark.covers("P12", "T7")
async def test_a_client_whose_form_fails_gets_the_question_in_text(
    opened: OpenSession, model_server: ModelServer
) -> None:
    async def fails(**_: Any) -> Any:
        return Error(-32601, "Method not found")

    editor = Editor(offers=FORMS)
    editor._methods["elicitation/create"] = fails
    model_server.add(answer(ASK))
    running, session = await opened(editor=editor)
    assert (await running.prompt(session, "paint"))["stopReason"] == "end_turn"
    assert "Which colour?" in running.text(session)


@pytest.mark.covers("P12", "P7")
async def test_a_cancel_withdraws_the_form(opened: OpenSession, model_server: ModelServer) -> None:
    async def never(**_: Any) -> Any:
        await asyncio.Event().wait()

    editor = Editor(offers=FORMS)
    editor._methods["elicitation/create"] = never
    model_server.add(answer(ASK))
    running, session = await opened(editor=editor)
    prompt = running.post_prompt(session, "paint")
    asked = await running.expect(lambda m: m.get("method") == "elicitation/create")
    running.cancel(session)
    assert (await running.result(prompt))["stopReason"] == "cancelled"
    withdrawn = await running.expect(lambda m: m.get("method") == "$/cancel_request")
    assert withdrawn["params"] == {"requestId": asked["id"]}
