"""Requests that are made side by side, and what they may spend together."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from acp_agent.content import TextBlock
from acp_agent.events import (
    AgentText,
    ChildWorked,
    ModelAsked,
    SubagentChanged,
    Usage,
    UsageReported,
)
from acp_agent.session.services import PendingRequests
from tests.session.agent_and_skill import TASK, write_agent
from tests.session.budgeted import budget, took
from tests.session.children_at_work import a_child, once_shown, works
from tests.support.model_server import ModelServer, Stall, answer
from tests.support.open_session import MODEL, Desk, open_desk

AGENTS = 4
EACH = 5_100  # tokens that a request of an agent takes


def agents_at_work(desk: Desk, server: ModelServer, *, until: Stall | None = None) -> None:
    """A model that gives all agents a task at once, each of which takes one request."""
    write_agent(desk.folder)
    usage = Usage(input=EACH - 100, output=100)
    found = answer(*([] if until is None else [until]), "Found.", usage=usage)
    server.otherwise = works(found, parent=took(*[TASK] * AGENTS))


async def test_concurrent_agents_spend_no_more_than_sequential_ones(
    tmp_path: Path, model_server: ModelServer
) -> None:
    most = 12_000
    async with open_desk(tmp_path, model_server, config=budget(turn_tokens=most)) as desk:
        agents_at_work(desk, model_server)
        assert await desk.say("Go, parent") == "max_tokens"
        assert len(model_server.requests) == 3
        assert desk.session.core.state.spent.tokens == 1_100 + 2 * EACH
        idle = [one for one in desk.editor.of(SubagentChanged) if one.state == "idle"]
        reasons = sorted(one.stop_reason or "" for one in idle)
        assert reasons == ["end_turn", "end_turn", "refusal", "refusal"]


async def test_agents_whose_requests_fit_the_budget_do_not_wait(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config=budget(turn_tokens=100_000)) as desk:
        stall = Stall()
        agents_at_work(desk, model_server, until=stall)
        turn = await desk.begin("Go, parent")
        await model_server.arrived(1 + AGENTS)
        stall.release()
        assert await turn.result() == "end_turn"


async def test_an_agent_that_is_stopped_makes_room_for_the_next(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config=budget(turn_tokens=12_000)) as desk:
        stall = Stall()
        agents_at_work(desk, model_server, until=stall)
        turn = await desk.begin("Go, parent")
        await model_server.arrived(2)
        await desk.session.core.flush()
        did = desk.editor.of(ChildWorked)
        (asks,) = {one.session for one in did if isinstance(one.did, ModelAsked)}
        assert desk.session.turns.cancel_child(asks)
        await model_server.arrived(3)
        stall.release()
        assert await turn.result() == "max_tokens"
        assert len(model_server.requests) == 4


async def test_sessions_share_the_remaining_budget_of_the_day(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config=budget(day_tokens=9_000)) as desk:
        model_server.otherwise = took("Done.", sent=8_000)
        other = await desk.manager.create(str(desk.folder), [], desk.editor)

        async def say() -> str:
            said = await other.prompts.submit((TextBlock(text="Go"),), cancelled=lambda: False)
            return await said.turn.result()

        ends = await asyncio.gather(desk.say("Go"), say())
        assert sorted(ends) == ["end_turn", "refusal"]
        assert len(model_server.requests) == 1


async def test_an_answer_that_becomes_long_leaves_others_less_room(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_desk(tmp_path, model_server, config=budget(day_tokens=20_000)) as desk:
        waits, change = asyncio.Event(), PendingRequests.wait_for_end

        async def told(under_way: PendingRequests) -> None:
            waits.set()
            await change(under_way)

        monkeypatch.setattr(PendingRequests, "wait_for_end", told)
        stall = Stall()
        long = answer("word " * 12_000, stall, usage=Usage(input=3_000, output=16_000))
        model_server.add(long)
        other = await desk.manager.create(str(desk.folder), [], desk.editor)
        first = await desk.begin("Go")
        await desk.editor.until(AgentText)
        said = await other.prompts.submit((TextBlock(text="Go"),), cancelled=lambda: False)
        async with asyncio.timeout(60):
            await waits.wait()
        stall.release()
        assert await first.result() == "end_turn"
        assert await said.turn.result() == "refusal"
        assert len(model_server.requests) == 1


async def test_a_side_request_counts_though_its_answer_is_of_no_use(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = f'small_model = "{MODEL}"\ntitles = "prompt"\n'
    async with open_desk(tmp_path, model_server, config=config) as desk:
        usage = Usage(input=3_000, output=200)
        refused = answer("I will not.", stop="content_filter", usage=usage)
        model_server.add(took("word " * 1_500), refused)
        await desk.say("word " * 1_500)
        await desk.say("/compact")
        assert desk.session.core.state.spent.tokens == 1_100 + 3_200


async def test_requests_that_end_in_the_same_moment_are_all_part_of_the_cost(desk: Desk) -> None:
    turn = await desk.session.resources.for_turn()
    usage = Usage(input=1_000_000)  # $1
    desk.store.held = asyncio.Event()  # what was written first is not there yet

    async def ends() -> None:
        await turn.journal.emit(
            UsageReported(used=1, size=2, cost=turn.budget.charge(turn.models.current, usage))
        )

    ending = asyncio.gather(ends(), ends(), ends())
    await asyncio.sleep(0)
    desk.store.held.set()
    await ending
    assert desk.session.core.state.cost == pytest.approx(3.0)


async def test_the_cost_of_a_stopped_agent_counts(desk: Desk, model_server: ModelServer) -> None:
    write_agent(desk.folder)
    model_server.add(took(TASK), took("4711."))
    once_shown(desk, a_child(UsageReported), desk.session.cancel)
    turn = await desk.begin("Go")
    assert await turn.result() == "cancelled"
    assert desk.session.core.state.cost == pytest.approx(desk.session.core.state.spent.cost)
    assert desk.session.core.state.cost == pytest.approx(0.004)
