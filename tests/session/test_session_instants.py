"""What comes in the very moment in which something else ends, begins or is closed."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from acp_agent.config.types import Config
from acp_agent.errors import AuthRequiredError, SessionNotFoundError
from acp_agent.events import (
    AgentText,
    AnyEvent,
    CheckpointMade,
    CompactionChanged,
    ConfigChanged,
    TitleChanged,
)
from acp_agent.ids import SessionId
from acp_agent.session.client import AttachedClient
from acp_agent.session.core import BackgroundTasks
from acp_agent.session.folder_trust import FolderTrust
from acp_agent.session.store.records import SessionRecord
from acp_agent.session.turns.lazy_tools import LazyTools
from acp_agent.session.turns.toolset import WorkspaceTools
from acp_agent.session.turns.turn import Turn
from acp_agent.workspace.checkpoints.base import Deadline
from tests.session.children_at_work import once_shown
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.open_session import MODEL, Desk, RecordingEditor, open_desk
from tests.support.waiting import until

COMPACTS = f'small_model = "{MODEL}"\ntitles = "prompt"\n'
LONG = "word " * 1_500


async def closed(desk: Desk, model_server: ModelServer) -> SessionId:
    """A session with a conversation, in the store."""
    model_server.add(answer("Hello."))
    await desk.say("Hi")
    await desk.manager.close(desk.session.id, desk.editor)
    return desk.session.id


async def say_then(desk: Desk, text: str, release: Stall) -> None:
    """Say something into the turn that runs, let that go on, and wait for its end."""
    running = desk.session.turn
    turn = await desk.begin(text)
    assert turn is running
    release.release()
    async with asyncio.timeout(60):
        assert await turn.result() == "end_turn"


# -- turns ---------------------------------------------------------------------------------------


async def test_a_message_sent_during_compaction_is_answered(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config=COMPACTS) as desk:
        summing = Stall()
        model_server.add(
            answer(LONG), answer("They said", summing, " words."), answer("It is done.")
        )
        await desk.say(LONG)
        await desk.begin("/compact")
        await model_server.arrived(2)
        await say_then(desk, "Now do it", summing)
        assert "Now do it" in desk.words()[-1]
        assert desk.editor.of(AgentText)[-1].text == "It is done."


async def test_a_message_sent_as_a_loop_sends_its_last_text_is_answered(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("Done.")
    show, saying = desk.editor.show, list[asyncio.Task[Turn]]()

    async def shown(session: SessionId, events: Sequence[AnyEvent]) -> None:
        await show(session, events)
        if any(isinstance(event, AgentText) and "loop ended" in event.text for event in events):
            saying.append(asyncio.create_task(desk.begin("One more thing")))
            await asyncio.sleep(0)

    desk.editor.show = shown  # type: ignore[method-assign]  # that is the point
    await desk.say("/loop 2 Do it")
    await (await saying[0]).result()
    assert desk.words()[-1] == "One more thing"


async def test_a_sent_message_causes_no_further_request(
    desk: Desk, model_server: ModelServer
) -> None:
    begun = Stall()
    model_server.add(answer("I", begun, " see."), answer("Yes."))
    await desk.begin("Go")
    await desk.editor.until(AgentText)
    await say_then(desk, "Thank you", begun)
    assert len(model_server.requests) == 2


async def test_a_summary_that_is_stopped_at_its_start_ends(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config=COMPACTS) as desk:
        model_server.add(answer(LONG))
        await desk.say(LONG)
        once_shown(desk, lambda event: isinstance(event, CompactionChanged), desk.session.cancel)
        assert await desk.say("/compact") == "cancelled"
        assert desk.editor.of(CompactionChanged)[-1].status == "cancelled"


# -- tools and files -----------------------------------------------------------------------------


class Builds:
    """Setting tools up, the first time held up in its thread until `go`."""

    def __init__(self, tools: LazyTools, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self.count = 0
        self._build = tools._build
        monkeypatch.setattr(tools, "_build", self._slowly)

    def _slowly(self, trust: FolderTrust, cwd: Path, directories: Sequence[Path]) -> WorkspaceTools:
        self.count += 1
        if self.count == 1:
            self.begun.set()
            self.go.wait(10)
        return self._build(trust, cwd, directories)


async def test_tools_are_set_up_once_though_the_first_turn_was_stopped_meanwhile(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = desk.session.resources._tools
    builds = Builds(tools, monkeypatch)
    first = asyncio.create_task(tools.get())
    await asyncio.to_thread(builds.begun.wait, 10)
    first.cancel()
    second = asyncio.create_task(tools.get())
    await asyncio.wait([first])
    builds.go.set()
    equipment = await second
    assert builds.count == 1
    assert equipment.workspace.background is tools.background


async def test_tools_are_those_of_the_editor_that_came_while_they_were_set_up(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = desk.session.resources._tools
    builds = Builds(tools, monkeypatch)
    getting = asyncio.create_task(tools.get())
    await asyncio.to_thread(builds.begun.wait, 10)
    desk.session.resources.rebuild_tools()  # the same folders, but with another editor's terminals
    builds.go.set()
    await getting
    assert builds.count == 2


async def test_files_are_not_saved_for_a_turn_that_was_stopped_meanwhile(
    desk: Desk, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch = answer(Call("shell", {"command": "touch made"}))
    model_server.add(touch, touch, answer("Done."))
    checkpoints = desk.session.resources.checkpoints
    keep, holding = checkpoints._in_thread, asyncio.Event()

    async def slowly(deadline: Deadline, work: Callable[..., object], *args: object) -> object:
        while not (holding.is_set() or deadline.is_cancelled):
            holding.set()
            await asyncio.to_thread(deadline._cancelled.wait, 10)
        return await keep(deadline, work, *args)

    monkeypatch.setattr(checkpoints, "_in_thread", slowly)
    turn = await desk.begin("Go")
    await holding.wait()
    assert await desk.cancel(turn) == "cancelled"
    await checkpoints.wait_saved()
    assert desk.editor.of(CheckpointMade) == []
    assert await desk.say("Again") == "end_turn"
    assert [one.why for one in desk.editor.of(CheckpointMade)] == ["turn", "turn_end"]


# -- logging in ----------------------------------------------------------------------------------


async def test_a_logout_during_a_login_wins(desk: Desk) -> None:
    account = desk.services.account
    begun, go, read = threading.Event(), threading.Event(), account._read_config

    def slowly() -> Config:
        begun.set()
        go.wait(10)
        return read()

    account._read_config = slowly
    logging_in = asyncio.create_task(account.authenticate("configured"))
    await asyncio.to_thread(begun.wait, 10)
    await account.log_out()
    go.set()
    with pytest.raises(AuthRequiredError):
        await logging_in
    with pytest.raises(AuthRequiredError):
        await account.choose(None)


# -- editors -------------------------------------------------------------------------------------


async def test_a_client_that_attaches_at_the_last_moment_is_asked() -> None:
    abandoned = list[str]()
    client = AttachedClient(SessionId("s"), on_timeout=lambda: abandoned.append("s"), timeout=0)

    async def question(_: object) -> str:
        return "Yes"

    asking = asyncio.create_task(client._ask(question))
    # In the round of the loop in which the wait begins; its time is over in the next one.
    asyncio.get_running_loop().call_soon(client.attach, RecordingEditor())
    assert await asking == "Yes"
    assert not abandoned


async def test_an_editor_that_comes_back_as_the_turn_ends_finds_the_session_open(
    desk: Desk, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("Half", stall, " and the rest"), answer("Here."))
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText)
    desk.manager.release(desk.editor)
    session = await desk.manager.open(desk.session.id, str(desk.folder), [])

    async def replayed() -> None:  # to the editor, which reads slowly
        stall.release()
        await turn.wait()
        for _ in range(20):
            await asyncio.sleep(0)

    await replayed()
    session.attach(desk.editor)
    assert desk.manager.get(session.id, desk.editor) is session
    assert await desk.say("Are you there?") == "end_turn"


async def test_a_client_that_opened_a_session_and_disconnects_closes_it(
    desk: Desk, model_server: ModelServer
) -> None:
    session, stall = desk.session, Stall()
    model_server.add(answer("Half", stall, " and the rest"))
    await desk.begin("Go")
    desk.manager.release(desk.editor)
    assert await desk.manager.open(session.id, str(desk.folder), []) is session
    desk.manager.close_when_idle(session)
    stall.release()
    await until(lambda: desk.manager.find(session.id) is None)


async def test_a_client_that_disconnects_during_a_load_does_not_keep_the_session(
    desk: Desk, model_server: ModelServer
) -> None:
    stall, reading, go = Stall(), asyncio.Event(), asyncio.Event()
    model_server.add(answer("Half", stall, " and the rest"))
    turn = await desk.begin("Go")
    desk.manager.release(desk.editor)
    session = await desk.manager.open(desk.session.id, str(desk.folder), [])

    async def replayed() -> None:
        reading.set()
        await go.wait()
        session.attach(RecordingEditor())

    opening = asyncio.create_task(session.core.journal.run_exclusively(replayed))
    await reading.wait()
    opening.cancel()
    await asyncio.wait([opening])
    desk.manager.close_when_idle(session)
    go.set()
    stall.release()
    await turn.wait()
    await until(lambda: desk.manager.find(session.id) is None)


# -- opening, closing, deleting ------------------------------------------------------------------


async def test_two_clients_that_open_a_session_at_once_get_the_same_one(
    desk: Desk, model_server: ModelServer
) -> None:
    session = await closed(desk, model_server)
    first, second = await asyncio.gather(
        *(desk.manager.open(session, str(desk.folder), []) for _ in range(2))
    )
    assert first is second


async def test_a_session_deleted_while_it_is_opened_does_not_exist(
    desk: Desk, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, look = await closed(desk, model_server), desk.store.get
    begun = asyncio.Event()

    async def get(session_id: SessionId) -> SessionRecord:
        begun.set()
        return await look(session_id)

    monkeypatch.setattr(desk.store, "get", get)
    opening = asyncio.create_task(desk.manager.open(session, str(desk.folder), []))
    await begun.wait()
    await desk.manager.delete(session)
    assert (await opening).closed
    with pytest.raises(SessionNotFoundError):
        await look(session)


async def test_a_session_that_gets_a_title_while_it_is_opened_stays_open_and_shows_it(
    desk: Desk, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, look = await closed(desk, model_server), desk.store.get
    opened = asyncio.Event()

    async def get(session_id: SessionId) -> SessionRecord:
        record = await look(session_id)
        await opened.wait()
        return record

    with monkeypatch.context() as patch:
        patch.setattr(desk.store, "get", get)
        naming = asyncio.create_task(desk.manager.set_title(session, "Better"))
        await asyncio.sleep(0)
    (await desk.manager.open(session, str(desk.folder), [])).attach(desk.editor)
    opened.set()
    await naming
    assert desk.manager.find(session) is not None
    assert desk.editor.of(TitleChanged)[-1].title == "Better"


async def test_a_session_that_failed_to_close_can_be_opened_again(
    desk: Desk, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken() -> None:
        raise OSError("a fault")

    with monkeypatch.context() as patch:
        patch.setattr(desk.session.resources, "aclose", broken)
        with pytest.raises(OSError, match="a fault"):
            await closed(desk, model_server)
    again = await desk.manager.open(desk.session.id, str(desk.folder), [])
    assert again is not desk.session


async def test_nothing_is_written_to_a_session_that_was_closed_meanwhile(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, chosen, gone = desk.session.core.settings.change, asyncio.Event(), asyncio.Event()

    async def slowly(option: str, value: str) -> ConfigChanged:
        event = await change(option, value)
        chosen.set()
        await gone.wait()
        return event

    monkeypatch.setattr(desk.session.core.settings, "change", slowly)
    setting = asyncio.create_task(desk.session.set_option("mode", "full"))
    await chosen.wait()
    await desk.session.close()
    before = await desk.journal()
    gone.set()
    with pytest.raises(SessionNotFoundError):
        await setting
    assert await desk.journal() == before


async def test_work_that_is_dropped_before_it_begins_leaves_no_warning() -> None:
    tasks = BackgroundTasks("a test")

    async def work() -> None:
        raise AssertionError("it never begins")

    tasks.spawn(work())
    tasks.cancel()
    await tasks.wait()
    gc.collect()  # where a coroutine that nobody awaited would be told of
