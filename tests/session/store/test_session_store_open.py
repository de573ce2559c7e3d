"""Opening a journal: new, old, newer, broken, and what is no journal at all."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from acp_agent.errors import StoreDamagedError, StoreError, StoreNewerError
from acp_agent.events import AgentText, SessionStarted
from acp_agent.ids import MessageId, SessionId, new_session_id
from acp_agent.session.store.database import open_database
from acp_agent.session.store.records import DamagedEvent
from acp_agent.session.store.schema import MIGRATIONS, Identity
from acp_agent.session.store.store import Store

START = SessionStarted(cwd="/project")


async def make_journal(path: Path, events: int = 200) -> SessionId:
    store = await Store.open(path)
    session = new_session_id()
    await store.create(session, [START])
    await store.append(
        session,
        [AgentText(message=MessageId(f"msg_{n}"), text="word " * 40) for n in range(events)],
    )
    await store.close()
    return session


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


async def test_a_new_journal_and_its_folder_are_for_their_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "data" / "journal.db"
    store = await Store.open(path)
    await store.create(new_session_id(), [START])
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {found.name for found in path.parent.iterdir()} >= {"journal.db", "journal.db-wal"}
    for found in path.parent.glob("journal.db*"):
        assert stat.S_IMODE(found.stat().st_mode) == 0o600
    await store.close()


async def test_an_empty_file_becomes_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    path.touch()
    store = await Store.open(path)
    session = new_session_id()
    await store.create(session, [START])
    assert len(await store.read_all(session)) == 1
    await store.close()


async def test_a_name_with_every_odd_character_is_a_name(tmp_path: Path) -> None:
    path = tmp_path / "a?b#c%20d é 日" / "journal.db?mode=ro#x"
    session = await make_journal(path, 1)
    assert path.is_file()
    store = await Store.open(path)
    assert len(await store.read_all(session)) == 2
    await store.close()


async def test_a_link_leads_to_the_same_journal_and_the_same_locks(tmp_path: Path) -> None:
    path, link = tmp_path / "real" / "journal.db", tmp_path / "link.db"
    session = await make_journal(path, 1)
    link.symlink_to(path)
    one, other = await Store.open(path), await Store.open(link)
    assert one.path == other.path
    assert await one.read_all(session) == await other.read_all(session)
    await one.close()
    await other.close()


def written(path: Path, *statements: str) -> None:
    database = sqlite3.connect(path)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()


def foreign_database(path: Path) -> None:
    written(path, "CREATE TABLE photos (id INTEGER)")


def foreign_database_with_a_log(path: Path) -> None:
    """As a killed program leaves it: its tables are in the log only."""
    source = path.with_name("source")
    database = sqlite3.connect(source)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE photos (id INTEGER)")
    database.commit()
    for suffix in ("", "-wal"):
        content = source.with_name(source.name + suffix).read_bytes()
        path.with_name(path.name + suffix).write_bytes(content)
    database.close()
    source.unlink()


def foreign_application(path: Path) -> None:
    written(path, "PRAGMA application_id = 12345", "CREATE TABLE sessions (id INTEGER)")


def foreign_version(path: Path) -> None:
    written(path, "PRAGMA user_version = 1", "CREATE TABLE events (id INTEGER)")


def text_file(path: Path) -> None:
    path.write_text("my diary\n" * 1_000)


def short_file(path: Path) -> None:
    path.write_bytes(b"x")


def zeros(path: Path) -> None:
    path.write_bytes(bytes(8_192))


@pytest.mark.parametrize(
    "make",
    [
        foreign_database,
        foreign_database_with_a_log,
        foreign_application,
        foreign_version,
        text_file,
        short_file,
        zeros,
    ],
)
async def test_a_file_that_is_no_journal_is_refused_and_stays_byte_for_byte(
    tmp_path: Path, make: object
) -> None:
    path = tmp_path / "journal.db"
    assert callable(make)
    make(path)
    before = files(tmp_path)
    with pytest.raises(StoreDamagedError) as told:
        await Store.open(path)
    assert str(path) in str(told.value)
    assert "\n" not in str(told.value)
    assert files(tmp_path) == before


@pytest.mark.parametrize("keep", [50, 99, 100, 4_096, 4_097, 20_000])
async def test_a_truncated_journal_is_refused_and_stays_byte_for_byte(
    tmp_path: Path, keep: int
) -> None:
    path = tmp_path / "journal.db"
    await make_journal(path)
    path.write_bytes(path.read_bytes()[:keep])
    before = files(tmp_path)
    with pytest.raises(StoreDamagedError, match=r"damaged.*acp-agent sessions repair"):
        await Store.open(path)
    assert files(tmp_path) == before


async def test_a_journal_of_a_newer_version_is_refused_and_stays_byte_for_byte(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.db"
    await make_journal(path)
    database = sqlite3.connect(path)
    database.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    database.close()
    before = files(tmp_path)
    with pytest.raises(StoreNewerError, match=r"newer version.*update acp-agent"):
        await Store.open(path)
    assert files(tmp_path) == before


async def test_damaged_pages_lose_nothing_that_is_on_other_pages(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.db"
    session = await make_journal(path, 2_000)
    content = bytearray(path.read_bytes())
    for page in range(20, 60):
        content[page * 4_096 : (page + 1) * 4_096] = b"\xaa" * 4_096
    path.write_bytes(content)
    store = await Store.open(path)
    events = await store.read_all(session)
    lost = [item.seq for item in events if isinstance(item.event, DamagedEvent)]
    assert [item.seq for item in events] == list(range(1, 2_002))
    assert 300 < len(lost) < 800  # of 40 pages, with a dozen events each
    assert {item.event.text for item in events if isinstance(item.event, AgentText)} == {
        "word " * 40
    }
    assert await store.read_all(session) == events
    assert len((await store.list(with_empty=True)).sessions) == 1
    assert await store.check()
    await store.close()


async def test_an_older_journal_is_brought_up_to_date_with_all_that_it_holds(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.db"
    session = await make_journal(path, 3)
    later = (*MIGRATIONS, ("ALTER TABLE sessions ADD COLUMN starred INTEGER NOT NULL DEFAULT 0",))
    database = open_database(path, migrations=later)
    assert Identity(database.connection).version == len(later)
    rows = database.connection.execute("SELECT id, starred FROM sessions").fetchall()
    database.connection.close()
    assert rows == [(session, 0)]
    with pytest.raises(StoreNewerError):
        await Store.open(path)


def test_a_new_journal_that_many_open_at_the_same_moment_is_made_once(tmp_path: Path) -> None:
    together = threading.Barrier(6)

    def open_all() -> list[int]:
        versions = []
        for number in range(25):
            together.wait(timeout=30)
            database = open_database(tmp_path / f"{number}.db")
            versions.append(Identity(database.connection).version)
            database.connection.close()
        return versions

    with ThreadPoolExecutor(6) as threads:
        opened = [threads.submit(open_all) for _ in range(6)]
        for versions in opened:
            assert versions.result(timeout=60) == [len(MIGRATIONS)] * 25


async def test_a_migration_that_fails_leaves_the_older_journal_whole(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    session = await make_journal(path, 3)
    broken = (*MIGRATIONS, ("CREATE TABLE extra (id INTEGER)", "CREATE TABLE extra (id INTEGER)"))
    with pytest.raises(StoreError):
        open_database(path, migrations=broken)
    store = await Store.open(path)
    assert len(await store.read_all(session)) == 4
    await store.close()
    database = sqlite3.connect(path)
    assert not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'extra'").fetchall()
    database.close()


async def test_a_folder_or_a_dead_end_in_the_place_of_the_file_is_a_clear_error(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (tmp_path, tmp_path / "file" / "journal.db", tmp_path / "loop"):
        with pytest.raises(StoreError) as told:
            await Store.open(path)
        assert str(path) in str(told.value)
        assert "\n" not in str(told.value)


def test_opening_the_journal_imports_nothing_that_a_start_cannot_afford() -> None:
    heavy = {"pydantic", "dataclasses", "openai", "anthropic", "keyring", "tree_sitter", "rich"}
    code = "import sys, acp_agent.session.store.store; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "sqlite3" in done.stdout.split()
    assert not heavy & set(done.stdout.split())


async def test_opening_that_is_given_up_leaves_no_thread_behind(tmp_path: Path) -> None:
    before = threading.enumerate()
    task = asyncio.ensure_future(Store.open(tmp_path / "journal.db"))
    await asyncio.sleep(0)
    started = [thread for thread in threading.enumerate() if thread not in before]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert started
    for thread in started:
        thread.join(timeout=60)
        assert not thread.is_alive()
