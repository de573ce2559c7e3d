"""Sessions that lists leave out."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from acp_agent.errors import SessionNotFoundError, StoreNewerError
from acp_agent.events import AgentText, AnyEvent, SessionStarted, TurnStarted
from acp_agent.ids import MessageId, SessionId, TurnId, new_session_id
from acp_agent.session.store.database import open_database
from acp_agent.session.store.records import ArchiveFilter
from acp_agent.session.store.schema import MIGRATIONS
from acp_agent.session.store.store import Store

FIRST: list[AnyEvent] = [SessionStarted(cwd="/project"), TurnStarted(turn=TurnId("turn_1"))]


async def made(store: Store, count: int) -> list[SessionId]:
    """So many sessions with a turn each."""
    sessions = [new_session_id() for _ in range(count)]
    for session in sessions:
        await store.create(session, FIRST)
    return sessions


async def listed(store: Store, archived: ArchiveFilter, *, limit: int = 2) -> set[SessionId]:
    """All pages of a list, small ones."""
    found: set[SessionId] = set()
    cursor = None
    while True:
        page = await store.list(archived=archived, cursor=cursor, limit=limit)
        found.update(record.id for record in page.sessions)
        cursor = page.next_cursor
        if cursor is None:
            return found


async def test_a_list_leaves_archived_sessions_out_has_them_too_or_has_them_alone(
    tmp_path: Path,
) -> None:
    store = await Store.open(tmp_path / "journal.db")
    sessions = await made(store, 7)
    hidden = set(sessions[1::2])
    for session in hidden:
        await store.archive(session)
        await store.archive(session)  # again is the same
    assert await listed(store, "exclude") == set(sessions) - hidden
    assert await listed(store, "include") == set(sessions)
    assert await listed(store, "only") == hidden
    everything = (await store.list(archived="include")).sessions
    assert {record.id for record in everything if record.archived} == hidden
    await store.close()


async def test_an_unarchived_session_is_unchanged(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "journal.db")
    (session,) = await made(store, 1)
    before = await store.get(session), await store.read_all(session)
    await store.archive(session)
    for _ in range(2):
        await store.archive(session, archived=False)
        assert (await store.get(session), await store.read_all(session)) == before
    await store.close()
    store = await Store.open(tmp_path / "journal.db")
    await store.archive(session)
    assert (await store.get(session)).archived
    await store.close()


async def test_an_unknown_session_cannot_be_archived(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "journal.db")
    for archived in (True, False):
        with pytest.raises(SessionNotFoundError):
            await store.archive(SessionId("sess_unknown"), archived=archived)
    await store.close()


async def test_an_old_journal_is_migrated_while_an_older_program_writes_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.db"
    older = open_database(path, migrations=MIGRATIONS[:1])
    add = "INSERT INTO sessions (id, cwd, directories, created_at, updated_at) VALUES (?,?,?,?,?)"
    older.connection.execute(add, ("sess_old", "/project", "[]", 1, 1))
    store = await Store.open(path)
    assert not (await store.get(SessionId("sess_old"))).archived
    await store.archive(SessionId("sess_old"))
    older.connection.execute(add, ("sess_late", "/project", "[]", 1, 1))
    older.connection.execute("UPDATE sessions SET turns = turns + 1 WHERE id = 'sess_old'")
    assert (await store.get(SessionId("sess_old"))).archived
    late = SessionId("sess_late")
    assert not (await store.get(late)).archived
    await store.append(late, [AgentText(message=MessageId("msg_1"), text="Here.")])
    older.connection.close()
    await store.close()
    with pytest.raises(StoreNewerError, match="update acp-agent"):
        open_database(path, migrations=MIGRATIONS[:1])
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
