"""Questions that the model asks the user."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from jsonrpcserver import Error

from tests.server.server_session import OpenSession, calls_by_id, messages
from tests.support.editor import Editor, constant
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
async def test_a_question_is_a_form_where_the_client_asks_outside_turns(
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
    (form,) = editor.questions
    assert form["mode"] == "form"
    assert form["message"] == "Which colour?"
    assert form["sessionId"] == session
    (call,) = calls_by_id(running.updates(session)).values()
    assert form["toolCallId"] == call[0]["toolCallId"]
    choice, free_text = form["requestedSchema"]["properties"].values()
    assert [option["const"] for option in choice["oneOf"]] == ["Red", "Blue"]
    assert free_text["type"] == "string"
    assert "required" not in form["requestedSchema"]
    assert "Blue" in str(messages(model_server)[-1]["content"])
    assert running.text(session) == "Blue it is."


@pytest.mark.covers("P12")
async def test_the_model_learns_that_the_user_did_not_answer_a_question(
    opened: OpenSession, model_server: ModelServer
) -> None:
    editor = Editor(offers=FORMS)
    running, session = await opened(editor=editor)
    for result in ({"action": "decline"}, {"action": "cancel"}):
        model_server.add(answer(ASK), answer("I choose."))
        editor.answer = constant(result)
        assert (await running.prompt(session, "paint"))["stopReason"] == "end_turn"
        assert "does not want to answer" in str(messages(model_server)[-1]["content"])
    assert len(editor.questions) == 2


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
    question = await running.expect(lambda m: m.get("method") == "elicitation/create")
    running.cancel(session)
    assert (await running.result(prompt))["stopReason"] == "cancelled"
    withdrawn = await running.expect(lambda m: m.get("method") == "$/cancel_request")
    assert withdrawn["params"] == {"requestId": question["id"]}


FORM = Call(
    "ask_user",
    {
        "question": "Which databases?",
        "options": [{"label": "SQLite"}, {"label": "PostgreSQL"}],
        "several": True,
        "preset": "SQLite",
        "further": [
            {"question": "How many connections?", "kind": "integer", "preset": "4"},
            {"question": "With a cache?", "kind": "yes_no"},
            {"question": "Anything else?", "optional": True},
        ],
    },
)


@pytest.mark.covers("P12")
async def test_questions_that_belong_together_are_one_form_with_fields_of_their_kinds(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(answer(FORM), answer("Thanks."))
    editor = Editor(offers=FORMS)
    editor.answer = lambda _: {
        "action": "accept",
        "content": {"answer": ["SQLite", "PostgreSQL"], "answer_2": 8, "answer_3": False},
    }
    running, session = await opened(editor=editor)
    await running.prompt(session, "plan")
    (form,) = editor.questions
    schema = form["requestedSchema"]
    fields = schema["properties"]
    assert {name: field["type"] for name, field in fields.items()} == {
        "answer": "array",
        "answer_other": "string",
        "answer_2": "integer",
        "answer_3": "boolean",
        "answer_4": "string",
    }
    assert fields["answer"]["default"] == ["SQLite"]
    assert fields["answer_2"] == {
        "type": "integer",
        "title": "How many connections?",
        "default": 4,
    }
    assert schema["required"] == ["answer_2", "answer_3"]
    text = str(messages(model_server)[-1]["content"])
    assert "- Which databases?: SQLite, PostgreSQL" in text
    assert "- How many connections?: 8" in text
    assert "- With a cache?: no" in text
    assert "- Anything else?: (no answer)" in text


@pytest.mark.covers("P12")
async def test_the_user_may_answer_in_other_words_than_the_options(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(answer(ASK), answer("Green it is."))
    editor = Editor(offers=FORMS)
    editor.answer = lambda _: {"action": "accept", "content": {"answer_other": "Green, please"}}
    running, session = await opened(editor=editor)
    await running.prompt(session, "paint")
    assert "The user answered: Green, please" in str(messages(model_server)[-1]["content"])


@pytest.mark.covers("P12")
async def test_an_answer_that_does_not_fit_the_form_counts_as_declined_and_is_logged(
    opened: OpenSession, model_server: ModelServer
) -> None:
    editor = Editor(offers=FORMS)
    editor.well_behaved = False
    running, session = await opened(editor=editor)
    contents: list[Any] = [
        {"answer": "Purple"},
        {"answer": 7},
        {"answer_other": ["Blue"]},
        {"answer": {"deep": 1}},
        [1],
    ]
    for content in contents:
        model_server.add(answer(ASK), answer("I choose."))
        editor.answer = constant({"action": "accept", "content": content})
        assert (await running.prompt(session, "paint"))["stopReason"] == "end_turn"
        text = str(messages(model_server)[-1]["content"])
        assert "does not want to answer" in text
        assert "Purple" not in text
    await running.close_stdin()
    await running.wait()
    assert running.stderr.count(b"counts as declined") == len(contents)
    assert b"Purple" not in running.stderr


@pytest.mark.covers("P12")
async def test_an_unknown_action_counts_as_no_answer(
    opened: OpenSession, model_server: ModelServer
) -> None:
    editor = Editor(offers=FORMS)
    editor.well_behaved = False
    running, session = await opened(editor=editor)
    results: list[Any] = [{"action": "_later"}, {"action": "snooze"}, {}, None]
    for result in results:
        model_server.add(answer(ASK), answer("I choose."))
        editor.answer = constant(result)
        assert (await running.prompt(session, "paint"))["stopReason"] == "end_turn"
        assert "does not want to answer" in str(messages(model_server)[-1]["content"])


@pytest.mark.covers("P12")
async def test_a_question_for_a_secret_is_refused_with_an_alternative_for_the_model(
    opened: OpenSession, model_server: ModelServer
) -> None:
    ask = Call("ask_user", {"question": "Which region?", "further": [{"question": "API key?"}]})
    model_server.add(answer(ask), answer("Put it into .env yourself."))
    editor = Editor(offers=FORMS)
    running, session = await opened(editor=editor)
    assert (await running.prompt(session, "deploy"))["stopReason"] == "end_turn"
    assert editor.questions == []
    text = str(messages(model_server)[-1]["content"])
    assert "environment variable" in text
    assert "not asked" in text
