"""A turn that is stopped: every call ends, and the model can go on from there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from acp_agent.agent.context import CANCELLED_NOTE
from acp_agent.agent.resources import PermissionRequest
from acp_agent.agent.tool_calls import CANCELLED_RESULT
from acp_agent.events import (
    AgentText,
    AnyEvent,
    ModelAnswered,
    NoticeShown,
    PermissionAsked,
    ToolCalled,
    ToolEnded,
    ToolOutput,
    TurnEnded,
    TurnStarted,
)
from acp_agent.ids import SessionId
from acp_agent.permissions.access import Ask
from tests.support.model_server import Call, ModelServer, Stall, Status, answer
from tests.support.open_session import Desk, is_alive, never_answers
from tests.support.waiting import until


async def settled(desk: Desk, model_server: ModelServer) -> None:
    """What holds after every cancel: one end a call, all in the turn, and a next turn works."""
    events = await desk.journal()
    called = [event.call for event in events if isinstance(event, ToolCalled)]
    ended = [event.call for event in events if isinstance(event, ToolEnded)]
    assert sorted(called) == sorted(ended)
    asked = [event for event in events if isinstance(event, TurnStarted)]
    assert isinstance(events[-1], TurnEnded)
    assert len(asked) == 1
    before = len(model_server.requests)
    model_server.add(answer("Here I am."))
    assert await desk.say("Go on") == "end_turn"
    assert len(model_server.requests) == before + 1
    assert CANCELLED_NOTE in desk.words()[-1]
    # Every call of every answer has its result right behind it, as providers demand.
    waiting: list[str] = []
    for message in desk.sent():
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
        else:
            assert waiting == []
        waiting += [call["id"] for call in message.get("tool_calls", [])]
    assert waiting == []


async def test_a_stop_during_an_answer_keeps_its_text(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer("Half an", Stall(), " answer"))
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText)
    assert await desk.cancel(turn) == "cancelled"
    await model_server.requests[0].closed_early.wait()
    assert desk.editor.of(ModelAnswered)[0].complete is False
    await settled(desk, model_server)
    assert desk.sent()[1]["content"] == "Half an"


async def test_before_the_first_byte_of_the_answer(desk: Desk, model_server: ModelServer) -> None:
    model_server.add(Status(code=500, hold=Stall()))
    turn = await desk.begin("Go")
    await model_server.arrived(1)
    assert await desk.cancel(turn) == "cancelled"
    await settled(desk, model_server)


async def test_a_stop_during_a_question_leaves_the_file_unchanged(
    desk: Desk, model_server: ModelServer
) -> None:
    desk.editor.decide = never_answers
    write = Call("write", {"path": "made", "content": "x"})
    model_server.add(answer(write, write))
    turn = await desk.begin("Go")
    await desk.editor.until_asked()
    assert await desk.cancel(turn) == "cancelled"
    assert not (desk.folder / "made").exists()
    assert [ended.result for ended in desk.editor.of(ToolEnded)] == [CANCELLED_RESULT] * 2
    await settled(desk, model_server)


async def test_while_a_command_runs_its_whole_group_ends(
    desk: Desk, model_server: ModelServer
) -> None:
    command = "sleep 300 & echo started $!; wait"
    model_server.add(answer(Call("shell", {"command": command})))
    turn = await desk.begin("Go")
    output = await desk.editor.until(ToolOutput)
    child = int(output.text.split()[1])
    assert await desk.cancel(turn) == "cancelled"
    await until(lambda: not is_alive(child))
    await settled(desk, model_server)


async def test_while_reads_run_side_by_side(desk: Desk, model_server: ModelServer) -> None:
    for name in "ab":
        (desk.folder / name).write_text("x\n")
    desk.editor.files = held = HeldBuffers(2)
    model_server.add(answer(Call("read", {"path": "a"}), Call("read", {"path": "b"})))
    turn = await desk.begin("Go")
    await held.all_reached.wait()
    assert await desk.cancel(turn) == "cancelled"
    await settled(desk, model_server)


async def test_in_the_wait_for_another_attempt(desk: Desk, model_server: ModelServer) -> None:
    model_server.add(Status(code=429, headers={"Retry-After": "60"}))
    turn = await desk.begin("Go")
    await desk.editor.until(NoticeShown)
    assert await desk.cancel(turn) == "cancelled"
    await settled(desk, model_server)


async def test_at_the_moment_in_which_the_calls_are_shown(
    desk: Desk, model_server: ModelServer
) -> None:
    show = desk.editor.show

    async def cancelling(session: SessionId, events: Sequence[AnyEvent]) -> None:
        if any(isinstance(event, ToolCalled) for event in events):
            desk.session.cancel()
        await show(session, events)

    desk.editor.show = cancelling  # type: ignore[method-assign]  # an editor that is quick to stop
    model_server.add(answer(Call("shell", {"command": "touch made"})))
    turn = await desk.begin("Go")
    assert await turn.result() == "cancelled"
    assert [ended.result for ended in desk.editor.of(ToolEnded)] == [CANCELLED_RESULT]
    assert desk.editor.of(PermissionAsked) == []
    assert not (desk.folder / "made").exists()
    await settled(desk, model_server)


async def test_a_failure_while_the_turn_is_stopped_is_no_error_to_the_user(
    desk: Desk, model_server: ModelServer
) -> None:
    async def break_when_stopped(asking: PermissionRequest, ask: Ask) -> str | None:
        try:
            return await never_answers(asking, ask)
        except asyncio.CancelledError:
            raise ConnectionResetError("a fault on the way out") from None

    desk.editor.decide = break_when_stopped
    model_server.add(answer(Call("shell", {"command": "touch made"})))
    turn = await desk.begin("Go")
    await desk.editor.until_asked()
    assert await desk.cancel(turn) == "cancelled"
    assert len(model_server.requests) == 1
    await settled(desk, model_server)


async def test_a_stop_before_the_turn_starts_keeps_the_prompt(
    desk: Desk, model_server: ModelServer
) -> None:
    turn = await desk.begin("Go")
    assert await desk.cancel(turn) == "cancelled"
    assert model_server.requests == []
    model_server.add(answer("Here."))
    await desk.say("Again")
    assert desk.words()[0].startswith("Go")


@pytest.mark.parametrize("times", [2, 3])
async def test_cancelling_again_changes_nothing(
    desk: Desk, model_server: ModelServer, times: int
) -> None:
    model_server.add(answer("Half", Stall()))
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText)
    for _ in range(times - 1):
        turn.cancel()
        await asyncio.sleep(0)
    assert await desk.cancel(turn) == "cancelled"
    await settled(desk, model_server)


class HeldBuffers:
    """An editor that never gives a file; it notes when so many reads wait."""

    can_read = True
    can_write = False

    def __init__(self, count: int) -> None:
        self._count = count
        self.all_reached = asyncio.Event()

    async def read_text(self, path: Path, *, lines: int | None = None) -> str:
        self._count -= 1
        if self._count == 0:
            self.all_reached.set()
        await asyncio.Event().wait()
        raise AssertionError("never")

    async def write_text(self, path: Path, text: str) -> None:
        raise AssertionError("not offered")
