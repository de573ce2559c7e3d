"""A log without its journal or its index, and when the log is empty."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from acp_agent.content import TextBlock
from acp_agent.errors import StoreDamagedError
from acp_agent.events import AnyEvent, SessionStarted, TurnEnded, TurnStarted, UserMessage
from acp_agent.ids import SessionId, new_message_id, new_session_id, new_turn_id
from acp_agent.session.store.store import Store
from tests.cli.cli_process import acp_agent
from tests.support.agent_process import StartAgent


def conversation() -> list[AnyEvent]:
    turn = new_turn_id()
    return [
        TurnStarted(turn=turn),
        UserMessage(message=new_message_id(), content=(TextBlock(text="Hello " * 300),)),
        TurnEnded(turn=turn, stop_reason="end_turn"),
    ]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Where `acp-agent` looks for the journal."""
    return tmp_path / "agent" / "sessions.db"


def log_path(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


async def killed(path: Path) -> list[SessionId]:
    """Write a journal as an agent that was killed leaves it: the second session is in the log."""
    living = path.with_name("living.db")
    store = await Store.open(living)
    names = [new_session_id(), new_session_id()]
    await store.create(names[0], [SessionStarted(cwd="/w"), *conversation()])
    await store.checkpoint()
    assert not log_path(living).stat().st_size
    await store.create(names[1], [SessionStarted(cwd="/w"), *conversation()])
    await store.append(names[1], conversation())
    for file in path.parent.glob("living.db*"):
        shutil.copyfile(file, path.with_name(file.name.replace("living", "sessions")))
    await store.close()
    for file in path.parent.glob("living.db*"):
        file.unlink()
    return names


async def sessions_in(path: Path) -> list[SessionId]:
    store = await Store.open(path)
    page = await store.list(limit=1000, with_empty=True)
    await store.close()
    return [record.id for record in page.sessions]


@pytest.mark.parametrize("emptied", [False, True])
async def test_a_log_without_its_journal_is_reported_and_recovered(
    tmp_path: Path, journal: Path, emptied: bool
) -> None:
    names = await killed(journal)
    data = log_path(journal).read_bytes()
    journal.unlink()
    if emptied:
        journal.touch()
    for _ in range(2):  # the next start says the same
        with pytest.raises(StoreDamagedError) as caught:
            await Store.open(journal)
        for word in ("sessions.db-wal is still there", "acp-agent sessions repair"):
            assert word in str(caught.value)
        assert journal.exists() is emptied
    checked = acp_agent(tmp_path, "sessions", "check")
    assert checked.returncode == 1
    assert "sessions.db-wal" in checked.stdout

    repaired = acp_agent(tmp_path, "sessions", "repair")
    assert repaired.returncode == 0, repaired.stderr
    (saved,) = journal.parent.glob("sessions.db.damaged-*-wal")
    assert f"The log is saved as {saved}." in repaired.stdout
    assert saved.read_bytes() == data
    assert names[1] in await sessions_in(journal)
    assert acp_agent(tmp_path, "sessions", "check").returncode == 0


async def test_a_log_without_its_index_is_whole(tmp_path: Path, journal: Path) -> None:
    names = await killed(journal)
    journal.with_name("sessions.db-shm").unlink(missing_ok=True)
    assert set(await sessions_in(journal)) == set(names)
    assert acp_agent(tmp_path, "sessions", "check").returncode == 0


async def test_the_log_is_empty_once_a_session_is_closed(
    agent: StartAgent, home: Path, workspace_repo: Path
) -> None:
    running = await agent("--model", "demo/demo")
    await running.initialize()
    sessions = [await running.new_session(workspace_repo) for _ in range(2)]
    for session in sessions:
        await running.prompt(session, "hello")
    (log,) = home.rglob("sessions.db-wal")
    assert log.stat().st_size
    await running.request("session/close", {"sessionId": sessions[0]})
    assert not log.stat().st_size
    await running.prompt(sessions[1], "and then?")
    assert log.stat().st_size
