"""What a session keeps, through a real file."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.content import DiffPart, ImageBlock, Location, TextBlock
from acp_agent.errors import (
    SessionError,
    SessionNotFoundError,
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
from acp_agent.session.store.records import StoredEvent
from acp_agent.session.store.store import Store

START = SessionStarted(cwd="/project", directories=("/library",))


def said(text: str, message: str = "msg_1") -> AgentText:
    return AgentText(message=MessageId(message), text=text)


async def events_of(store: Store, session: SessionId) -> list[object]:
    return [stored.event for stored in await store.read_all(session)]


async def test_appended_events_are_read_back_unchanged_also_after_reopening(
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
            provider_data={"big": 2**80},
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


async def test_a_missing_session_is_reported_with_its_id(tmp_path: Path) -> None:
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


async def test_a_session_deleted_while_it_is_read_is_reported_as_missing(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "journal.db")
    session = new_session_id()
    await store.create(session, [START, *(said(str(n), f"msg_{n}") for n in range(3_000))])
    batches = store.read(session)
    assert await anext(batches)
    await store.delete(session)
    with pytest.raises(SessionNotFoundError):
        await anext(batches)
    await store.close()
