"""Agents that work side by side: files, limits, and what is told of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.agent.turn import STOP
from acp_agent.events import NoticeShown, ToolEnded
from acp_agent.tools.base import Answer
from tests.session.agent_and_skill import TASK, write_agent
from tests.session.children_at_work import works
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.open_session import Desk, open_desk


async def test_the_second_of_two_agents_that_change_one_file_learns_that_it_has_changed(
    desk: Desk, model_server: ModelServer
) -> None:
    write_agent(desk.folder)
    (desk.folder / "a.txt").write_text("one\n")
    both_read = Stall()
    read = answer(Call("read", {"path": "a.txt"}))
    write = answer("I write.", both_read, Call("write", {"path": "a.txt", "content": "mine\n"}))
    model_server.otherwise = works(read, write, parent=answer(TASK, TASK))
    turn = await desk.begin("Go, parent")
    await model_server.arrived(5)
    both_read.release()
    assert await turn.result() == "end_turn"
    results = sorted(event.result for event in desk.editor.of(ToolEnded))
    assert "read it again" in results[0]
    assert "replaced" in results[1]


async def test_an_agent_changes_no_file_that_only_its_parent_has_read(
    desk: Desk, model_server: ModelServer
) -> None:
    write_agent(desk.folder)
    (desk.folder / "a.txt").write_text("one\n")
    write = Call("write", {"path": "a.txt", "content": "mine\n"})
    model_server.add(answer(Call("read", {"path": "a.txt"})), answer(TASK), answer(write))
    model_server.add(answer("I may not."), answer("Done."))
    await desk.say("Go")
    assert "has not been read yet" in str(model_server.requests[3].json["messages"][-1])
    assert (desk.folder / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("calls", [1, 8])
async def test_the_maximum_of_agents_at_once_does_not_deadlock(
    tmp_path: Path, model_server: ModelServer, calls: int
) -> None:
    limits = (
        f"max_concurrent_calls = {calls}\nmax_calls_all_sessions = 1\n"
        "max_turns_all_sessions = 1\nloop_warn_after = 0\n"
    )
    async with open_desk(tmp_path, model_server, config=f"[limits]\n{limits}") as desk:
        write_agent(desk.folder)
        echo = answer(Call("shell", {"command": "echo hi"}))
        model_server.otherwise = works(echo, parent=answer(*[TASK] * 8))
        assert await desk.say("Go, parent") == "end_turn"
        assert len(desk.editor.of(ToolEnded)) == 8
        assert all("hi" in event.result for event in desk.editor.of(ToolEnded))
        assert len(desk.editor.of(NoticeShown)) <= 1, "that calls wait is told once"


async def test_the_model_learns_which_commands_its_agent_left_running(
    desk: Desk, model_server: ModelServer
) -> None:
    write_agent(desk.folder)
    left = Call("shell", {"command": "sleep 300", "background": True})
    model_server.add(answer(TASK), answer(left), answer("It runs."), answer("Done."))
    await desk.say("Go")
    (ended,) = desk.editor.of(ToolEnded)
    assert ended.result.startswith("It runs.")
    (name,) = [one.name for one in desk.session.resources.background or ()]
    assert f"[It left the background command {name} running: `sleep 300`]" in ended.result


async def test_the_text_of_an_agent_that_a_limit_ended_is_not_lost(
    desk: Desk, model_server: ModelServer
) -> None:
    write_agent(desk.folder, "max-requests: 2")
    look = Call("list", {"path": "."})
    model_server.add(answer(TASK), answer("The port is 4711.", look), answer(look), answer("Done."))
    await desk.say("Go")
    (ended,) = desk.editor.of(ToolEnded)
    assert ended.result.startswith("The port is 4711.")
    assert "stopped before it was done" in ended.result


async def test_an_agent_that_repeats_itself_is_stopped_and_the_model_learns_why(
    desk: Desk, model_server: ModelServer
) -> None:
    write_agent(desk.folder)
    look = Call("list", {"path": "."})
    model_server.add(answer(TASK), answer("I look.", look), *[answer(look)] * 4, answer("Done."))
    assert await desk.say("Go") == "end_turn"
    assert len(model_server.requests) == 7  # nobody could answer a question in words
    (ended,) = desk.editor.of(ToolEnded)
    assert ended.result.startswith("I look.")
    assert "stopped before it was done" in ended.result


async def test_an_agent_that_the_user_stops_in_a_loop_did_not_finish(
    desk: Desk, model_server: ModelServer
) -> None:
    write_agent(desk.folder)
    look = Call("list", {"path": "."})
    model_server.add(answer(TASK), answer("I look.", look), *[answer(look)] * 4, answer("Done."))
    desk.editor.answer = Answer(text=STOP)
    assert await desk.say("Go") == "end_turn"
    (ended,) = desk.editor.of(ToolEnded)
    assert "stopped before it was done" in ended.result
