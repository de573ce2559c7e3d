"""Prompts and turns of one session: steering, folders that change, a replay in mid-turn."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from acp_agent.content import ImageBlock, TextBlock
from acp_agent.errors import InvalidInputError, StoreError
from acp_agent.events import (
    AgentText,
    NoticeShown,
    TitleChanged,
    TurnEnded,
    TurnStarted,
    UsageReported,
    UserMessage,
)
from acp_agent.extensions.mcp.config import ProgramServer
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.open_session import Desk, is_alive
from tests.support.waiting import until


async def test_a_message_during_an_answer_is_sent_with_the_next_request(
    desk: Desk, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("Half", stall, " and half"), answer("I heard."))
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText)
    assert await desk.begin("Use tabs") is turn
    stall.release()
    assert await turn.result() == "end_turn"
    assert len(model_server.requests) == 2
    assert desk.words()[-1].startswith("Use tabs")
    assert [event.steering for event in desk.editor.of(UserMessage)] == [False, True]


async def test_a_message_at_the_end_of_a_turn_is_answered_in_it_or_in_the_next(
    desk: Desk, model_server: ModelServer
) -> None:
    """The words come while the last event of the answer is still being written."""
    model_server.otherwise = answer("Yes.")
    for held_after in range(1, 4):
        desk.store.held = None
        turn = await desk.begin("Go")
        await model_server.arrived(len(model_server.requests) + 1)
        for _ in range(held_after * 3):
            await asyncio.sleep(0)
        desk.store.held = asyncio.Event()
        steering = asyncio.create_task(desk.begin("And this"))
        for _ in range(20):
            await asyncio.sleep(0)
        desk.store.held.set()
        other = await steering
        assert await turn.result() == await other.result() == "end_turn"
        assert not desk.session.core.context.awaits_answer
        assert desk.words()[-1].startswith("And this")


async def test_a_second_prompt_after_a_cancel_waits_for_the_end_and_begins_a_turn(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer("Half", Stall()), answer("Anew."))
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText)
    turn.cancel()
    other = await desk.begin("Something else")
    assert other is not turn
    assert await turn.result() == "cancelled"
    assert await other.result() == "end_turn"
    kinds = [event for event in desk.editor.shown if isinstance(event, TurnStarted | TurnEnded)]
    assert [type(event) for event in kinds] == [TurnStarted, TurnEnded] * 2


async def test_a_prompt_cancelled_before_it_began_is_recorded_and_runs_nothing(
    desk: Desk, model_server: ModelServer
) -> None:
    turn = (await desk.session.prompts.submit((TextBlock(text="Go"),), cancelled=lambda: True)).turn
    assert await turn.result() == "cancelled"
    assert model_server.requests == []
    assert desk.editor.of(UserMessage)[0].content == (TextBlock(text="Go"),)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ((), "empty"),
        ((TextBlock(text=" \n"),), "empty"),
        ((ImageBlock(data="AAAA", mime_type="image/png"),), "cannot see images"),
    ],
)
async def test_a_refused_prompt_leaves_no_trace(
    desk: Desk, content: tuple[TextBlock | ImageBlock, ...], told: str
) -> None:
    await desk.session.set_option("model", "openai/blind")
    before = await desk.journal()
    with pytest.raises(InvalidInputError, match=told):
        await desk.session.prompts.submit(content, cancelled=lambda: False)
    assert await desk.journal() == before


async def test_the_title_is_the_first_line_that_the_user_wrote_and_stays(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("Yes.")
    await desk.say("\n  Mend the lamp\nplease")
    await desk.say("Another thing")
    assert [event.title for event in desk.editor.of(TitleChanged)] == ["Mend the lamp"]
    assert desk.session.core.state.title == "Mend the lamp"


async def test_the_cost_adds_up_over_the_requests(desk: Desk, model_server: ModelServer) -> None:
    model_server.otherwise = answer("Yes.")
    for _ in range(3):
        await desk.say("Hello")
    costs = [event.cost for event in desk.editor.of(UsageReported)]
    assert costs == pytest.approx([0.00006, 0.00012, 0.00018])
    assert desk.editor.of(UsageReported)[0].size == 100_000


async def test_a_model_chosen_in_mid_turn_is_asked_from_the_next_request_on(
    desk: Desk, model_server: ModelServer
) -> None:
    (desk.folder / "a").write_text("x\n")
    stall = Stall()
    model_server.add(answer("I look", stall, Call("read", {"path": "a"})), answer("Done."))
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText)
    await desk.session.set_option("model", "openai/blind")
    stall.release()
    assert await turn.result() == "end_turn"
    assert [request.json["model"] for request in model_server.requests] == ["gpt-5", "blind"]
    assert [event.size for event in desk.editor.of(UsageReported)] == [100_000, 50_000]


# -- folders that change


async def test_a_turn_keeps_its_folders_when_the_session_is_opened_with_others(
    desk: Desk, model_server: ModelServer, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (desk.folder / "a").write_text("the first folder's\n")
    (other / "a").write_text("the other folder's\n")
    stall = Stall()
    read = Call("read", {"path": "a"})
    model_server.add(answer("I look", stall, read), answer("Done."), answer(read), answer("Done."))
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText)
    assert await desk.manager.open(desk.session.id, str(other), []) is desk.session
    stall.release()
    assert await turn.result() == "end_turn"
    assert "the first folder's" in desk.results()[0]
    await desk.say("Again")
    assert "the other folder's" in desk.results()[1]
    assert f"[The working folder is now {other}.]" in desk.words()[-1]


async def test_closing_ends_what_was_started_in_folders_that_the_session_has_left(
    desk: Desk, model_server: ModelServer, tmp_path: Path
) -> None:
    await desk.session.set_option("mode", "full")
    command = "setsid sleep 300 >/dev/null 2>&1 & echo $!"
    model_server.add(answer(Call("shell", {"command": command})), answer("Done."))
    await desk.say("Go")
    daemon = int(desk.results()[0].split()[0])
    os.kill(daemon, 0)  # it left its group, and so outlives its command
    await desk.manager.open(desk.session.id, str(tmp_path), [])
    await desk.session.close()
    await until(lambda: not is_alive(daemon))


async def test_a_folder_of_a_session_that_could_not_be_saved_is_not_used(
    desk: Desk, tmp_path: Path
) -> None:
    desk.store.full = True
    with pytest.raises(StoreError):
        await desk.manager.open(desk.session.id, str(tmp_path), [])
    assert desk.session.core.cwd == desk.folder


# -- the replay


async def test_a_replay_in_mid_turn_shows_what_was_before_it_and_then_the_turn_continues(
    desk: Desk, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("One", stall, " two"))
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText)
    seen: list[object] = []

    async def replay() -> None:
        seen.extend(await desk.session.core.history())
        shown = len(desk.editor.shown)
        stall.release()
        await model_server.requests[0].answered.wait()
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(desk.editor.shown) == shown

    await desk.session.core.journal.run_exclusively(replay)
    await turn.result()
    journal = await desk.journal()
    assert seen == journal[: len(seen)]
    assert [event.text for event in journal[len(seen) :] if isinstance(event, AgentText)] == [
        " two"
    ]


async def test_servers_that_cannot_be_connected_are_reported_and_not_saved(desk: Desk) -> None:
    before = await desk.journal()
    desk.session.opened([ProgramServer(name="search", command="/no/such/program")])
    notice = await desk.editor.until(NoticeShown)
    assert notice.title == "The MCP server 'search' could not be connected."
    assert notice.description == "there is no program /no/such/program."
    assert await desk.journal() == before
