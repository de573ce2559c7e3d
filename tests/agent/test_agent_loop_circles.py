"""A model that goes round in circles is told, its user asked, and its turn ended."""

from __future__ import annotations

import itertools
from pathlib import Path

from acp_agent.agent.context import Context
from acp_agent.agent.turn import GO_ON, STOP, STOPPED
from acp_agent.events import AgentText, LoopNoticed, NoticeShown
from acp_agent.tools.base import Answer
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import Desk, open_desk

READ = Call("read", {"path": "a"})


def circles(desk: Desk, server: ModelServer) -> None:
    """The model makes the same call in every answer."""
    (desk.folder / "a").write_text("text of a\n")
    server.otherwise = answer(READ)


def spoken(desk: Desk) -> str:
    return "".join(event.text for event in desk.editor.of(AgentText))


async def test_the_model_reads_behind_the_third_result_that_it_goes_round_in_circles(
    desk: Desk, model_server: ModelServer
) -> None:
    circles(desk, model_server)
    model_server.add(answer(READ), answer(READ), answer(READ), answer("I see."))
    assert await desk.say("Look") == "end_turn"
    first, second, third = desk.results()
    assert "text of a" in first
    assert "same call" not in first + second
    assert "You made this same call 3 times" in third
    assert "The model was informed" in desk.editor.of(NoticeShown)[0].title


async def test_every_request_of_a_loop_begins_with_the_previous_one(
    desk: Desk, model_server: ModelServer
) -> None:
    circles(desk, model_server)
    desk.editor.answer = Answer(text=GO_ON)
    await desk.say("Look")
    requests = [request.json["messages"] for request in model_server.requests]
    assert all(later[: len(earlier)] == earlier for earlier, later in itertools.pairwise(requests))


async def test_after_a_continue_the_turn_ends_at_the_eighth_call_without_a_question(
    desk: Desk, model_server: ModelServer
) -> None:
    circles(desk, model_server)
    desk.editor.answer = Answer(text=GO_ON)
    assert await desk.say("Look") == "max_turn_requests"
    assert len(model_server.requests) == 8
    assert len(desk.editor.questions) == 1
    assert [event.step for event in desk.editor.of(LoopNoticed)] == ["told", "asked", "stopped"]
    assert "made the same call of read 8 times" in spoken(desk)


async def test_a_user_who_says_stop_ends_the_turn(desk: Desk, model_server: ModelServer) -> None:
    circles(desk, model_server)
    desk.editor.answer = Answer(text=STOP)
    assert await desk.say("Look") == "end_turn"
    assert len(model_server.requests) == 5
    assert STOPPED in spoken(desk)


async def test_another_answer_of_the_user_reaches_the_model_with_the_result(
    desk: Desk, model_server: ModelServer
) -> None:
    circles(desk, model_server)
    desk.editor.answer = Answer(text="try b")
    model_server.add(*[answer(READ)] * 5, answer("I try b."))
    assert await desk.say("Look") == "end_turn"
    assert "and says: try b]" in desk.results()[-1]


async def test_without_forms_the_question_is_text_and_the_next_prompt_is_its_answer(
    desk: Desk, model_server: ModelServer
) -> None:
    circles(desk, model_server)
    desk.editor.answer = None
    assert await desk.say("Look") == "end_turn"
    assert "Continue?" in spoken(desk)
    assert len(model_server.requests) == 5
    model_server.add(answer("As you wish."))
    assert await desk.say("No, look at b") == "end_turn"
    assert desk.words()[-1].endswith("No, look at b")


async def test_the_numbers_are_settings(tmp_path: Path, model_server: ModelServer) -> None:
    config = "[limits]\nloop_warn_after = 0\nloop_ask_after = 0\nloop_stop_after = 2\n"
    async with open_desk(tmp_path, model_server, config=config) as desk:
        circles(desk, model_server)
        assert await desk.say("Look") == "max_turn_requests"
        assert len(model_server.requests) == 2


async def test_the_context_after_a_restart_has_the_notes_where_they_were(
    desk: Desk, model_server: ModelServer
) -> None:
    circles(desk, model_server)
    desk.editor.answer = Answer(text=STOP)
    await desk.say("Look")
    again = Context()
    again.feed(await desk.journal())
    assert list(again.messages) == list(desk.session.core.context.messages)
    assert "You made this same call" in str(again.messages)
