"""Who may write a session: one process at a time, however the last one ended."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from acp_agent.errors import SessionBusyError, SessionNotFoundError
from acp_agent.ids import SessionId, new_session_id
from acp_agent.platform.posix import try_lock
from acp_agent.session.store import lease as store_lease
from acp_agent.session.store.store import Store
from tests.reliability.store_processes import begin, kill

SESSION = SessionId("sess_a")


async def test_a_session_open_in_another_process_is_refused_until_it_is_closed(
    tmp_path: Path,
) -> None:
    store = await Store.open(tmp_path / "journal.db")
    child = begin("lease", store.path, SESSION)
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    with pytest.raises(SessionBusyError, match=f"{SESSION} is open in another process"):
        store.lease(SESSION)
    store.lease(SessionId("sess_b")).release()

    child.communicate(timeout=30)
    assert child.returncode == 0
    store.lease(SESSION).release()
    assert list((tmp_path / "locks").iterdir()) == []
    await store.close()


async def test_a_session_is_free_again_after_kill_9(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "journal.db")
    child = begin("lease", store.path, SESSION)
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    kill(child)
    store.lease(SESSION).release()
    assert list((tmp_path / "locks").iterdir()) == []
    await store.close()


async def test_a_session_is_leased_once_within_a_process(tmp_path: Path) -> None:
    one, other = [await Store.open(tmp_path / "journal.db") for _ in range(2)]
    lease = one.lease(SESSION)
    for store in (one, other):
        with pytest.raises(SessionBusyError):
            store.lease(SESSION)
    lease.release()
    lease.release()
    second = other.lease(SESSION)
    lease.release()  # not its own any more
    with pytest.raises(SessionBusyError):
        one.lease(SESSION)
    second.release()
    await one.close()
    await other.close()


async def test_a_lock_file_that_its_holder_removes_at_the_last_moment_protects_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = [await Store.open(tmp_path / "journal.db") for _ in range(2)]
    first = one.lease(SESSION)

    def released_meanwhile(descriptor: int) -> bool:
        first.release()  # between the other's opening of the file and its locking of it
        return try_lock(descriptor)

    monkeypatch.setattr(store_lease, "try_lock", released_meanwhile)
    second = other.lease(SESSION)
    with pytest.raises(SessionBusyError):
        one.lease(SESSION)
    second.release()
    await one.close()
    await other.close()


def test_processes_that_contend_for_a_session_are_never_in_it_together(tmp_path: Path) -> None:
    children = [begin("contend", tmp_path / "journal.db", SESSION, 200) for _ in range(3)]
    for child in children:
        output, _ = child.communicate(timeout=60)
        assert (child.returncode, output) == (0, "done\n")
    assert list((tmp_path / "locks").iterdir()) == []


async def test_locks_that_killed_processes_left_are_removed_and_those_in_use_are_not(
    tmp_path: Path,
) -> None:
    store = await Store.open(tmp_path / "journal.db")
    held = store.lease(SESSION)
    locks = tmp_path / "locks"
    for name in ("sess_a.lock", "sess_dead.lock"):
        (locks / name).touch()
        long_ago = time.time() - 86_400
        os.utime(locks / name, (long_ago, long_ago))
    (locks / "sess_fresh.lock").touch()
    await store.close()

    store = await Store.open(tmp_path / "journal.db")
    await store.list()  # behind the sweep in the thread's queue
    assert {path.name for path in locks.iterdir()} == {"sess_a.lock", "sess_fresh.lock"}
    with pytest.raises(SessionBusyError):
        store.lease(SESSION)
    held.release()
    store.lease(SESSION).release()
    await store.close()


@pytest.mark.parametrize("name", ["", "../sess_a", "a/b", "a\x00b", ".", "..", "é", "x" * 101])
async def test_an_id_that_is_no_valid_file_name_is_no_session(tmp_path: Path, name: str) -> None:
    store = await Store.open(tmp_path / "data" / "journal.db")
    with pytest.raises(SessionNotFoundError):
        store.lease(SessionId(name))
    await store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


async def test_the_ids_that_we_make_can_be_leased(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "journal.db")
    store.lease(new_session_id()).release()
    await store.close()
