"""Slash commands: what the agent answers by itself, and what the model is asked to do."""

from __future__ import annotations

import json

import pytest

from acp_agent.config.localization import translator_for
from acp_agent.events import AgentText, ConfigChanged, TitleChanged, TurnEnded, UserMessage
from acp_agent.session.commands.command import COMMANDS, commands_in
from tests.support.model_server import ModelServer, Stall, answer
from tests.support.open_session import Desk


def told(desk: Desk) -> str:
    return desk.editor.of(AgentText)[-1].text


async def test_help_names_every_command(desk: Desk, model_server: ModelServer) -> None:
    assert await desk.say("/help") == "end_turn"
    assert all(f"`/{command.name}" in told(desk) for command in COMMANDS)
    assert model_server.requests == []


async def test_status_tells_the_model_the_mode_and_the_cost(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer("Yes."))
    await desk.say("Hello")
    await desk.say("/status")
    assert "model openai/gpt-5" in told(desk)
    assert "mode ask" in told(desk)
    assert "Cost so far: $0.00006" in told(desk)  # 10 tokens at 1 $/M, and 5 at 10 $/M
    assert desk.session.id in told(desk)


async def test_mode_shows_the_modes_and_switches_them(desk: Desk) -> None:
    await desk.say("/mode")
    assert "`ask` (current)" in told(desk)
    await desk.say("/mode plan")
    assert "`plan` (current)" in told(desk)
    assert desk.session.core.settings.mode == "plan"
    assert desk.editor.of(ConfigChanged)[-1].value == "plan"


async def test_model_switches_the_model_for_the_next_prompt(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer("Yes."))
    await desk.say("/model openai/blind")
    await desk.say("Hello")
    assert model_server.requests[0].json["model"] == "blind"


@pytest.mark.parametrize("text", ["/mode yolo", "/model openai/unheard-of"])
async def test_a_value_that_does_not_exist_is_answered_with_those_that_do(
    desk: Desk, text: str
) -> None:
    assert await desk.say(text) == "end_turn"
    assert "it can be" in told(desk)
    assert (desk.session.core.settings.mode, desk.session.core.settings.model.ref) == (
        "ask",
        "openai/gpt-5",
    )


async def test_init_asks_the_model_and_adds_the_users_words(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer("Written."))
    await desk.say("/init mind the tests")
    (words,) = desk.words()
    assert words.startswith("/init mind the tests\n")
    assert "Write an AGENTS.md" in words
    assert "The user adds: mind the tests" in words


@pytest.mark.parametrize("text", ["/unheard-of thing", "/etc/hosts is odd", "/", "/ help"])
async def test_an_unknown_command_is_sent_to_the_model(
    desk: Desk, model_server: ModelServer, text: str
) -> None:
    model_server.add(answer("I see."))
    await desk.say(text)
    assert desk.words()[0].startswith(text)


@pytest.mark.parametrize("text", ["/help", "  /help  ", "/help\nplease", "/help\tplease"])
async def test_a_command_is_known_by_its_first_word(desk: Desk, text: str) -> None:
    await desk.say(text)
    assert "List the commands" in told(desk)


async def test_a_command_may_come_after_what_an_editor_adds(desk: Desk) -> None:
    await desk.say("The open file is a.py", "/status")
    assert "- Cost so far" in told(desk)


async def test_answers_of_the_agent_itself_are_not_sent_to_the_model(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer("Yes."))
    await desk.say("/help")
    await desk.say("Hello")
    assert len(desk.sent()) == 1
    assert "List the commands" not in json.dumps(desk.sent())
    assert [event.title for event in desk.editor.of(TitleChanged)] == ["Hello"]


async def test_a_command_is_answered_at_once_while_a_turn_runs_and_does_not_disturb_it(
    desk: Desk, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("Half", stall, " and half"), answer("Yes."))
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText)
    assert await desk.begin("/mode full") is turn
    assert desk.session.core.settings.mode == "full"
    assert "`full` (current)" in told(desk)
    assert desk.editor.of(UserMessage)[-1].steering
    stall.release()
    assert await turn.result() == "end_turn"
    assert len(model_server.requests) == 1
    await desk.say("And?")
    assert desk.sent()[1]["content"] == "Half and half"
    assert "full" not in json.dumps(desk.sent()[:2])


async def test_compact_during_a_turn_runs_before_its_next_request_with_its_instructions(
    desk: Desk, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(
        answer("Earlier."), answer("Half", stall, " and half"), answer("A summary."), answer("On.")
    )
    await desk.say("Remember port 4711. " * 500)
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText, 2)
    await desk.begin("/compact the ports")
    await desk.begin("Go on")
    stall.release()
    assert await turn.result() == "end_turn"
    assert "the ports" in json.dumps(model_server.requests[2].json)
    assert "A summary." in json.dumps(model_server.requests[3].json["messages"])


def test_commands_in_another_language_have_hints_where_they_have_them_in_english() -> None:
    for english, chinese in zip(COMMANDS, commands_in(translator_for("zh")), strict=True):
        assert (chinese.name, chinese.hint is None) == (english.name, english.hint is None)


async def test_a_session_with_a_command_in_its_turn_is_still_a_conversation(
    desk: Desk, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("Half", stall, " and half"))
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText)
    await desk.begin("/help")
    stall.release()
    await turn.result()
    assert [record.turns for record in (await desk.manager.list(None, None)).sessions] == [1]


async def test_the_answer_to_a_command_comes_before_the_end_of_its_turn(desk: Desk) -> None:
    await desk.say("/help")
    assert isinstance(desk.editor.shown[-1], TurnEnded)
    assert desk.editor.shown == (await desk.journal())[3:]
