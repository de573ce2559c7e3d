"""What requests took is kept for all sessions, and of those that were there before."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from acp_agent.events import ModelAnswered, SessionForked, SessionStarted, Usage
from acp_agent.ids import MessageId, new_session_id
from acp_agent.session.store.database import open_database
from acp_agent.session.store.schema import MIGRATIONS
from acp_agent.session.store.store import Store
from acp_agent.session.store.usage import QUARTER

TOOK = Usage(input=900, output=100, cache_read=300, cache_write=20, reasoning=40)
BEFORE = 2  # the version of a journal that kept nothing of it


def answered(cost: float | None = None) -> ModelAnswered:
    return ModelAnswered(message=MessageId("m"), model="a/b", usage=TOOK, cost=cost)


async def test_usage_is_recorded_in_the_same_transaction(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "journal.db", clock=lambda: 5 * QUARTER + 7)
    session = new_session_id()
    await store.create(session, [SessionStarted(cwd="/w")])
    await store.append(
        session, [answered(0.25), answered(), ModelAnswered(message=MessageId("x"), model="")]
    )
    await store.append(session, [answered(0.5), answered()])
    unpriced, other, priced = sorted(await store.usage_since(0), key=lambda row: row.requests)
    assert (priced.at, priced.project, priced.model) == (5 * QUARTER, "/w", "a/b")
    assert (priced.requests, priced.cost, priced.usage) == (2, 0.75, TOOK + TOOK)
    assert (unpriced.requests, unpriced.cost, unpriced.usage) == (1, None, TOOK)
    assert other == unpriced
    spent = await store.spent_since(0)
    assert (spent.tokens, spent.cost, spent.unpriced) == (4_000, 0.75, (("a/b", TOOK),) * 2)
    assert (await store.spent_since(6 * QUARTER)).tokens == 0
    await store.close()


async def test_a_deleted_session_leaves_its_numbers_without_its_name_and_place(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.db"
    store = await Store.open(path)
    session = new_session_id()
    await store.create(session, [SessionStarted(cwd="/secret/place"), answered(1.0)])
    await store.delete(session)
    (row,) = await store.usage_since(0)
    assert (row.project, row.cost) == ("", 1.0)
    await store.close()
    content = path.read_bytes()
    assert b"/secret/place" not in content
    assert session.encode() not in content


async def test_usage_of_an_older_journal_is_counted_once_without_copies_of_forks(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.db"
    now = 1_000
    store = await Store.open(path, clock=lambda: now)
    source, fork = new_session_id(), new_session_id()
    await store.create(source, [SessionStarted(cwd="/w"), answered(1.0)])
    copied = await store.read_all(source)
    now = 2_000
    await store.fork(fork, source, copied, [SessionForked(source=source), answered(1.0)])
    assert (await store.spent_since(0)).tokens == 2_000
    await store.close()
    with sqlite3.connect(path) as database:  # as a program of that version left it
        database.execute("DROP TABLE usage")
        database.execute("ALTER TABLE sessions DROP COLUMN configured")
        database.execute(f"PRAGMA user_version = {BEFORE}")
    database.close()
    open_database(path, migrations=MIGRATIONS).connection.close()
    store = await Store.open(path)
    spent = await store.spent_since(0)
    assert (spent.tokens, spent.cost, spent.unpriced) == (2_000, 0.0, (("a/b", TOOK),) * 2)
    assert [(row.usage, row.cost) for row in await store.usage_since(0)] == [(TOOK, None)] * 2
    await store.close()


async def test_a_running_agent_goes_on_writing_when_a_newer_version_adds_columns(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.db"
    store = await Store.open(path)
    session = new_session_id()
    await store.create(session, [SessionStarted(cwd="/w")])
    with sqlite3.connect(path) as database:
        for table in ("sessions", "events", "usage"):
            database.execute(f"ALTER TABLE {table} ADD COLUMN newer TEXT")
    database.close()
    await store.append(session, [answered(1.0)])
    await store.create(new_session_id(), [SessionStarted(cwd="/w"), answered(1.0)])
    assert (await store.spent_since(0)).tokens == 2_000
    await store.close()


async def test_usage_is_summed_before_it_is_read(tmp_path: Path) -> None:
    store = await Store.open(
        tmp_path / "journal.db", clock=iter(range(0, 10**12, QUARTER)).__next__
    )
    session = new_session_id()
    await store.create(session, [SessionStarted(cwd="/w")])
    for _ in range(20):
        await store.append(session, [answered(0.5), answered()])
    unpriced, priced = sorted(
        await store.usage_since(0, by=["project"], separate=["x/y"]),
        key=lambda row: bool(row.cost),
    )
    assert (priced.requests, priced.cost, priced.project, priced.model) == (20, 10.0, "/w", "")
    assert (unpriced.requests, unpriced.cost, unpriced.model) == (20, None, "a/b")
    assert len(await store.usage_since(0, by=["project"], separate=["a/b"])) == 21
    await store.close()
