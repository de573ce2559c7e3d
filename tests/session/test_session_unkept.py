"""A journal that cannot be written: nothing that was shown is lost, and the session goes on."""

from __future__ import annotations

import pytest

from acp_agent.agent.context import INTERRUPTED_NOTE
from acp_agent.errors import StoreError
from acp_agent.events import (
    AgentText,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
)
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.open_session import Desk


async def test_a_prompt_that_cannot_be_saved_fails_and_leaves_the_session_unchanged(
    desk: Desk, model_server: ModelServer
) -> None:
    desk.store.full = True
    turn = await desk.begin("Go")
    with pytest.raises(StoreError, match="full"):
        await turn.result()
    assert desk.editor.shown == []
    assert model_server.requests == []
    desk.store.full = False
    model_server.add(answer("Yes."))
    assert await desk.say("Again") == "end_turn"
    assert len(desk.sent()) == 1
    assert desk.editor.of(TurnInterrupted) == []


async def test_a_disk_that_fills_up_in_mid_turn_loses_nothing_that_was_shown(
    desk: Desk, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("One", stall, " two"), answer("Yes."))
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText)
    desk.store.full = True
    stall.release()
    with pytest.raises(StoreError, match="full"):
        await turn.result()
    *shown, ended = desk.editor.shown
    assert shown == (await desk.journal())[-len(shown) :]
    assert isinstance(ended, TurnEnded)  # told alone: the editor must not show it run for ever
    assert "full" in ended.error
    desk.store.full = False
    assert await desk.say("Again") == "end_turn"
    # The turn whose end could not be written was closed first, and the model knows of it.
    (cut,) = desk.editor.of(TurnInterrupted)
    assert cut.turn == desk.editor.of(TurnStarted)[0].turn
    assert INTERRUPTED_NOTE in desk.words()[-1]
    assert desk.sent()[1]["content"] == "One"


async def test_a_call_end_that_cannot_be_saved_is_not_shown_and_the_call_is_closed_later(
    desk: Desk, model_server: ModelServer
) -> None:
    (desk.folder / "a").write_text("x\n")
    desk.store.full = lambda events: any(isinstance(e, ToolEnded | TurnEnded) for e in events)
    model_server.add(answer(Call("read", {"path": "a"})), answer("Yes."))
    turn = await desk.begin("Go")
    with pytest.raises(StoreError):
        await turn.result()
    assert desk.editor.of(ToolEnded) == []
    desk.store.full = False
    assert await desk.say("Again") == "end_turn"
    (cut,) = desk.editor.of(TurnInterrupted)
    assert cut.calls == (desk.editor.of(ToolStarted)[0].call,)
    assert len(desk.results()) == 1


async def test_an_option_that_cannot_be_saved_does_not_disturb_the_running_turn(
    desk: Desk, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("One", stall, " two"), answer("Yes."))
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText)
    desk.store.full = True
    with pytest.raises(StoreError):
        await desk.session.set_option("mode", "full")
    desk.store.full = False
    assert await desk.begin("And this") is turn
    stall.release()
    assert await turn.result() == "end_turn"
    assert desk.editor.of(TurnInterrupted) == []
    assert desk.session.core.settings.mode == "ask"
