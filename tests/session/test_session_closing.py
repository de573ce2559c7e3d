"""Closing a session: what runs is stopped and ended in the journal, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import threading

import msgspec
import pytest

from acp_agent.content import ResourceLinkBlock
from acp_agent.errors import SessionBusyError, SessionError, SessionNotFoundError
from acp_agent.events import (
    AgentText,
    PermissionAsked,
    TitleChanged,
    ToolEnded,
    TurnEnded,
    TurnStarted,
)
from acp_agent.permissions.access import Gate
from acp_agent.session import preload as preload_module
from acp_agent.session.manager import SessionManager
from acp_agent.session.turns.plan import RunOptions
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.open_session import Desk, never_answers


async def test_closing_stops_the_turn_and_ends_it_in_the_journal(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer("Half", Stall()))
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText)
    await desk.session.close()
    assert await turn.result() == "cancelled"
    await model_server.requests[0].closed_early.wait()
    assert isinstance((await desk.journal())[-1], TurnEnded)


async def test_closing_while_a_permission_is_open_ends_the_call(
    desk: Desk, model_server: ModelServer
) -> None:
    desk.editor.decide = never_answers
    model_server.add(answer(Call("shell", {"command": "touch made"})))
    await desk.begin("Go")
    await desk.editor.until(PermissionAsked)
    await desk.session.close()
    assert desk.editor.of(ToolEnded)[0].failed
    assert not (desk.folder / "made").exists()


async def test_a_failure_during_a_stop_is_no_error_of_the_stop(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = asyncio.Event()

    async def equip(chosen: RunOptions | None) -> None:
        reached.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise SessionError("a fault on the way out") from None

    monkeypatch.setattr(desk.session.resources, "for_turn", equip)
    turn = await desk.begin("Go")
    await reached.wait()
    assert await desk.cancel(turn) == "cancelled"
    assert desk.editor.of(TurnEnded)[0].error == ""


async def test_closing_while_the_tools_are_being_set_up_ends_the_turn(
    desk: Desk, model_server: ModelServer
) -> None:
    turn = await desk.begin("Go")
    await desk.editor.until(TurnStarted)
    await desk.session.close()
    assert await turn.result() == "cancelled"
    assert model_server.requests == []


async def test_a_prompt_that_still_reads_links_when_the_session_closes_fails_with_the_reason(
    desk: Desk, model_server: ModelServer
) -> None:
    path = desk.folder / "a"
    path.write_text("x\n")
    link = ResourceLinkBlock(uri=path.as_uri(), name="a")
    prompting = asyncio.create_task(desk.session.prompts.submit((link,), cancelled=lambda: False))
    for _ in range(3):
        await asyncio.sleep(0)
    await desk.session.close()
    with pytest.raises(SessionNotFoundError):
        await prompting
    assert desk.editor.of(TurnStarted) == []


async def test_a_prompt_behind_a_turn_that_closing_stops_does_not_begin_another(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer("Half", Stall()))
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText)
    turn.cancel()
    prompting = asyncio.create_task(desk.begin("Something else"))
    await asyncio.sleep(0)
    await desk.session.close()
    with pytest.raises(SessionNotFoundError):
        await prompting
    assert len(desk.editor.of(TurnStarted)) == 1


async def test_closing_continues_when_its_caller_gives_up(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer("Half", Stall()))
    await desk.begin("Go")
    await desk.editor.until(AgentText)
    closing = asyncio.create_task(desk.session.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    await desk.session.close()  # joins the one that is under way
    desk.services.store.lease(desk.session.id).release()
    assert desk.session.turn is None


async def test_the_lease_is_held_until_the_session_is_closed(desk: Desk) -> None:
    with pytest.raises(SessionBusyError):
        desk.services.store.lease(desk.session.id)
    await desk.session.close()
    desk.services.store.lease(desk.session.id).release()


async def test_background_preparation_ends_with_the_session_and_never_raises(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def broken() -> Gate:
        loop.call_soon_threadsafe(begun.set)
        raise RuntimeError("the gate's rules are broken")

    desk.manager = SessionManager(msgspec.structs.replace(desk.services, gate=broken))
    session = await desk.manager.create(str(desk.folder), [], desk.editor)
    session.opened([])
    async with asyncio.timeout(60):
        await begun.wait()
        while session.core.background:
            await asyncio.sleep(0)
    await session.close()
    assert "broke" in caplog.text


async def test_closing_does_not_wait_for_imports(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported = threading.Event()
    monkeypatch.setattr(preload_module, "import_module", lambda _: imported.wait(20))
    desk.session.opened([], ["slow"])
    async with asyncio.timeout(60):
        await desk.session.close()
    assert not imported.is_set()
    imported.set()
    assert not desk.session.core.background


async def test_nothing_is_written_to_a_closed_session_which_another_process_may_have(
    desk: Desk,
) -> None:
    await desk.session.close()
    before = await desk.journal()
    with pytest.raises(SessionNotFoundError):
        await desk.session.core.emit(TitleChanged(title="Too late"))
    assert await desk.journal() == before
