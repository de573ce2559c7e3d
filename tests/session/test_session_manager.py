"""All sessions of a process: made, opened, listed, closed, deleted."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from acp_agent.errors import (
    InvalidInputError,
    SessionBusyError,
    SessionNotFoundError,
    StoreError,
)
from acp_agent.events import (
    AgentText,
    ModelAsked,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import SessionId, new_message_id, new_turn_id
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.open_session import Desk, RecordingEditor, open_desk


def opened(desk: Desk) -> SessionId:
    return desk.session.id


async def test_a_new_session_is_in_the_store_at_once(desk: Desk) -> None:
    record = await desk.services.store.get(opened(desk))
    assert record.cwd == str(desk.folder)
    assert desk.manager.get(opened(desk), desk.editor) is desk.session


@pytest.mark.parametrize(
    ("cwd", "further", "field"),
    [
        ("relative", [], "cwd"),
        ("/no/such/folder", [], "cwd"),
        ("/\0", [], "cwd"),
        ("/tmp", ["/tmp", "other"], r"additionalDirectories\[1\]"),
        ("/etc/hostname", [], "cwd"),
    ],
)
async def test_folders_must_be_absolute_and_exist(
    desk: Desk, cwd: str, further: list[str], field: str
) -> None:
    with pytest.raises(InvalidInputError, match=field):
        await desk.manager.create(cwd, further, desk.editor)
    with pytest.raises(InvalidInputError, match=field):
        await desk.manager.open(opened(desk), cwd, further)


async def test_a_session_that_cannot_be_saved_is_neither_open_nor_locked(desk: Desk) -> None:
    locks = desk.services.store.path.parent / "locks"
    before = sorted(locks.iterdir())
    await desk.services.store.close()
    with pytest.raises(StoreError):
        await desk.manager.create(str(desk.folder), [], desk.editor)
    assert sorted(locks.iterdir()) == before


async def test_a_session_opened_again_continues_where_it_was(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("Yes.")
    await desk.say("One")
    await desk.manager.close(opened(desk), desk.editor)
    again = await desk.manager.open(opened(desk), str(desk.folder), [])
    assert again is not desk.session
    assert (again.core.state.title, again.core.state.cost) == (
        desk.session.core.state.title,
        desk.session.core.state.cost,
    )
    desk._session = again
    await desk.say("Two")
    first, second = (request.json["messages"] for request in model_server.requests)
    assert second[: len(first)] == first


async def test_a_session_that_is_open_is_found_and_not_read_again(desk: Desk) -> None:
    assert await desk.manager.open(opened(desk), str(desk.folder), []) is desk.session


async def test_unknown_and_closed_sessions_are_not_found(desk: Desk) -> None:
    unknown = SessionId("sess_unknown")
    for find in (
        desk.manager.open(unknown, str(desk.folder), []),
        desk.manager.close(unknown, desk.editor),
    ):
        with pytest.raises(SessionNotFoundError, match="not found: sess_unknown"):
            await find
    await desk.manager.close(opened(desk), desk.editor)
    with pytest.raises(SessionNotFoundError, match=r"\(not open here; resume it first\)"):
        desk.manager.get(opened(desk), desk.editor)


async def test_a_turn_that_a_crash_cut_off_is_closed_when_the_session_is_opened(
    desk: Desk,
) -> None:
    turn, message = new_turn_id(), new_message_id()
    await desk.session.core.emit(
        TurnStarted(turn=turn),
        UserMessage(message=new_message_id(), content=()),
        ModelAsked(message=message, model="m"),
        AgentText(message=message, text="Half"),
    )
    await desk.manager.close(opened(desk), desk.editor)
    again = await desk.manager.open(opened(desk), str(desk.folder), [])
    last = (await desk.journal())[-1]
    assert isinstance(last, TurnInterrupted)
    assert (last.turn, last.cut) == (turn, message)
    assert list(await again.core.history()) == await desk.journal()


async def test_another_process_cannot_open_or_delete_an_open_session(
    desk: Desk, tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, session=False) as other:
        with pytest.raises(SessionBusyError):
            await other.manager.open(opened(desk), str(desk.folder), [])
        with pytest.raises(SessionBusyError):
            await other.manager.delete(opened(desk))
        await desk.manager.close(opened(desk), desk.editor)
        assert (await other.manager.open(opened(desk), str(desk.folder), [])).closing is False


async def test_a_session_that_cannot_be_read_is_free_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.manager.close(opened(desk), desk.editor)

    async def fail(session: SessionId) -> None:
        raise StoreError("the disk is broken")

    with monkeypatch.context() as patch:
        patch.setattr(desk.services.store, "read_all", fail)
        with pytest.raises(StoreError):
            await desk.manager.open(opened(desk), str(desk.folder), [])
    reopened = await desk.manager.open(opened(desk), str(desk.folder), [])
    assert reopened.id == opened(desk)


async def test_opening_a_session_that_is_closing_waits_and_opens_it_again(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer("Half", Stall()))
    await desk.begin("Go")
    await desk.editor.until(AgentText)
    closing = asyncio.create_task(desk.manager.close(opened(desk), desk.editor))
    await asyncio.sleep(0)
    with pytest.raises(SessionNotFoundError):
        desk.manager.get(opened(desk), desk.editor)
    closing.cancel()  # the client took its request back; the closing goes on
    again = await desk.manager.open(opened(desk), str(desk.folder), [])
    assert again is not desk.session
    assert not again.closing
    assert isinstance((await desk.journal())[-1], TurnEnded)


async def test_deleting_stops_the_turn_and_removes_everything(
    desk: Desk, model_server: ModelServer
) -> None:
    command = Call("shell", {"command": "seq 30000"})
    model_server.add(answer(command), answer("Half", Stall()))
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText)
    outputs = desk.services.outputs / opened(desk)
    assert list(outputs.iterdir())
    await desk.manager.delete(opened(desk))
    assert await turn.result() == "cancelled"
    assert not outputs.exists()
    with pytest.raises(SessionNotFoundError):
        await desk.services.store.get(opened(desk))


async def test_deleting_a_deleted_session_is_no_error(desk: Desk) -> None:
    for _ in range(2):
        await desk.manager.delete(opened(desk))
    await desk.manager.delete(SessionId("sess_never_was"))


@pytest.mark.parametrize("name", ["victim", "../victim", "/tmp/../{folder}"])
async def test_deleting_removes_no_folder_that_is_not_a_sessions(desk: Desk, name: str) -> None:
    desk.services.outputs.mkdir(exist_ok=True)
    victims = [desk.services.outputs / "victim", desk.services.outputs.parent / "victim"]
    for victim in victims:
        victim.mkdir()
    target = SessionId(name.format(folder=victims[1]))
    with contextlib.suppress(SessionNotFoundError):
        await desk.manager.delete(target)
    assert all(victim.is_dir() for victim in victims)


async def test_closing_all_closes_the_others_if_one_fails(
    desk: Desk, model_server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    other = await desk.manager.create(str(desk.folder), [], desk.editor)

    async def fail() -> None:
        raise OSError("a fault")

    desk.session.resources.aclose = fail  # type: ignore[method-assign]  # a process that cannot be ended
    await desk.manager.close_all()
    assert other.closing
    for session in (desk.session, other):  # neither is locked
        desk.services.store.lease(session.id).release()
    assert "did not close" in caplog.text


async def test_cancelling_a_session_that_is_not_open_is_silent(desk: Desk) -> None:
    desk.manager.cancel(SessionId("sess_unknown"), desk.editor)
    desk.manager.cancel(opened(desk), desk.editor)
    assert desk.manager.running == []


async def test_running_names_the_sessions_in_which_a_turn_runs(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer("Half", Stall()))
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText)
    assert desk.manager.running == [desk.session]
    desk.manager.cancel(opened(desk), desk.editor)
    await turn.result()
    assert desk.manager.running == []


async def test_a_session_of_one_editor_is_not_open_for_another(desk: Desk) -> None:
    with pytest.raises(SessionNotFoundError):
        desk.manager.get(opened(desk), RecordingEditor())
