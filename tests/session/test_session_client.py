"""Editors that leave a session and come back to it, or to another's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from acp_agent.errors import EditorGoneError, SessionNotFoundError
from acp_agent.events import AgentText, ToolEnded, TurnEnded
from acp_agent.session import client as client_module
from tests.support.model_script import Call, Stall, answer
from tests.support.model_server import ModelServer
from tests.support.open_session import Desk, RecordingEditor, never_answers, open_desk
from tests.support.waiting import until


@pytest.fixture
async def desk(tmp_path: Path, model_server: ModelServer) -> AsyncIterator[Desk]:
    async with open_desk(tmp_path, model_server) as desk:
        yield desk


async def test_a_turn_continues_when_its_editor_leaves_and_the_session_is_closed_after_it(
    desk: Desk, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("Half", stall, " and the rest"))
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText)
    desk.manager.release(desk.editor)
    stall.release()
    assert await turn.result() == "end_turn"
    texts = [event.text for event in await desk.journal() if isinstance(event, AgentText)]
    assert "".join(texts) == "Half and the rest"
    assert "rest" not in "".join(event.text for event in desk.editor.of(AgentText))
    async with asyncio.timeout(60):
        await desk.session.close()  # waits for the end of the closing that has begun
    assert desk.manager.find(desk.session.id) is None


async def test_an_idle_session_is_closed_when_its_editor_leaves(desk: Desk) -> None:
    desk.manager.release(desk.editor)
    await until(lambda: desk.manager.find(desk.session.id) is None)
    with pytest.raises(SessionNotFoundError):
        desk.manager.get(desk.session.id, desk.editor)


async def test_opening_a_session_of_another_editor_shows_the_rest_of_its_turn(
    desk: Desk, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("Half", stall, " and the rest"))
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText)
    other = RecordingEditor()
    session = await desk.manager.open(desk.session.id, str(desk.folder), [])
    session.attach(other)
    stall.release()
    await turn.result()
    assert "".join(event.text for event in other.of(AgentText)) == " and the rest"
    assert "rest" not in "".join(event.text for event in desk.editor.of(AgentText))
    assert desk.manager.get(session.id, other) is session
    with pytest.raises(SessionNotFoundError):
        desk.manager.get(session.id, desk.editor)
    desk.manager.release(desk.editor)  # has nothing any more
    assert desk.manager.find(session.id) is session


async def test_a_question_is_asked_again_when_another_client_attaches(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer(Call("shell", {"command": "touch made"})), answer("Done."))
    desk.editor.decide = never_answers
    turn = await desk.begin("Make it")
    await desk.editor.until_asked()
    other = RecordingEditor()
    desk.session.attach(other)
    assert await turn.result() == "end_turn"
    assert (desk.folder / "made").exists()
    assert len(other.asked) == 1
    assert not other.of(ToolEnded)[0].failed


async def test_a_question_waits_for_an_editor_that_left_before_it_answered(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer(Call("shell", {"command": "touch made"})), answer("Done."))

    async def leaves(*_: object) -> str | None:
        raise EditorGoneError("gone")

    desk.editor.decide = leaves
    turn = await desk.begin("Make it")
    await desk.editor.until_asked()
    assert desk.session.client.current is desk.editor  # until its connection is at its end
    other = RecordingEditor()
    desk.session.attach(other)
    assert await turn.result() == "end_turn"
    assert (desk.folder / "made").exists()


async def test_a_turn_whose_question_nobody_answers_is_stopped(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module.AttachedClient.__init__, "__kwdefaults__", {"timeout": 0.05})
    async with open_desk(tmp_path, model_server) as desk:
        model_server.add(answer(Call("shell", {"command": "touch made"})))
        desk.editor.decide = never_answers
        turn = await desk.begin("Make it")
        await desk.editor.until_asked()
        desk.manager.release(desk.editor)
        assert await turn.result() == "cancelled"
        assert not (desk.folder / "made").exists()
        assert [e.stop_reason for e in await desk.journal() if isinstance(e, TurnEnded)] == [
            "cancelled"
        ]


async def test_files_are_read_from_disk_while_no_client_is_attached(
    desk: Desk, model_server: ModelServer
) -> None:
    buffers = desk.session.client.buffers(desk.session.id)
    assert not buffers.can_read
    assert not buffers.can_write
