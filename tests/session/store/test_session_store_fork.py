"""A session made of the beginning of another, in one transaction."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from acp_agent.errors import SessionError, SessionNotFoundError
from acp_agent.events import (
    AgentText,
    AnyEvent,
    DirectoriesChanged,
    SessionStarted,
    TitleChanged,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import MessageId, SessionId, TurnId, new_message_id, new_session_id
from acp_agent.session.store.records import DamagedEvent
from acp_agent.session.store.store import Store

FIRST: list[AnyEvent] = [
    SessionStarted(cwd="/project", directories=("/more",)),
    TurnStarted(turn=TurnId("turn_1")),
    UserMessage(message=new_message_id(), content=()),
    AgentText(message=MessageId("msg_1"), text="Yes."),
    TurnEnded(turn=TurnId("turn_1"), stop_reason="end_turn"),
]
BEHIND: list[AnyEvent] = [
    TurnStarted(turn=TurnId("turn_2")),
    TitleChanged(title="What the fork does not have"),
]
OWN: list[AnyEvent] = [DirectoriesChanged(cwd="/elsewhere"), TitleChanged(title="One (fork)")]


async def source_of(store: Store) -> SessionId:
    """A session of two turns."""
    source = new_session_id()
    await store.create(source, FIRST)
    await store.append(source, BEHIND)
    return source


async def test_a_fork_has_the_beginning_as_it_was_then_its_own_events(tmp_path: Path) -> None:
    now = 1_000
    store = await Store.open(tmp_path / "journal.db", clock=lambda: now)
    source = await source_of(store)
    before = await store.read_all(source), await store.get(source)
    now, fork = 2_000, new_session_id()
    await store.fork(fork, source, before[0][: len(FIRST)], OWN)
    events = await store.read_all(fork)
    assert [item.event for item in events] == [*FIRST, *OWN]
    assert [item.seq for item in events] == list(range(1, 8))
    assert [item.at for item in events] == [1_000] * 5 + [2_000] * 2
    record = await store.get(fork)
    assert (record.cwd, record.directories) == ("/elsewhere", ())
    assert (record.title, record.turns) == ("One (fork)", 1)
    assert (record.created_at, record.updated_at) == (2_000, 2_000)
    assert (await store.read_all(source), await store.get(source)) == before
    assert await store.check() == ()
    await store.close()


async def test_both_sessions_continue_apart_from_each_other(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "journal.db")
    source = await source_of(store)
    fork = new_session_id()
    await store.fork(fork, source, await store.read_all(source), [])
    await store.append(fork, [AgentText(message=MessageId("msg_f"), text="fork")])
    await store.append(source, [AgentText(message=MessageId("msg_s"), text="source")])
    last = [(await store.read_all(one))[-1].event for one in (source, fork)]
    assert [getattr(event, "text", "") for event in last] == ["source", "fork"]
    await store.delete(source)
    assert len(await store.read_all(fork)) == len(FIRST) + len(BEHIND) + 1
    assert await store.check() == ()
    await store.close()


async def test_an_event_of_a_newer_version_is_copied_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    store = await Store.open(path)
    source = await source_of(store)
    body = json.dumps({"event": "seen_in_a_dream", "é": [1, None]}, ensure_ascii=False)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE events SET body = ? WHERE body LIKE '%agent_text%'", (body,))
    fork = new_session_id()
    await store.fork(fork, source, await store.read_all(source), OWN)
    with sqlite3.connect(path) as database:
        copies = database.execute("SELECT body FROM events WHERE body LIKE '%dream%'").fetchall()
    assert copies == [(body,)] * 2
    await store.close()


async def test_a_fork_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    store = await Store.open(path)
    source = await source_of(store)
    events = await store.read_all(source)
    with pytest.raises(SessionError, match="exists already"):
        await store.fork(source, source, events, [])
    with pytest.raises(SessionNotFoundError):
        await store.fork(new_session_id(), new_session_id(), events, [])
    await store.close()


async def test_a_fork_has_the_damage_of_its_source_as_it_is_there(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    store = await Store.open(path)
    source = await source_of(store)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE events SET body = '{' WHERE body LIKE '%user_message%'")
        database.execute("DELETE FROM events WHERE body LIKE '%agent_text%'")
    events = await store.read_all(source)
    why = [item.event.why for item in events if isinstance(item.event, DamagedEvent)]
    assert set(why) == {"broken", "missing"}
    fork = new_session_id()
    await store.fork(fork, source, events, OWN)
    copied = await store.read_all(fork)
    assert copied[: len(events)] == events
    assert [item.event for item in copied[len(events) :]] == OWN
    await store.close()
