"""Rows of the journal that are damaged take nothing along that is not."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from acp_agent.errors import SessionNotFoundError, StoreDamagedError
from acp_agent.events import AgentText, AnyEvent, SessionStarted, TurnStarted
from acp_agent.ids import MessageId, SessionId, TurnId
from acp_agent.session.store.records import DamagedEvent, StoredEvent, UnknownEvent
from acp_agent.session.store.store import Store

START = SessionStarted(cwd="/project", directories=("/library",))
ONE, OTHER, NEW = SessionId("sess_one"), SessionId("sess_other"), SessionId("sess_new")


def said(number: int) -> AgentText:
    return AgentText(message=MessageId(f"msg_{number}"), text=f"said {number}")


EVENTS: list[AnyEvent] = [
    START,
    TurnStarted(turn=TurnId("turn_1")),
    *(said(n) for n in range(3, 9)),
]


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A journal with two sessions of eight events."""
    store = await Store.open(tmp_path / "journal.db")
    for session in (ONE, OTHER):
        await store.create(session, EVENTS)
    await store.close()
    return tmp_path / "journal.db"


@contextmanager
def changing(path: Path) -> Iterator[sqlite3.Connection]:
    """The file, to be changed past the store's back, whatever its tables allow."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        yield database


def place_of(session: SessionId, seq: int) -> int:
    return ({ONE: 1, OTHER: 2}[session] << 32) + seq


async def read(path: Path, session: SessionId) -> list[StoredEvent]:
    store = await Store.open(path)
    try:
        return await store.read_all(session)
    finally:
        await store.close()


BODIES = {
    "no JSON": b"{",
    "nothing": b"",
    "cut off": b'{"event":"agent_text","message":"msg_4","te',
    "no object": b"17",
    "no UTF-8": b'{"event":"agent_text","message":"msg_4","text":"\xff"}',
    "no text": bytes(range(256)),
    "nested without end": b"[" * 100_000,
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_an_event_that_cannot_be_read_is_named_and_the_others_are_read(
    path: Path, body: bytes
) -> None:
    with changing(path) as database:
        place = place_of(ONE, 4)
        database.execute("UPDATE events SET body = ? WHERE place = ?", (body, place))
        tags = "agent_text" if body.startswith(b'{"event"') else ""
        found = await read(path, ONE)
        assert found[3].event == DamagedEvent(tag=tags, raw=body, why="broken")
        assert [item.seq for item in found] == list(range(1, 9))
        assert [item.event for item in found[:3] + found[4:]] == EVENTS[:3] + EVENTS[4:]
        assert [item.event for item in await read(path, OTHER)] == EVENTS
        # Going on leaves it as it is.
        store = await Store.open(path)
        await store.append(ONE, [said(9)])
        await store.close()
        kept = database.execute("SELECT CAST(body AS BLOB) FROM events WHERE place = ?", (place,))
        assert kept.fetchone() == (body,)
    assert (await read(path, ONE))[8].event == said(9)


@pytest.mark.parametrize(
    "at", ["-1", "1 << 60", "'noon'", "x'00'", "1.5e300", "CAST(x'ff' AS TEXT)"]
)
async def test_an_event_at_no_time_is_read_all_the_same(path: Path, at: str) -> None:
    with changing(path) as database:
        database.execute(f"UPDATE events SET at = {at} WHERE place = ?", (place_of(ONE, 4),))
    found = await read(path, ONE)
    assert [item.event for item in found] == EVENTS
    assert found[3].at == 0


async def test_missing_events_leave_only_a_gap(path: Path) -> None:
    with changing(path) as database:
        places = [place_of(ONE, seq) for seq in (1, 4, 5, 8)]
        database.execute(f"DELETE FROM events WHERE place IN ({','.join(map(str, places))})")
    found = await read(path, ONE)
    gaps = [(one.seq, one.event.count) for one in found if isinstance(one.event, DamagedEvent)]
    assert gaps == [(1, 1), (4, 2), (8, 1)]
    assert [one.event for one in found if not isinstance(one.event, UnknownEvent)] == [
        EVENTS[1], EVENTS[2], EVENTS[5], EVENTS[6],
    ]  # fmt: skip
    store = await Store.open(path)
    await store.append(ONE, [said(9)])
    assert (await store.read_all(ONE))[-1] == StoredEvent(
        9, (await store.get(ONE)).updated_at, said(9)
    )
    await store.close()


@pytest.mark.parametrize("last", [0, 3, 7, -5, 1 << 62, "many"], ids=repr)
async def test_a_wrong_number_of_events_hides_and_overwrites_no_event(
    path: Path, last: object
) -> None:
    with changing(path) as database:
        database.execute("UPDATE sessions SET last_seq = ? WHERE id = ?", (last, ONE))
    assert [item.event for item in await read(path, ONE)] == EVENTS
    store = await Store.open(path)
    for number in (9, 10):
        await store.append(ONE, [said(number), TurnStarted(turn=TurnId(f"turn_{number}"))])
    found = [item.event for item in await store.read_all(ONE)]
    assert found[:8] == EVENTS
    assert [event for event in found[8:] if isinstance(event, AgentText)] == [said(9), said(10)]
    assert not any(isinstance(event, UnknownEvent) for event in found)
    assert [item.event for item in await store.read_all(OTHER)] == EVENTS
    await store.close()


async def test_an_event_that_cannot_be_added_is_reported_as_damage(path: Path) -> None:
    with changing(path) as database:  # as if the order of the rows were damaged
        database.execute("CREATE UNIQUE INDEX one_added ON events (at) WHERE body LIKE '%added%'")
    store = await Store.open(path)
    with pytest.raises(StoreDamagedError, match="sessions repair"):
        await store.append(ONE, [TurnStarted(turn=TurnId(f"added_{n}")) for n in range(2)])
    assert [item.event for item in await store.read_all(ONE)] == EVENTS
    await store.close()


async def test_an_unknown_format_of_the_file_is_reported_as_damage(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(47)  # the number of the schema's format
        file.write(b"\x7f")
    with pytest.raises(StoreDamagedError, match="sessions repair"):
        await Store.open(path)


async def test_a_header_that_forbids_writing_is_reported_as_damage_and_all_is_read(
    path: Path,
) -> None:
    with path.open("r+b") as file:
        file.seek(18)  # the format for writers; SQLite treats an unknown one as read-only
        file.write(b"\x7f")
    store = await Store.open(path)
    with pytest.raises(StoreDamagedError, match="forbids writing"):
        await store.append(ONE, [said(9)])
    assert [item.event for item in await store.read_all(ONE)] == EVENTS
    await store.close()


async def test_a_session_that_is_lost_from_the_list_does_not_keep_new_ones_away(path: Path) -> None:
    with changing(path) as database:
        database.execute("DELETE FROM sessions WHERE id = ?", (OTHER,))
    store = await Store.open(path)
    await store.create(NEW, [START, said(2)])
    await store.append(NEW, [said(3)])
    assert [item.event for item in await store.read_all(NEW)] == [START, said(2), said(3)]
    await store.close()
    with changing(path) as database:
        left = database.execute("SELECT count(*) FROM events WHERE place >> 32 = 2").fetchone()
    assert left == (8,)  # what is still there of the other one


async def test_a_key_that_is_far_too_large_does_not_keep_new_sessions_away(path: Path) -> None:
    with changing(path) as database:
        database.execute("UPDATE sessions SET key = ? WHERE id = ?", ((1 << 62) + 5, OTHER))
    store = await Store.open(path)
    await store.create(NEW, [START, said(2)])
    assert [item.event for item in await store.read_all(NEW)] == [START, said(2)]
    assert [item.event for item in await store.read_all(ONE)] == EVENTS
    await store.close()


ROWS: dict[str, list[object]] = {
    "directories": ["[", b"\xff", 7],
    "title": [b"\xff\xfe", 7, 1.5],
    "cwd": [b"\xff", 7],
    "created_at": [-1, "noon", 1 << 62],
    "updated_at": [-1, "noon", 1 << 62, b""],
    "turns": ["many", b"\x01"],
    "archived": ["?"],
}


@pytest.mark.parametrize(
    ("column", "value"), [(column, value) for column, values in ROWS.items() for value in values]
)
async def test_a_session_in_whose_row_a_value_is_broken_is_listed_with_the_others(
    path: Path, column: str, value: object
) -> None:
    text = isinstance(value, bytes) and value and column in {"title", "cwd", "directories"}
    put = "CAST(? AS TEXT)" if text else "?"
    with changing(path) as database:
        database.execute(f"UPDATE sessions SET {column} = {put} WHERE id = ?", (value, ONE))
    store = await Store.open(path)
    ids: list[str] = []
    cursor = None
    for _ in range(3):
        page = await store.list(with_empty=True, archived="include", limit=1, cursor=cursor)
        ids += [record.id for record in page.sessions]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert sorted(ids) == [ONE, OTHER]
    record = await store.get(ONE)
    assert 0 <= record.created_at < 1 << 48
    assert [item.event for item in await store.read_all(ONE)] == EVENTS
    await store.append(ONE, [said(9)])
    await store.close()


async def test_a_session_that_is_deleted_while_it_is_read_is_gone_and_not_damaged(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acp_agent.session.store.read_queries.BATCH_EVENTS", 3)
    store = await Store.open(path)
    batches = store.read(ONE)
    assert len(await anext(batches)) == 3
    await store.delete(ONE)
    with pytest.raises(SessionNotFoundError):
        await anext(batches)
    await store.close()
