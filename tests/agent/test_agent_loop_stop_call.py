"""One call is stopped by the user while its turn goes on."""

from __future__ import annotations

import asyncio

import pytest

from acp_agent.agent.tool_calls import STOPPED_RESULT
from acp_agent.errors import InvalidInputError
from acp_agent.events import (
    PermissionAsked,
    ToolCalled,
    ToolEnded,
    ToolOutput,
    ToolStarted,
    TurnEnded,
)
from acp_agent.ids import CallId
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import Desk, is_alive, never_answers, presses
from tests.support.waiting import until

SLEEP = Call("shell", {"command": "echo $$; sleep 300"})


def ends(desk: Desk) -> list[tuple[bool, bool]]:
    """How the calls ended, in their order: failed, cancelled."""
    by_call = {ended.call: ended for ended in desk.editor.of(ToolEnded)}
    assert len(by_call) == len(desk.editor.of(ToolEnded)), "a call ended twice"
    called = [event.call for event in desk.editor.of(ToolCalled)]
    return [(by_call[call].failed, by_call[call].cancelled) for call in called]


async def test_a_stopped_command_ends_as_cancelled_and_the_model_continues(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer(SLEEP), answer("Something else, then."))
    turn = await desk.begin("Go")
    shell = int((await desk.editor.until(ToolOutput)).text)
    desk.session.turns.cancel_call(desk.editor.of(ToolCalled)[0].call)
    async with asyncio.timeout(60):
        assert await turn.result() == "end_turn"
    assert ends(desk) == [(True, True)]
    assert desk.results() == [f"Error: {STOPPED_RESULT}"]
    await until(lambda: not is_alive(shell))


async def test_a_call_stopped_during_its_question_never_runs(
    desk: Desk, model_server: ModelServer
) -> None:
    withdrawn = asyncio.Event()

    async def asked(*_: object) -> str | None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            withdrawn.set()
            raise
        return None

    desk.editor.decide = asked
    model_server.add(answer(Call("write", {"path": "made", "content": "x"})), answer("Well."))
    turn = await desk.begin("Go")
    await desk.editor.until_asked()
    desk.session.turns.cancel_call(desk.editor.of(PermissionAsked)[0].call)
    async with asyncio.timeout(60):
        assert await turn.result() == "end_turn"
    assert withdrawn.is_set()
    assert ends(desk) == [(True, True)]
    assert desk.editor.of(ToolStarted) == []
    assert not (desk.folder / "made").exists()


@pytest.mark.parametrize("stopped", [0, 1, 2])
async def test_the_other_calls_of_the_answer_still_run(
    desk: Desk, model_server: ModelServer, stopped: int
) -> None:
    """Three calls, the first of which waits for the user; each of them is stopped once."""
    pressed = asyncio.Event()

    async def slow(*_: object) -> str | None:
        await pressed.wait()
        return "allow_once"

    desk.editor.decide = slow
    files = [Call("write", {"path": name, "content": "x"}) for name in "abc"]
    model_server.add(answer(*files), answer("Done."))
    turn = await desk.begin("Go")
    await desk.editor.until_asked()
    call = desk.editor.of(ToolCalled)[stopped].call
    desk.session.turns.cancel_call(call)
    ended = await desk.editor.until(ToolEnded)  # at once, also where it waits for others
    assert ended.call == call
    pressed.set()
    async with asyncio.timeout(60):
        assert await turn.result() == "end_turn"
    expected = [(False, False)] * 3
    expected[stopped] = (True, True)
    assert ends(desk) == expected
    assert [(desk.folder / name).exists() for name in "abc"] == [
        index != stopped for index in range(3)
    ]
    assert [STOPPED_RESULT in text for text in desk.results()] == [
        index == stopped for index in range(3)
    ]


async def test_a_call_stopped_before_the_answer_has_ended_does_not_begin(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer(SLEEP, Call("read", {"path": "a"})), answer("Well."))
    begun = asyncio.Event()
    show = desk.editor.show

    async def stopping(session: object, events: object) -> None:
        await show(session, events)  # type: ignore[arg-type]  # passed on as they are
        called = desk.editor.of(ToolCalled)
        if called and not begun.is_set():
            begun.set()
            desk.session.turns.cancel_call(called[0].call)

    desk.editor.show = stopping  # type: ignore[method-assign]  # a user who is quick to stop
    turn = await desk.begin("Go")
    async with asyncio.timeout(60):
        assert await turn.result() == "end_turn"
    assert ends(desk)[0] == (True, True)
    assert ends(desk)[1][1] is False
    called = desk.editor.of(ToolCalled)
    assert [event.call for event in desk.editor.of(ToolStarted)] == [called[1].call]


async def test_stopping_twice_is_stopping_once(desk: Desk, model_server: ModelServer) -> None:
    model_server.add(answer(SLEEP), answer("Well."))
    turn = await desk.begin("Go")
    await desk.editor.until(ToolOutput)
    call = desk.editor.of(ToolCalled)[0].call
    desk.session.turns.cancel_call(call)
    desk.session.turns.cancel_call(call)
    async with asyncio.timeout(60):
        assert await turn.result() == "end_turn"
    assert ends(desk) == [(True, True)]


async def test_a_call_and_its_turn_stopped_together_end_once_each(
    desk: Desk, model_server: ModelServer
) -> None:
    desk.editor.decide = presses("allow_once")
    model_server.add(answer(SLEEP, SLEEP))
    turn = await desk.begin("Go")
    await desk.editor.until(ToolOutput)
    desk.session.turns.cancel_call(desk.editor.of(ToolCalled)[0].call)
    assert await desk.cancel(turn) == "cancelled"
    assert ends(desk) == [(True, True)] * 2
    assert isinstance((await desk.journal())[-1], TurnEnded)


async def test_a_call_that_is_not_open_cannot_be_stopped(
    desk: Desk, model_server: ModelServer
) -> None:
    unknown = CallId("call_nobody_made")
    with pytest.raises(InvalidInputError, match="call_nobody_made") as idle:
        desk.session.turns.cancel_call(unknown)
    assert idle.value.field == "toolCallId"
    desk.editor.decide = never_answers
    model_server.add(
        answer(Call("read", {"path": "a"})), answer(Call("write", {"path": "b", "content": "x"}))
    )
    turn = await desk.begin("Go")
    await desk.editor.until_asked()
    for call in (unknown, desk.editor.of(ToolCalled)[0].call):  # the second has ended
        with pytest.raises(InvalidInputError, match=call):
            desk.session.turns.cancel_call(call)
    await desk.cancel(turn)
    with pytest.raises(InvalidInputError):
        desk.session.turns.cancel_call(desk.editor.of(ToolCalled)[1].call)


async def test_a_stopped_terminal_ends_its_command_and_the_model_gets_the_output(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer(Call("shell", {"command": "echo begun; sleep 300"})), answer("Well."))
    turn = await desk.begin("Go")
    await desk.editor.until(ToolOutput)
    call = desk.editor.of(ToolCalled)[0].call
    desk.session.turns.cancel_terminal(call)
    async with asyncio.timeout(60):
        assert await turn.result() == "end_turn"
    (ended,) = desk.editor.of(ToolEnded)
    assert (ended.signal, ended.exit_code, ended.cancelled) == ("SIGTERM", None, False)
    assert desk.results() == ["Error: begun\n[stopped by the user (ended by SIGTERM)]"]
    with pytest.raises(InvalidInputError) as exited:
        desk.session.turns.cancel_terminal(call)
    assert exited.value.field == "terminalId"


async def test_a_call_without_a_command_has_no_terminal(
    desk: Desk, model_server: ModelServer
) -> None:
    desk.editor.decide = never_answers
    model_server.add(answer(Call("shell", {"command": "touch made"})))
    with pytest.raises(InvalidInputError, match="nowhere"):
        desk.session.turns.cancel_terminal("nowhere")
    turn = await desk.begin("Go")
    await desk.editor.until_asked()
    with pytest.raises(InvalidInputError):  # its command has not begun
        desk.session.turns.cancel_terminal(desk.editor.of(ToolCalled)[0].call)
    await desk.cancel(turn)
