"""Calls that cannot work: the model is told, and the turn goes on."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from acp_agent.errors import ModelError
from acp_agent.events import (
    AgentText,
    ModelAnswered,
    NoticeShown,
    ToolCalled,
    ToolEnded,
    ToolStarted,
    TurnEnded,
)
from acp_agent.models.base import AnswerText
from tests.support.model_server import Call, ModelServer, Status, answer
from tests.support.open_session import SECRET, Desk, open_desk


class BrokenBuffers:
    """An editor's files that break in a way nobody foresaw."""

    can_read = True
    can_write = False

    async def read_text(self, path: Path, *, lines: int | None = None) -> str:
        if path.name == "broken":
            raise KeyError("a fault of the program's")
        return path.read_text()

    async def write_text(self, path: Path, text: str) -> None:
        raise AssertionError("not offered")


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (Call("fly", {"to": "the moon"}), "there is no tool 'fly'"),
        (Call("read", {"shelf": "a"}), "path is required"),
        (Call("read", '{"path": '), "not valid JSON"),
        (Call("read", "[1]"), "must be a JSON object"),
        (Call("read", {"path": "missing"}), "missing"),
        (Call("read", {"path": "../outside"}), "outside"),
    ],
)
async def test_an_invalid_call_is_reported_to_the_model_and_the_turn_continues(
    desk: Desk, model_server: ModelServer, call: Call, told: str
) -> None:
    model_server.add(answer(call), answer("I see."))
    assert await desk.say("Go") == "end_turn"
    (ended,) = desk.editor.of(ToolEnded)
    assert ended.failed
    assert told in ended.result
    assert desk.results() == [f"Error: {ended.result}"]
    assert desk.editor.of(AgentText)[-1].text == "I see."


async def test_a_call_of_no_known_tool_is_still_shown_by_its_name(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer(Call("fly", {"to": "the moon"})), answer("I see."))
    await desk.say("Go")
    (called,) = desk.editor.of(ToolCalled)
    assert (called.title, called.kind) == ("fly", "other")
    assert desk.editor.of(ToolStarted) == []


async def test_a_tool_that_breaks_fails_its_call_only_and_the_log_has_the_details(
    desk: Desk, model_server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    (desk.folder / "broken").write_text("x")
    (desk.folder / "sound").write_text("all well\n")
    desk.editor.files = BrokenBuffers()
    calls = [Call("read", {"path": name}) for name in ("broken", "sound")]
    model_server.add(answer(*calls), answer("I see."))
    with caplog.at_level(logging.ERROR):
        assert await desk.say("Go") == "end_turn"
    broken, sound = desk.results()
    called = desk.editor.of(ToolCalled)[0].call
    assert f"the log has the details under {called}" in broken
    assert "KeyError" not in broken
    assert "all well" in sound
    assert any(called in record.getMessage() and record.exc_info for record in caplog.records)


async def test_a_lone_surrogate_fails_its_call_and_is_shown_as_stored(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer(Call("read", '{"path": "\\ud83d"}')), answer("I see."))
    assert await desk.say("Go") == "end_turn"
    assert desk.editor.of(ToolEnded)[0].failed
    assert desk.editor.shown == (await desk.journal())[-len(desk.editor.shown) :]


async def test_a_provider_that_fails_ends_the_turn_with_an_error_and_the_session_continues(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(Status(code=400, message="no such parameter"), answer("Better."))
    with pytest.raises(ModelError) as caught:
        await desk.say("Go")
    assert caught.value.status == 400
    assert desk.editor.of(TurnEnded)[-1].error == str(caught.value)
    assert desk.editor.of(TurnEnded)[-1].stop_reason is None
    assert await desk.say("Again") == "end_turn"
    assert len(desk.words()) == 2


OTHER_SECRET = "a-token-of-another-service-42"


@pytest.mark.parametrize("secret", [SECRET, OTHER_SECRET])
async def test_a_secret_in_a_providers_error_is_neither_shown_nor_stored(
    tmp_path: Path, model_server: ModelServer, secret: str
) -> None:
    environ = {"TRACKER_TOKEN": OTHER_SECRET}
    async with open_desk(tmp_path, model_server, environ=environ) as desk:
        model_server.add(
            Status(code=429, message=f"{secret} is busy", headers={"Retry-After": "0"}),
            Status(code=400, message=f"the key {secret} has no such right"),
        )
        with pytest.raises(ModelError) as caught:
            await desk.say("Go")
        assert secret not in str(caught.value)
        assert secret not in repr(desk.editor.shown)
        assert secret not in repr(await desk.journal())
        assert "is busy" in desk.editor.of(NoticeShown)[0].title


async def test_an_attempt_that_is_made_again_is_announced_and_leaves_nothing_for_the_model(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(
        Status(code=529, message="overloaded", headers={"Retry-After": "0"}),
        answer("Here."),
    )
    assert await desk.say("Go") == "end_turn"
    (notice,) = desk.editor.of(NoticeShown)
    assert "trying again" in notice.title
    assert "attempt 2 of 5" in notice.title
    first, second = desk.editor.of(ModelAnswered)
    assert not first.complete
    assert second.complete
    assert desk.session.core.context.messages[-1].parts == (AnswerText("Here."),)


async def test_a_turn_ends_at_the_limit_of_model_requests(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config="limits.max_model_requests = 3\n") as desk:
        (desk.folder / "a").write_text("x\n")
        model_server.otherwise = answer(Call("read", {"path": "a"}))
        assert await desk.say("Go on and on") == "max_turn_requests"
        assert len(model_server.requests) == 3
        assert len(desk.editor.of(ToolEnded)) == 3  # the last answer's call ran, too


@pytest.mark.parametrize(
    ("word", "reason"), [("length", "max_tokens"), ("content_filter", "refusal")]
)
async def test_a_turn_says_why_the_model_stopped(
    desk: Desk, model_server: ModelServer, word: str, reason: str
) -> None:
    model_server.otherwise = answer("Half a", stop=word)
    assert await desk.say("Go") == reason
    await desk.say("Again")
    # A refused turn is taken out of what the model is sent; a cut one stays.
    assert ("Go" in json.dumps(desk.sent())) == (reason == "max_tokens")
