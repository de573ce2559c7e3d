"""Agents that are stopped at the worst moments leave nothing open behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from acp_agent.events import (
    AnyEvent,
    ChildWorked,
    SubagentChanged,
    ToolCalled,
    ToolEnded,
    TurnEnded,
    TurnStarted,
)
from tests.session.agent_and_skill import TASK, write_agent, write_skill
from tests.session.children_at_work import a_child, a_state, once_shown, what_is_open
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.open_session import Desk, never_answers


async def ended(desk: Desk) -> list[str]:
    """What is open when the turn has ended that runs."""
    turn = desk.session.turn
    assert turn is not None
    async with asyncio.timeout(60):
        await turn.wait()
    return what_is_open(await desk.journal())


@pytest.mark.parametrize(
    "moment", [a_state("running"), a_child(TurnStarted), a_child(TurnEnded), a_state("idle")]
)
async def test_an_agent_whose_turn_is_stopped_as_it_begins_or_ends_is_not_left_running(
    desk: Desk, model_server: ModelServer, moment: Callable[[AnyEvent], bool]
) -> None:
    write_agent(desk.folder)
    once_shown(desk, moment, desk.session.cancel)
    model_server.add(answer(TASK), answer("4711."))
    await desk.begin("Go")
    assert await ended(desk) == []


async def test_an_agent_that_is_stopped_alone_and_then_with_its_turn_is_not_left_running(
    desk: Desk, model_server: ModelServer
) -> None:
    write_agent(desk.folder)
    model_server.add(answer(TASK), answer("Half", Stall()))
    await desk.begin("Go")
    await model_server.arrived(2)
    await desk.session.core.flush()
    once_shown(desk, a_child(TurnEnded), desk.session.cancel)
    assert desk.session.turns.cancel_child(desk.editor.of(SubagentChanged)[0].session)
    assert await ended(desk) == []


async def test_a_skill_whose_turn_is_stopped_as_it_is_called_leaves_no_call_open(
    desk: Desk, model_server: ModelServer
) -> None:
    write_skill(desk.folder, "context: fork")
    once_shown(desk, lambda event: isinstance(event, ToolCalled), desk.session.cancel)
    await desk.begin("/skill:review it")
    assert await ended(desk) == []
    model_server.add(answer("Yes."))
    await desk.say("Go on")
    roles = [message["role"] for message in desk.sent()]
    assert roles == ["user", "assistant", "tool", "user"]


async def test_a_skill_can_be_stopped_alone_from_when_it_is_shown(
    desk: Desk, model_server: ModelServer
) -> None:
    write_skill(desk.folder, "context: fork")
    model_server.add(answer("It was stopped."))

    def stop() -> None:
        desk.session.turns.cancel_call(desk.editor.of(ToolCalled)[0].call)

    once_shown(desk, lambda event: isinstance(event, ToolCalled), stop)
    assert await desk.say("/skill:review it") == "end_turn"
    assert desk.editor.of(ToolEnded)[0].cancelled
    assert len(model_server.requests) == 1


async def test_an_agents_call_that_is_stopped_as_the_user_is_asked_lets_the_agent_continue(
    desk: Desk, model_server: ModelServer
) -> None:
    write_agent(desk.folder)
    desk.editor.decide = never_answers
    stall = Stall()
    model_server.add(answer(TASK), answer(Call("shell", {"command": "make"})), answer("Not", stall))
    model_server.add(answer("Done."))

    def stop() -> None:
        called = next(e.did for e in desk.editor.of(ChildWorked) if isinstance(e.did, ToolCalled))
        desk.session.turns.cancel_call(called.call)

    once_shown(desk, a_state("requires_action"), stop)
    turn = await desk.begin("Go")
    await model_server.arrived(3)
    await desk.session.core.flush()
    assert desk.editor.of(SubagentChanged)[-1].state == "running"
    stall.release()
    assert await turn.result() == "end_turn"
