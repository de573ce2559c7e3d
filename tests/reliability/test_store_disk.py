"""The journal when the disk is full or may not be written."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_agent.errors import SessionNotFoundError, StoreError
from acp_agent.events import AgentText, SessionStarted
from acp_agent.ids import SessionId
from acp_agent.session.store import database as store_database
from acp_agent.session.store.store import Store
from tests.reliability.store_child import NOBODY, numbered
from tests.reliability.store_processes import begin, command, finish, kill


async def test_a_refused_write_is_reported_and_later_writes_work(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.db"
    lines = finish("limited", path, 1_000_000)
    what, number, message = lines[0].split(" ", 2)
    assert what == "refused"
    assert str(path) in message
    assert "the disk refused to read or write it; check its space" in message
    committed = int(number)
    assert committed > 10
    assert lines[1:] == [f"readable {committed + 2}", "refused again"]

    store = await Store.open(path)
    events = [stored.event for stored in await store.read_all(SessionId("sess_limited"))]
    assert await store.check() == ()
    await store.close()
    texts = [event.text.partition(":")[0] for event in events if isinstance(event, AgentText)]
    assert texts == [str(n) for n in range(committed + 1)]  # the last one was written afterwards


def test_a_full_disk_is_reported_and_writing_continues_when_there_is_space(
    tmp_path: Path,
) -> None:
    mount = "mount -t tmpfs -o size=3m tmpfs " + str(tmp_path)
    try:
        subprocess.run(
            ["unshare", "-rm", "sh", "-c", mount], check=True, capture_output=True, timeout=20
        )
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"a small disk cannot be mounted here: {error}")
    inside = ("unshare", "-rm", "sh", "-c", mount + ' && exec "$@"', "sh")
    lines = finish("small", tmp_path / "journal.db", prefix=inside)
    what, number, message = lines[0].split(" ", 2)
    assert what == "refused"
    assert "journal.db failed: the disk is full; free some space and try again" in message
    committed = int(number)
    assert committed > 10
    assert lines[1] == lines[2] == f"readable {committed + 2}"
    assert lines[3].startswith("refused ")
    assert lines[4] == "whole True"


async def test_a_long_lock_of_another_process_is_reported_and_a_short_one_is_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_database, "BUSY_SECONDS", 0.3)
    session = SessionId("sess_a")
    store = await Store.open(tmp_path / "journal.db")
    await store.create(session, [SessionStarted(cwd="/project")])
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    outcomes = await asyncio.wait_for(
        asyncio.gather(
            *(store.append(session, [numbered(n)]) for n in range(20)), return_exceptions=True
        ),
        timeout=5,
    )
    assert {type(outcome) for outcome in outcomes} == {StoreError}
    assert "another process kept it locked" in str(outcomes[0])
    assert len(await store.read_all(session)) == 1  # reading never waits for a writer

    waiting = asyncio.ensure_future(store.append(session, [numbered(20)]))
    await store_reached_the_lock(store)
    other.execute("ROLLBACK")
    await waiting
    assert len(await store.read_all(session)) == 2
    other.close()
    await store.close()


async def test_a_journal_deleted_during_use_is_reported_and_not_written(
    tmp_path: Path,
) -> None:
    session, later = SessionId("sess_a"), SessionId("sess_b")
    store = await Store.open(tmp_path / "journal.db")
    await store.create(session, [SessionStarted(cwd="/project")])
    for path in tmp_path.glob("journal.db*"):
        path.unlink()
    with pytest.raises(StoreError, match="was moved or deleted while it was in use"):
        await store.append(session, [numbered(1)])
    await store.create(later, [SessionStarted(cwd="/project")])
    await store.close()

    store = await Store.open(tmp_path / "journal.db")
    assert len(await store.read_all(later)) == 1
    with pytest.raises(SessionNotFoundError):
        await store.read_all(session)
    await store.close()


async def store_reached_the_lock(store: Store) -> None:
    """Until the thread has taken the append that was asked for; it waits for the lock then."""
    queue = store._worker._queue
    deadline = asyncio.get_running_loop().time() + 5
    while True:
        await asyncio.sleep(0)
        if queue.empty():
            return
        assert asyncio.get_running_loop().time() < deadline


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that a process without rights can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="acp-agent-"))
    folder.chmod(0o755)
    (folder / "data" / "warm").mkdir(parents=True)
    (folder / "data" / "warm").chmod(0o777)
    yield folder / "data"
    (folder / "data").chmod(0o755)
    shutil.rmtree(folder)


def forbid_writing(folder: Path) -> None:
    for path in (*folder.glob("journal.db*"), folder):
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
        path.chmod(0o500 if path.is_dir() else 0o400)


@pytest.mark.parametrize("killed", [False, True], ids=["closed", "killed"])
def test_a_journal_that_may_not_be_written_is_still_listed_and_read(
    open_folder: Path, killed: bool
) -> None:
    path = open_folder / "journal.db"
    if killed:  # its last events are in the log beside it only
        child = begin("write", path, "sess_a", 100_000)
        assert child.stdout is not None
        for _ in range(9):
            child.stdout.readline()
        kill(child)
        assert path.with_name("journal.db-wal").stat().st_size
    else:
        finish("write", path, "sess_a", 8)
    forbid_writing(open_folder)

    lines = finish("look", path, "sess_a")

    assert lines[0] == "listed sess_a"
    what, count = lines[1].split()
    assert what == "read"
    assert int(count) >= 10
    assert lines[2].startswith("refused ")
    assert f"{path} failed: it cannot be written; check the permissions" in lines[2]
    assert lines[3].startswith("no lease ")
    assert "check the folder and its permissions" in lines[3]
    assert lines[4] == f"appended {int(count) + 1}"  # once it may be written, it is


async def test_a_journal_that_cannot_be_created_is_reported_and_leaves_no_file(
    open_folder: Path,
) -> None:
    (open_folder / "warm").chmod(0o777)
    forbid_writing(open_folder)
    done = subprocess.run(
        command("look", open_folder / "journal.db", "sess_a"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.stdout.startswith("error StoreError the journal ")
    assert "cannot be opened: Permission denied; check the folder" in done.stdout
    assert [path.name for path in open_folder.iterdir()] == ["warm"]
