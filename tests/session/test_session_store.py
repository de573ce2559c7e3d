"""What a session keeps, through a real file."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from acp_agent.content import DiffPart, ImageBlock, Location, TextBlock
from acp_agent.errors import (
    InvalidInputError,
    SessionError,
    SessionNotFoundError,
    StoreDamagedError,
    StoreError,
)
from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    DirectoriesChanged,
    PermissionDecided,
    PlanChanged,
    PlanEntry,
    SessionStarted,
    TitleChanged,
    ToolCalled,
    ToolEnded,
    ToolOutput,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId, SessionId, TurnId, new_session_id
from acp_agent.session.store import Store, StoredEvent, UnknownEvent

START = SessionStarted(cwd="/project", directories=("/library",))


def said(text: str, message: str = "msg_1") -> AgentText:
    return AgentText(message=MessageId(message), text=text)


async def events_of(store: Store, session: SessionId) -> list[object]:
    return [stored.event for stored in await store.read_all(session)]


async def test_what_was_appended_is_read_back_as_it_was_also_after_opening_again(
    tmp_path: Path,
) -> None:
    call, message, turn = CallId("call_1"), MessageId("msg_1"), TurnId("turn_1")
    events: list[AnyEvent] = [
        TurnStarted(turn=turn),
        UserMessage(
            message=MessageId("msg_0"),
            content=(
                TextBlock(text="héllo 👩‍👩‍👧 \x00 日本", meta={"k": [1, 2.5, None, {"x": True}]}),
                ImageBlock(data="aGk=", mime_type="image/png"),
            ),
        ),
        AgentThought(message=message, text="hm"),
        said("text\nwith\r\nlines\u2028 and \x00"),
        ToolCalled(
            call=call,
            message=message,
            name="edit",
            arguments='{"path": "a"}',
            title="Edit a",
            kind="edit",
            locations=(Location("/project/a", 3),),
            seal={"big": 2**80},
        ),
        PermissionDecided(call=call, allowed=True, by="user"),
        ToolOutput(call=call, text="…"),
        ToolEnded(
            call=call, content=(DiffPart("/project/a", "new", "old"),), raw_output={"n": None}
        ),
        PlanChanged(entries=(PlanEntry(content="step"),)),
        TurnEnded(turn=turn, stop_reason="end_turn"),
    ]
    session = new_session_id()
    store = await Store.open(tmp_path / "journal.db")
    await store.create(session, [START])
    await store.append(session, events)
    before = await store.read_all(session)
    await store.close()

    store = await Store.open(tmp_path / "journal.db")
    after = await store.read_all(session)
    await store.close()

    assert [stored.event for stored in after] == [START, *events]
    assert [stored.seq for stored in after] == list(range(1, len(events) + 2))
    assert after == before


async def test_the_record_follows_the_events(tmp_path: Path) -> None:
    times = iter([1_000, 2_000, 3_000, 2_500])
    store = await Store.open(tmp_path / "journal.db", clock=lambda: next(times))
    session = new_session_id()
    await store.create(session, [START])
    record = await store.get(session)
    assert (record.cwd, record.directories, record.title, record.turns) == (
        "/project",
        ("/library",),
        None,
        0,
    )
    assert (record.created_at, record.updated_at) == (1_000, 1_000)

    await store.append(session, [TurnStarted(turn=TurnId("turn_1")), TitleChanged(title="One")])
    await store.append(
        session,
        [
            TitleChanged(title="Zwei 🎉\x00"),
            DirectoriesChanged(cwd="/moved"),
            TurnStarted(turn=TurnId("turn_2")),
            TurnStarted(turn=TurnId("turn_3")),
        ],
    )
    await store.append(session, [said("the clock was set back")])
    record = await store.get(session)
    await store.close()

    assert (record.id, record.cwd, record.directories) == (session, "/moved", ())
    assert (record.title, record.turns) == ("Zwei 🎉\x00", 3)
    assert (record.created_at, record.updated_at) == (1_000, 3_000)


async def test_pieces_of_one_text_in_one_append_become_one_event(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "journal.db")
    session = new_session_id()
    await store.create(session, [START])
    await store.append(session, [said("a"), said("b"), said("c", "msg_2")])
    await store.append(session, [said("d", "msg_2")])
    found = await events_of(store, session)
    await store.close()
    assert found == [START, said("ab"), said("c", "msg_2"), said("d", "msg_2")]


async def test_reading_can_start_behind_a_known_place(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "journal.db")
    session = new_session_id()
    await store.create(session, [START])
    for index in range(5):
        await store.append(session, [said(str(index))])
    rest = await store.read_all(session, after=4)
    nothing = await store.read_all(session, after=6)
    beyond = await store.read_all(session, after=600)
    everything = await store.read_all(session, after=-3)
    await store.close()
    assert [(stored.seq, stored.event) for stored in rest] == [(5, said("3")), (6, said("4"))]
    assert nothing == beyond == []
    assert len(everything) == 6


async def test_a_long_session_comes_in_batches_in_order_while_others_write(
    tmp_path: Path,
) -> None:
    store = await Store.open(tmp_path / "journal.db")
    session, other = new_session_id(), new_session_id()
    await store.create(other, [START])
    await store.create(session, [START, *(said(str(n), f"msg_{n}") for n in range(3_000))])
    batches: list[list[StoredEvent]] = []
    async for batch in store.read(session):
        batches.append(batch)
        await store.append(session, [said("later")])  # not part of what is being read
        await store.append(other, [said("beside")])
    await store.close()
    assert len(batches) > 1
    assert [stored.seq for batch in batches for stored in batch] == list(range(1, 3_002))


async def test_large_events_are_not_read_all_at_once(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "journal.db")
    session = new_session_id()
    await store.create(session, [START, *(said("x" * 700_000, f"msg_{n}") for n in range(6))])
    sizes = [len(batch) async for batch in store.read(session)]
    await store.close()
    assert sum(sizes) == 7
    assert max(sizes) <= 3


async def test_appends_not_awaited_one_by_one_keep_their_order(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "journal.db")
    sessions = [new_session_id() for _ in range(8)]
    for session in sessions:
        await store.create(session, [START])
    await asyncio.gather(
        *(
            store.append(session, [said(str(n), f"msg_{n}")])
            for n in range(100)
            for session in sessions
        )
    )
    for session in sessions:
        found = await events_of(store, session)
        assert found == [START, *(said(str(n), f"msg_{n}") for n in range(100))]
    await store.close()


async def test_a_failing_append_takes_down_neither_other_sessions_nor_later_calls(
    tmp_path: Path,
) -> None:
    store = await Store.open(tmp_path / "journal.db")
    good, gone = new_session_id(), new_session_id()
    await store.create(good, [START])
    outcomes = await asyncio.gather(
        store.append(good, [said("1")]),
        store.append(gone, [said("nowhere")]),
        store.append(good, [said("2")]),
        store.create(good, [START]),
        return_exceptions=True,
    )
    assert outcomes[0] is None
    assert isinstance(outcomes[1], SessionNotFoundError)
    assert outcomes[2] is None
    assert isinstance(outcomes[3], SessionError)
    await store.append(good, [said("3")])
    assert await events_of(store, good) == [START, said("1"), said("2"), said("3")]
    await store.close()


async def test_an_append_behind_a_failed_one_fails_too_so_that_there_is_no_hole(
    tmp_path: Path,
) -> None:
    store = await Store.open(tmp_path / "journal.db")
    session = new_session_id()
    outcomes = await asyncio.gather(
        store.append(session, [said("before the session exists")]),
        store.create(session, [START]),
        store.append(session, [said("behind")]),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [SessionNotFoundError] * 3
    await store.create(session, [START])
    await store.append(session, [said("again")])
    assert await events_of(store, session) == [START, said("again")]
    await store.close()


async def test_an_append_whose_task_was_cancelled_is_written_all_the_same(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "journal.db")
    session = new_session_id()
    await store.create(session, [START])
    task = asyncio.ensure_future(store.append(session, [said("1")]))
    await asyncio.sleep(0)
    task.cancel()
    await store.append(session, [said("2")])
    assert task.cancelled()
    assert await events_of(store, session) == [START, said("1"), said("2")]
    await store.close()


async def test_a_session_that_is_not_there_is_said_with_its_id(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "journal.db")
    strange = SessionId("sess_\ud800")
    for session in (SessionId("sess_none"), SessionId(""), strange):
        with pytest.raises(SessionNotFoundError, match="not found"):
            await store.get(session)
        with pytest.raises(SessionNotFoundError):
            await store.append(session, [said("x")])
        with pytest.raises(SessionNotFoundError):
            await store.read_all(session)
        assert await store.delete(session) is False
    await store.close()


async def test_a_session_begins_with_its_start_and_an_id_is_used_once(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "journal.db")
    session = new_session_id()
    with pytest.raises(SessionError, match="must begin"):
        await store.create(session, [said("x")])
    with pytest.raises(SessionError, match="must begin"):
        await store.create(session, [])
    await store.create(session, [START])
    with pytest.raises(SessionError, match="exists already"):
        await store.create(session, [START, said("x")])
    assert await events_of(store, session) == [START]
    await store.close()


async def test_deleting_removes_the_session_and_its_words_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    store = await Store.open(path)
    session, other = new_session_id(), new_session_id()
    await store.create(session, [START, said("a secret plan " * 2_000), said("x", "msg_2")])
    await store.create(other, [START, said("kept")])
    assert await store.delete(session) is True
    assert await store.delete(session) is False
    with pytest.raises(SessionNotFoundError):
        await store.read_all(session)
    assert await events_of(store, other) == [START, said("kept")]
    await store.close()
    content = path.read_bytes()
    assert b"kept" in content
    assert b"a secret plan" not in content


async def test_a_session_deleted_while_it_is_read_is_said_to_be_gone(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "journal.db")
    session = new_session_id()
    await store.create(session, [START, *(said(str(n), f"msg_{n}") for n in range(3_000))])
    batches = store.read(session)
    assert await anext(batches)
    await store.delete(session)
    with pytest.raises(SessionNotFoundError):
        await anext(batches)
    await store.close()


async def test_an_event_of_a_newer_version_survives_with_what_this_one_does_not_know(
    tmp_path: Path,
) -> None:
    store = await Store.open(tmp_path / "journal.db")
    session = new_session_id()
    new_kind = UnknownEvent("hologram_shown", b'{"event":"hologram_shown","beams":[1,2]}')
    new_shape = UnknownEvent(
        "permission_decided",
        b'{"event":"permission_decided","call":"call_1","allowed":true,"by":"oracle"}',
    )
    new_field = msgspec.Raw(b'{"event":"agent_text","message":"msg_1","text":"hi","font":"serif"}')
    await store.create(session, [START, new_kind, new_shape])
    await store.append(session, [UnknownEvent("agent_text", bytes(new_field))])
    found = await events_of(store, session)
    await store.close()
    assert found == [START, new_kind, new_shape, said("hi")]


async def test_lone_halves_of_characters_never_reach_the_file(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "journal.db")
    session = new_session_id()
    await store.create(session, [SessionStarted(cwd="/a\udcff")])
    await store.append(
        session, [said("smile \ud83d"), said("\ude00"), TitleChanged(title="\ud83d!")]
    )
    await store.append(
        session, [ToolEnded(call=CallId("call_1"), raw_output={"k\udc80": ["\ud800", 1]})]
    )
    found = await events_of(store, session)
    record = await store.get(session)
    page = await store.list(cwd="/a\udcff", with_empty=True)
    await store.close()
    assert found[1] == said("smile 😀")
    assert found[3] == ToolEnded(call=CallId("call_1"), raw_output={"k\ufffd": ["\ufffd", 1]})
    assert (record.cwd, record.title) == ("/a\ufffd", "\ufffd!")
    assert [found.id for found in page.sessions] == [session]


async def test_an_event_that_is_too_large_is_refused_and_the_session_goes_on(
    tmp_path: Path,
) -> None:
    store = await Store.open(tmp_path / "journal.db")
    session = new_session_id()
    await store.create(session, [START])
    large = said("x" * (8 << 20))
    await store.append(session, [large])
    with pytest.raises(InvalidInputError, match=r"67 MB is too much.*at most 67 MB"):
        await store.append(session, [said("first"), said("x" * (64 << 20), "msg_2")])
    await store.append(session, [said("next")])
    assert await events_of(store, session) == [START, large, said("next")]
    await store.close()


async def test_a_value_that_json_cannot_hold_is_refused_and_nothing_of_its_append_is_kept(
    tmp_path: Path,
) -> None:
    store = await Store.open(tmp_path / "journal.db")
    session = new_session_id()
    await store.create(session, [START])
    with pytest.raises(InvalidInputError):
        await store.append(
            session, [said("x"), ToolEnded(call=CallId("c"), raw_output={"k": object()})]
        )
    assert await events_of(store, session) == [START]
    await store.close()


async def test_what_was_asked_for_before_closing_is_written_and_nothing_after(
    tmp_path: Path,
) -> None:
    store = await Store.open(tmp_path / "journal.db")
    session = new_session_id()
    await store.create(session, [START])
    waiting = [asyncio.ensure_future(store.append(session, [said(str(n))])) for n in range(50)]
    await asyncio.sleep(0)
    await asyncio.gather(store.close(), store.close())
    await asyncio.gather(*waiting)
    with pytest.raises(StoreError, match="closed"):
        await store.append(session, [said("late")])

    store = await Store.open(tmp_path / "journal.db")
    assert len(await store.read_all(session)) == 51
    await store.close()


async def test_the_event_loop_goes_on_while_the_journal_writes(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "journal.db")
    session = new_session_id()
    await store.create(session, [START])
    events = [said("x" * 50, f"msg_{n}") for n in range(20_000)]
    turns = 0
    task = asyncio.ensure_future(store.append(session, events))
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    await store.close()
    assert turns > 3


async def test_a_broken_event_is_found_when_it_is_read_and_by_the_check(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "journal.db"
    store = await Store.open(path)
    broken, short, good = new_session_id(), new_session_id(), new_session_id()
    for session in (broken, short, good):
        await store.create(session, [START, said("1"), said("2", "msg_2")])
    assert await store.check() == ()
    await store.close()

    database = sqlite3.connect(path)
    database.execute(
        "UPDATE events SET body = '{\"event\":' WHERE place ="
        " (SELECT (key << 32) + 2 FROM sessions WHERE id = ?)",
        (broken,),
    )
    database.execute(
        "DELETE FROM events WHERE place = (SELECT (key << 32) + 2 FROM sessions WHERE id = ?)",
        (short,),
    )
    database.commit()
    database.close()

    store = await Store.open(path)
    for session in (broken, short):
        with pytest.raises(
            StoreDamagedError, match=r"acp-agent doctor.*move the file away"
        ) as told:
            await store.read_all(session)
        assert str(path) in str(told.value)
        assert "\n" not in str(told.value)
    assert await store.check() == (f"session {short}: 2 of 3 events are there",)
    assert len(await store.read_all(good)) == 3
    await store.close()
