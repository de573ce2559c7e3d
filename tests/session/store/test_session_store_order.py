"""Appends that are under way together: their order, their failures, and closing behind them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from acp_agent.errors import (
    SessionError,
    SessionNotFoundError,
    StoreError,
)
from acp_agent.events import (
    AgentText,
    SessionStarted,
)
from acp_agent.ids import MessageId, SessionId, new_session_id
from acp_agent.session.store.store import Store

START = SessionStarted(cwd="/project", directories=("/library",))


def said(text: str, message: str = "msg_1") -> AgentText:
    return AgentText(message=MessageId(message), text=text)


async def events_of(store: Store, session: SessionId) -> list[object]:
    return [stored.event for stored in await store.read_all(session)]


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


async def test_an_append_of_a_cancelled_task_is_still_written(tmp_path: Path) -> None:
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


async def test_appends_before_closing_are_written_and_later_ones_fail(
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


async def test_the_event_loop_continues_while_the_journal_writes(tmp_path: Path) -> None:
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
