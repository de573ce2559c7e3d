"""A new session that begins with what another one holds."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from acp_agent.errors import InvalidInputError, SessionBusyError, SessionNotFoundError
from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    CompactionChanged,
    ModelAnswered,
    ModelAsked,
    SessionForked,
    SessionStarted,
    ToolCalled,
    ToolEnded,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId, SessionId, TurnId, new_message_id
from acp_agent.session.history.fork import sound_length
from acp_agent.session.session import Session
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.open_session import Desk, RecordingEditor, open_desk


async def forked(desk: Desk) -> Session:
    """A fork of the desk's session in the same folder, in an editor of its own."""
    return await desk.manager.fork(desk.session.id, str(desk.folder), [], RecordingEditor())


async def stored(desk: Desk, session: Session) -> list[AnyEvent]:
    return [item.event for item in await desk.services.store.read_all(session.id)]  # type: ignore[misc]  # none is unknown


async def test_a_fork_sends_the_model_what_the_source_would_and_both_continue_apart(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("Yes.")
    await desk.say("One")
    before = await desk.journal()
    fork = await forked(desk)
    assert await desk.journal() == before
    source, desk._session = desk.session, fork
    await desk.say("In the fork")
    desk._session = source
    await desk.say("In the source")
    first, other, own = (request.json["messages"] for request in model_server.requests)
    assert other[: len(first)] == first == own[: len(first)]
    assert "In the fork" in str(other)
    assert "In the fork" not in str(own)
    assert (fork.core.settings.options(), fork.core.settings.mode) == (
        source.core.settings.options(),
        source.core.settings.mode,
    )


async def test_the_title_of_a_fork_marks_it_as_a_fork(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("Yes.")
    await desk.say("Mend the parser")
    fork = await forked(desk)
    assert fork.core.state.title == "Mend the parser (fork)"
    assert (await desk.services.store.get(fork.id)).title == fork.core.state.title
    again = await desk.manager.fork(fork.id, str(desk.folder), [], desk.editor)
    assert again.core.state.title == "Mend the parser (fork 2)"
    desk._session = again
    await desk.say("Something else")
    assert again.core.state.title == "Mend the parser (fork 2)"


async def test_a_fork_of_an_empty_session_gets_its_title_from_its_own_prompt(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("Yes.")
    fork = await forked(desk)
    assert fork.core.state.title is None
    assert [type(event) for event in (await stored(desk, fork))[-1:]] == [SessionForked]
    desk._session = fork
    await desk.say("Own words")
    assert fork.core.state.title == "Own words"


async def test_a_fork_copies_a_running_turn_up_to_the_last_complete_step(
    desk: Desk, model_server: ModelServer
) -> None:
    (desk.folder / "note.txt").write_text("the note")
    stall = Stall()
    model_server.add(
        answer("Let me look.", Call("read", {"path": "note.txt"})),
        answer("Half a sen", stall, "tence."),
    )
    turn = await desk.begin("Read the note")
    await desk.editor.until(AgentText, 2)
    fork = await forked(desk)
    events = await stored(desk, fork)
    assert [event.text for event in events if isinstance(event, AgentText)] == ["Let me look."]
    (cut,) = [event for event in events if isinstance(event, TurnInterrupted)]
    assert (cut.cut, cut.calls) == (None, ())
    stall.release()
    assert await turn.result() == "end_turn"  # the source did not notice
    assert desk.editor.of(TurnInterrupted) == []

    model_server.otherwise = answer("From the fork.")
    source, desk._session = desk.session, fork
    await desk.say("And now?")
    sent = desk.sent()
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "user"]
    assert "the note" in str(sent[2])
    assert "Half a sen" not in str(sent)
    assert "stopped" in str(sent[3])
    assert source.id != fork.id


async def test_messages_before_the_fork_are_in_it_however_slow_the_disk(desk: Desk) -> None:
    desk.store.held = asyncio.Event()
    said = desk.session.core.write(UserMessage(message=MessageId("msg_late"), content=()))
    forking = asyncio.create_task(forked(desk))
    await asyncio.wait([forking], timeout=0.2)
    desk.store.held.set()
    await said
    assert any(isinstance(event, UserMessage) for event in await stored(desk, await forking))


async def test_a_fork_works_in_the_folders_that_it_is_given(
    desk: Desk, model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.otherwise = answer("Yes.")
    await desk.say("One")
    elsewhere, further = tmp_path / "elsewhere", tmp_path / "further"
    for folder in (elsewhere, further):
        folder.mkdir()
    fork = await desk.manager.fork(
        desk.session.id, str(elsewhere), [str(further)], RecordingEditor()
    )
    record = await desk.services.store.get(fork.id)
    assert (record.cwd, record.directories) == (str(elsewhere), (str(further),))
    assert desk.session.core.cwd == desk.folder
    desk._session = fork
    await desk.say("Two")
    assert str(elsewhere) in desk.words()[-1]


async def test_a_session_of_the_store_and_one_of_another_process_can_be_forked(
    desk: Desk, model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.otherwise = answer("Yes.")
    await desk.say("One")
    source, folder = desk.session.id, str(desk.folder)
    async with open_desk(tmp_path, model_server, session=False) as other:
        with pytest.raises(SessionBusyError):
            await other.manager.open(source, folder, [])
        fork = await other.manager.fork(source, folder, [], other.editor)
        assert len(fork.core.context.messages) == 2
    await desk.say("Still here")
    await desk.manager.close(source, desk.editor)
    fork = await desk.manager.fork(source, folder, [], desk.editor)
    assert len(fork.core.context.messages) == 4
    assert desk.manager.find(source) is None  # it was read, not opened


async def test_a_failed_fork_leaves_no_session_and_no_lock(desk: Desk, tmp_path: Path) -> None:
    locks = desk.services.store.path.parent / "locks"
    before = sorted(locks.iterdir())
    with pytest.raises(SessionNotFoundError, match="sess_unknown"):
        await desk.manager.fork(SessionId("sess_unknown"), str(tmp_path), [], desk.editor)
    with pytest.raises(InvalidInputError, match="cwd"):
        await desk.manager.fork(desk.session.id, "relative", [], desk.editor)
    assert sorted(locks.iterdir()) == before
    page = await desk.services.store.list(with_empty=True)
    assert [record.id for record in page.sessions] == [desk.session.id]


async def test_a_fork_that_is_cancelled_at_any_moment_leaves_no_session_and_no_lock(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("Yes.")
    await desk.say("Hello")
    locks = desk.services.store.path.parent / "locks"
    before = sorted(locks.iterdir())
    moments = 0
    while True:
        forking = asyncio.create_task(forked(desk))
        for _ in range(moments):  # each is one pass of the loop
            await asyncio.sleep(0)
        if forking.done():
            break
        forking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await forking
        page = await desk.services.store.list(with_empty=True)
        assert [record.id for record in page.sessions] == [desk.session.id]
        assert sorted(locks.iterdir()) == before
        moments += 1 + moments // 10
    assert moments > 10


async def test_long_outputs_of_the_source_can_be_read_in_the_fork(
    desk: Desk, model_server: ModelServer
) -> None:
    kept = desk.services.outputs / desk.session.id / "output-1.txt"
    kept.parent.mkdir(parents=True)
    kept.write_text("the whole output")
    model_server.add(answer("Yes."), answer(Call("read", {"path": str(kept)})), answer("Read."))
    await desk.say("One")
    fork = await desk.manager.fork((await forked(desk)).id, str(desk.folder), [], RecordingEditor())
    desk._session = fork
    await desk.say("Read it")
    assert "the whole output" in desk.results()[-1]


async def test_a_long_session_is_forked_whole(desk: Desk) -> None:
    turn, message = TurnId("turn_long"), new_message_id()
    texts = [AgentText(message=MessageId(f"msg_{n}"), text="word " * 20) for n in range(10_000)]
    ended = TurnEnded(turn=turn, stop_reason="end_turn")
    await desk.session.core.emit(
        TurnStarted(turn=turn), UserMessage(message=message, content=()), *texts, ended
    )
    await desk.manager.close(desk.session.id, desk.editor)
    fork = await forked(desk)
    assert [event for event in await stored(desk, fork) if isinstance(event, AgentText)] == texts


ASKED = ModelAsked(message=MessageId("msg_a"), model="m")
TEXT = AgentText(message=MessageId("msg_a"), text="Half")
ANSWERED = ModelAnswered(message=MessageId("msg_a"), model="m")
AGAIN = ModelAnswered(message=MessageId("msg_a"), model="m", complete=False, discarded=True)
CALLED = ToolCalled(
    call=CallId("c1"), message=MessageId("msg_a"), name="read", arguments="{}", title="Read"
)
OTHER = ToolCalled(
    call=CallId("c2"), message=MessageId("msg_a"), name="read", arguments="{}", title="Read"
)
SPOKEN = [
    AgentThought(message=MessageId("msg_s"), text="A notice"),
    ModelAnswered(message=MessageId("msg_s"), model="", discarded=True),
]
STEERED = UserMessage(message=MessageId("msg_u2"), content=(), steering=True)
COMPACTING = CompactionChanged(compaction="x", status="in_progress")
BEGUN: list[AnyEvent] = [
    SessionStarted(cwd="/project"),
    TurnStarted(turn=TurnId("turn_1")),
    UserMessage(message=MessageId("msg_u"), content=()),
]


@pytest.mark.parametrize(
    ("more", "sound"),
    [
        ([], 0),
        ([ASKED], 0),
        ([ASKED, TEXT], 0),
        ([ASKED, TEXT, AGAIN], 0),
        ([ASKED, TEXT, ANSWERED], 3),
        ([ASKED, TEXT, CALLED, ANSWERED], 0),
        ([ASKED, CALLED, OTHER, ANSWERED, ToolEnded(call=CallId("c2"))], 0),
        ([ASKED, CALLED, OTHER, ANSWERED, *(ToolEnded(call=CallId(c)) for c in ("c2", "c1"))], 6),
        ([ASKED, ANSWERED, ASKED, TEXT], 2),
        ([ASKED, *SPOKEN, TEXT], 0),
        ([*SPOKEN, ASKED, TEXT], 2),
        ([SPOKEN[0]], 0),
        ([STEERED, ASKED, STEERED], 1),
        ([ASKED, ANSWERED, COMPACTING], 2),
        ([ASKED, TEXT, TurnEnded(turn=TurnId("turn_1"), stop_reason="cancelled")], 3),
        ([ASKED, CALLED, TurnInterrupted(turn=TurnId("turn_1"), message=new_message_id())], 3),
    ],
)
def test_an_open_turn_counts_up_to_its_last_complete_point(
    more: list[AnyEvent], sound: int
) -> None:
    assert sound_length([*BEGUN, *more]) == len(BEGUN) + sound
    assert sound_length([*BEGUN, *more, *BEGUN[1:2]][:-1]) == len(BEGUN) + sound


async def test_forks_and_prompts_at_the_same_time_do_not_interfere(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.otherwise = answer(*("word " for _ in range(200)))
    saying = asyncio.create_task(desk.say("Write a lot"))
    forks = [await forked(desk) for _ in range(10)]
    assert await saying == "end_turn"
    for fork in forks:
        assert sound_length(await stored(desk, fork)) == len(await stored(desk, fork))
    assert await desk.services.store.check() == ()
    assert all(desk.manager.find(fork.id) is fork for fork in forks)
