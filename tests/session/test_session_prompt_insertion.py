"""When a prompt's words are part of the conversation, and what a turn says of itself at its end."""

from __future__ import annotations

import asyncio

import pytest

from acp_agent.content import TextBlock
from acp_agent.errors import ModelError, StoreError
from acp_agent.events import AgentText, PlanChanged, PlanRemoved, TurnEnded, Usage, UserMessage
from acp_agent.session.prompts import PromptResult
from tests.support.model_server import Call, ModelServer, Stall, Status, answer
from tests.support.open_session import Desk


async def say(desk: Desk, text: str) -> PromptResult:
    return await desk.session.prompts.submit((TextBlock(text=text),), cancelled=lambda: False)


async def test_a_message_counts_as_inserted_once_it_is_in_the_journal(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer("Yes."))
    desk.store.held = asyncio.Event()
    said = await say(desk, "Go")
    inserted = asyncio.create_task(said.turn.inserted())
    for _ in range(20):
        await asyncio.sleep(0)
    assert not inserted.done()
    desk.store.held.set()
    async with asyncio.timeout(60):
        await inserted
    (message,) = [event for event in await desk.journal() if isinstance(event, UserMessage)]
    assert message.message == said.message
    assert said.began
    assert await said.turn.result() == "end_turn"


async def test_a_full_disk_is_what_prevents_the_insertion(desk: Desk) -> None:
    desk.store.full = True
    said = await say(desk, "Go")
    with pytest.raises(StoreError, match="disk is full"):
        await said.turn.inserted()
    with pytest.raises(StoreError):
        await said.turn.result()


async def test_a_failure_after_the_insertion_is_the_turns(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(Status(code=400, message="no such thing"))
    said = await say(desk, "Go")
    await said.turn.inserted()
    with pytest.raises(ModelError):
        await said.turn.result()
    await said.turn.inserted()  # still so
    ended = desk.editor.of(TurnEnded)[0]
    assert ended.error_kind == "model"
    assert "no such thing" in ended.error
    assert ended.usage is None


async def test_a_message_stopped_at_once_is_still_inserted(desk: Desk) -> None:
    desk.store.held = asyncio.Event()
    said = await say(desk, "Go")
    await asyncio.sleep(0)
    said.turn.cancel()
    desk.store.held.set()
    async with asyncio.timeout(60):
        await said.turn.inserted()
        assert await said.turn.result() == "cancelled"
    assert [event.message for event in desk.editor.of(UserMessage)] == [said.message]


async def test_a_steering_message_is_inserted_when_the_prompt_returns(
    desk: Desk, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("Half", stall), answer("I heard."))
    first = await say(desk, "Go")
    await desk.editor.until(AgentText)
    second = await say(desk, "Use tabs")
    journal = [event for event in await desk.journal() if isinstance(event, UserMessage)]
    assert [event.message for event in journal] == [first.message, second.message]
    assert (second.turn, second.began) == (first.turn, False)
    await second.turn.inserted()
    stall.release()
    assert await first.turn.result() == "end_turn"


async def test_a_turn_sums_the_usage_of_its_requests_and_the_next_starts_at_zero(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer(Call("glob", {"pattern": "*"})), answer("Two."), answer("Three."))
    said = await say(desk, "Go")
    assert said.turn.usage is None
    await said.turn.result()
    await desk.say("Again")
    first, second = [ended.usage for ended in desk.editor.of(TurnEnded)]
    assert first is not None and second is not None  # noqa: PT018 - one thing: both are there
    assert first == second + second
    assert said.turn.usage == first


async def test_a_turn_that_asks_no_model_took_nothing(desk: Desk) -> None:
    await desk.say("/help")
    assert desk.editor.of(TurnEnded)[0].usage is None


async def test_usages_add_up_field_by_field() -> None:
    one = Usage(input=10, output=2, cache_read=3, cache_write=4, reasoning=1)
    assert one + one == Usage(input=20, output=4, cache_read=6, cache_write=8, reasoning=2)
    assert not Usage()


async def test_an_empty_plan_is_no_plan(desk: Desk, model_server: ModelServer) -> None:
    steps = [{"content": "Look", "status": "pending"}]
    model_server.add(
        answer(Call("todo", {"todos": steps})), answer(Call("todo", {"todos": []})), answer("Done.")
    )
    await desk.say("Go")
    (changed,) = desk.editor.of(PlanChanged)
    (removed,) = desk.editor.of(PlanRemoved)
    assert removed.plan_id == changed.plan_id
