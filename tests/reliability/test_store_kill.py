"""The journal when its process is killed at any instant, and when several processes share it."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from acp_agent.errors import SessionNotFoundError
from acp_agent.events import AgentText, SessionStarted, TurnStarted
from acp_agent.ids import MessageId, SessionId
from acp_agent.session.store.store import Store
from tests.reliability.store_processes import begin, finish, kill


def numbers(events: Sequence[object]) -> list[int]:
    """The numbers that `store_child.py write` gave its events, in their order."""
    assert isinstance(events[0], SessionStarted)
    assert isinstance(events[1], TurnStarted)
    found = []
    for event in events[2:]:
        assert isinstance(event, AgentText)
        number, _, rest = event.text.partition(":")
        assert len(rest) == 200
        assert event.message == f"msg_{number}"
        found.append(int(number))
    return found


async def test_after_kill_9_all_acknowledged_events_are_stored_in_order(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.db"
    chance = random.Random(7)
    acknowledged: dict[SessionId, list[int]] = {}
    for attempt in range(8):
        session = SessionId(f"sess_{attempt}")
        child = begin("write", path, session, 100_000)
        assert child.stdout is not None
        said = [child.stdout.readline().strip() for _ in range(chance.randrange(1, 400))]
        time.sleep(chance.random() * 0.003)  # an instant between two lines, not a wait
        said += kill(child)
        assert said[0] == "created"
        acknowledged[session] = [int(line) for line in said[1:]]

    store = await Store.open(path)
    for session, told in acknowledged.items():
        found = numbers([stored.event for stored in await store.read_all(session)])
        assert found == list(range(len(found)))  # in order, without a hole
        assert len(found) >= len(told)
        assert sorted(told) == list(range(len(told)))
        await store.append(session, [AgentText(message=MessageId("msg_x"), text="it goes on")])
    assert await store.check() == ()
    await store.close()


async def test_every_journal_opens_after_kill_9_during_its_creation(
    tmp_path: Path,
) -> None:
    chance = random.Random(11)
    opened = 0
    for attempt in range(8):
        folder = tmp_path / str(attempt)
        child = begin("open", folder / "journal.db")
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        done = [int(child.stdout.readline()) for _ in range(attempt)]
        time.sleep(chance.random() * 0.01)  # an instant between two lines, not a wait
        done += [int(line) for line in kill(child)]
        for path in folder.glob("*.db"):
            number = int(path.stem)
            store = await Store.open(path)
            try:
                assert len(await store.read_all(SessionId(f"sess_{number}"))) == 2
            except SessionNotFoundError:
                assert number not in done
            await store.create(SessionId("sess_new"), [SessionStarted(cwd="/project")])
            assert await store.check() == ()
            await store.close()
            opened += 1
    assert opened >= sum(range(8))


async def test_processes_that_start_together_share_a_new_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    children = [begin("write", path, f"sess_{n}", 100) for n in range(4)]
    for child in children:
        output, _ = child.communicate(timeout=60)
        assert child.returncode == 0, output
        assert len(output.splitlines()) == 101
    store = await Store.open(path)
    for n in range(4):
        events = [stored.event for stored in await store.read_all(SessionId(f"sess_{n}"))]
        assert numbers(events) == list(range(100))
    assert len((await store.list()).sessions) == 4
    await store.close()


async def test_a_process_sees_events_of_another_at_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    store = await Store.open(path)
    child = begin("write", path, "sess_other", 100_000)
    assert child.stdout is not None
    assert child.stdout.readline() == "created\n"
    for _ in range(20):
        number = int(child.stdout.readline())
        events = [stored.event for stored in await store.read_all(SessionId("sess_other"))]
        assert number in numbers(events)
    kill(child)
    await store.close()


@pytest.mark.parametrize("processes", [3])
async def test_the_list_can_be_read_while_others_write_and_die(
    tmp_path: Path, processes: int
) -> None:
    path = tmp_path / "journal.db"
    store = await Store.open(path)
    children = [begin("write", path, f"sess_{n}", 100_000) for n in range(processes)]
    for child in children:
        assert child.stdout is not None
        child.stdout.readline()
    for child in children:
        page = await store.list()
        assert {record.id for record in page.sessions} == {f"sess_{n}" for n in range(processes)}
        kill(child)
    assert await store.check() == ()
    await store.close()
    assert finish("write", path, "sess_last", 4)[-1] == "3"
