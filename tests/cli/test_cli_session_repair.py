"""`acp-agent sessions check|repair`, and damaged sessions on the command line."""

from __future__ import annotations

import asyncio
import io
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from acp_agent.cli.main import main
from acp_agent.content import TextBlock
from acp_agent.events import (
    AgentText,
    AnyEvent,
    ModelAnswered,
    ModelAsked,
    SessionStarted,
    TitleChanged,
    TurnEnded,
    TurnStarted,
    Usage,
    UserMessage,
)
from acp_agent.ids import (
    SessionId,
    new_message_id,
    new_session_id,
    new_turn_id,
)
from acp_agent.session.store.records import StoredEvent, UnknownEvent
from acp_agent.session.store.store import Store

KEY = "sk-ant-api03-" + "k" * 80


def conversation(number: int) -> list[AnyEvent]:
    """A turn, with a text too long for one page of the file."""
    turn, answer = new_turn_id(), new_message_id()
    words = (TextBlock(text=f"Question {number}"),)
    return [
        TurnStarted(turn=turn),
        UserMessage(message=new_message_id(), content=words),
        TitleChanged(title=f"Title {number}"),
        ModelAsked(message=answer, model="demo/demo"),
        AgentText(message=answer, text=f"Answer {number}. " + "lorem ipsum " * 900 * (number % 3)),
        ModelAnswered(message=answer, model="demo/demo", usage=Usage(input=5, output=3), cost=0.5),
        TurnEnded(turn=turn, stop_reason="end_turn"),
    ]


class Ran(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ACP_AGENT_HOME", str(tmp_path / "agent"))
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.delenv("LC_ALL", raising=False)


async def acp_agent(*words: str) -> Ran:
    """Run a command in this process: there are many here, and a start takes long."""

    def run() -> Ran:
        out, errors = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(errors):
            status = main(list(words))
        return Ran(status, out.getvalue(), errors.getvalue())

    return await asyncio.to_thread(run)


def journal(home: Path) -> Path:
    return home / "agent" / "sessions.db"


async def fill(home: Path, count: int = 12) -> list[SessionId]:
    store = await Store.open(journal(home))
    names = [new_session_id() for _ in range(count)]
    for number, name in enumerate(names):
        await store.create(name, [SessionStarted(cwd=f"/w{number}")])
        await store.append(name, conversation(number))
    await store.archive(names[0])
    await store.close()
    return names


async def everything(path: Path) -> dict[SessionId, list[StoredEvent]]:
    store = await Store.open(path)
    page = await store.list(limit=1000, with_empty=True, archived="include")
    events_by_session = {record.id: await store.read_all(record.id) for record in page.sessions}
    assert len(await store.usage_since(0)) == (12 if events_by_session else 0)
    await store.close()
    return events_by_session


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        assert database.execute(statement).rowcount


def damaged_copy(home: Path) -> Path:
    (path,) = (home / "agent").glob("sessions.db.damaged-*[0-9]")
    return path


def scribble(path: Path, start: int, length: int) -> None:
    data = bytearray(path.read_bytes())
    data[start : start + length] = b"\xa5" * length
    path.write_bytes(data)


# What becomes of the file, and how many of the twelve sessions are whole afterwards, at least.
DAMAGES: dict[str, tuple[Callable[[Path], object], int]] = {
    "its head": (lambda path: scribble(path, 0, 100), 12),
    "its first page": (lambda path: scribble(path, 0, 4096), 12),
    "who it belongs to": (lambda path: scribble(path, 68, 4), 12),
    "a page in the middle": (lambda path: scribble(path, 40 * 4096, 4096), 11),
    "its end is gone": (lambda path: path.write_bytes(path.read_bytes()[: 4096 * 30]), 4),
    "its end is gone, in a page": (lambda path: path.write_bytes(path.read_bytes()[:99_999]), 4),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_file_is_saved_and_its_readable_part_is_used(
    tmp_path: Path, damage: str
) -> None:
    await fill(tmp_path)
    path = journal(tmp_path)
    before = await everything(path)
    do, is_complete = DAMAGES[damage]
    do(path)
    damaged = path.read_bytes()
    ran = await acp_agent("sessions", "check")
    assert ran.returncode == 1
    assert "acp-agent sessions repair" in ran.stdout + ran.stderr

    ran = await acp_agent("sessions", "repair")
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
    saved = damaged_copy(tmp_path)
    assert f"The damaged journal is saved as {saved}." in ran.stdout
    assert saved.read_bytes() == damaged
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(entry.name for entry in path.parent.glob("sessions.db*")) == [
        path.name,
        saved.name,
    ]

    store = await Store.open(path)
    assert await store.check() == ()
    page = await store.list(limit=1000, with_empty=True, archived="include")
    after = {record.id: await store.read_all(record.id) for record in page.sessions}
    assert sum(before.get(name) == events for name, events in after.items()) >= is_complete
    for name, events in after.items():
        readable = [entry for entry in events if not isinstance(entry.event, UnknownEvent)]
        assert all(entry in before[name] for entry in readable if name in before)
    if is_complete == 12:
        assert [entry.id for entry in page.sessions if entry.archived] == [min(before)]
        assert sum(row.requests for row in await store.usage_since(0)) == 12
    await store.append(page.sessions[0].id, conversation(99))
    await store.close()
    repeated = await acp_agent("sessions", "repair")
    assert "is intact; nothing to repair" in repeated.stdout


async def test_events_that_only_a_damaged_log_has_are_recovered_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(tmp_path, 3)
    path = journal(tmp_path)
    store = await Store.open(path)
    late = new_session_id()
    await store.create(late, [SessionStarted(cwd="/late"), *conversation(5)])
    home = tmp_path / "killed"
    (home / "agent").mkdir(parents=True)
    for file in path.parent.glob("sessions.db*"):  # as a process that is killed leaves them
        (home / "agent" / file.name).write_bytes(file.read_bytes())
    expected = await store.read_all(late)
    await store.close()
    assert journal(home).with_name("sessions.db-wal").stat().st_size
    scribble(journal(home), 0, 4096)
    scribble(journal(home).with_name("sessions.db-wal"), 24, 8)  # the checksum of its head
    monkeypatch.setenv("ACP_AGENT_HOME", str(home / "agent"))

    ran = await acp_agent("sessions", "repair")
    assert ran.returncode == 0, ran.stderr
    assert damaged_copy(home).with_name(f"{damaged_copy(home).name}-wal").stat().st_size
    store = await Store.open(journal(home))
    assert await store.read_all(late) == expected
    await store.close()


async def test_a_deleted_conversation_does_not_come_back(tmp_path: Path) -> None:
    names = await fill(tmp_path)
    store = await Store.open(journal(tmp_path))
    await store.delete(names[5])
    await store.close()
    scribble(journal(tmp_path), 0, 100)
    assert (await acp_agent("sessions", "repair")).returncode == 0
    for file in journal(tmp_path).parent.glob("sessions.db*"):
        assert b"Question 5" not in file.read_bytes()


async def test_a_preserved_journal_can_be_recovered_later(tmp_path: Path) -> None:
    names = await fill(tmp_path)
    old = journal(tmp_path).rename(tmp_path / "old.db")
    before = await everything(old)
    store = await Store.open(journal(tmp_path))
    await store.create(new := new_session_id(), [SessionStarted(cwd="/new"), *conversation(1)])
    await store.close()
    scribble(old, 0, 100)
    ran = await acp_agent("sessions", "repair", str(old))
    assert ran.returncode == 0, ran.stderr
    ran = await acp_agent("sessions", "repair", str(old))  # now there is nothing new
    assert "Recovered 0 sessions with 0 events" in ran.stdout
    assert "12 sessions already existed." in ran.stdout
    store = await Store.open(journal(tmp_path))
    assert {name: await store.read_all(name) for name in names} == before
    assert await store.read_all(new)
    await store.close()


async def test_an_invalid_journal_is_renamed_and_another_programs_file_is_not(
    tmp_path: Path,
) -> None:
    path = journal(tmp_path)
    path.parent.mkdir()
    path.write_bytes(b"no database at all" * 1_000)
    ran = await acp_agent("sessions", "repair")
    assert "Recovered 0 sessions with 0 events" in ran.stdout
    assert damaged_copy(tmp_path).read_bytes() == b"no database at all" * 1_000
    assert (
        await acp_agent("sessions", "list")
    ).stdout == "There are no sessions yet; start one with `acp-agent chat` or in your editor.\n"
    path.unlink()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE photos (id INTEGER)")
        database.execute("PRAGMA application_id = 12345")
    original = path.read_bytes()
    ran = await acp_agent("sessions", "repair")
    assert ran.returncode == 1
    assert "is not a journal of acp-agent and was left as it is" in ran.stderr
    assert path.read_bytes() == original


async def test_nothing_is_repaired_under_a_session_that_is_open(tmp_path: Path) -> None:
    names = await fill(tmp_path, 2)
    store = await Store.open(journal(tmp_path))
    lease = store.lease(names[0])
    scribble(journal(tmp_path), 0, 100)
    ran = await acp_agent("sessions", "repair")
    lease.release()
    assert ran.returncode == 1
    assert "cannot be repaired while a session is open" in ran.stderr
    assert not list(journal(tmp_path).parent.glob("*damaged*"))
    await store.close()


async def test_sessions_missing_in_the_list_are_recovered_with_their_titles(
    tmp_path: Path,
) -> None:
    names = await fill(tmp_path, 3)
    change(journal(tmp_path), f"DELETE FROM sessions WHERE id = '{names[1]}'")
    ran = await acp_agent("sessions", "check")
    assert ran.returncode == 1
    assert "8 events belong to no session" in ran.stdout
    ran = await acp_agent("sessions", "repair")
    assert ran.returncode == 0, ran.stderr
    ran = await acp_agent("sessions", "list")
    assert "Title 1" in ran.stdout
    assert (await acp_agent("sessions", "check")).returncode == 0


async def test_a_damaged_event_is_named_shown_in_its_place_and_exported_without_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = await fill(tmp_path, 2)
    body = '{"event":"user_message","content":"\ufffd' + KEY
    change(
        journal(tmp_path),
        f"UPDATE events SET body = '{body}' WHERE place ="
        f" (SELECT (key << 32) + 3 FROM sessions WHERE id = '{names[0]}')",
    )
    ran = await acp_agent("sessions", "check")
    assert ran.returncode == 1
    assert f"{names[0]} (Title 0): 1 of 8 events cannot be read (number 3)" in ran.stdout
    assert names[1] not in ran.stdout
    ran = await acp_agent("doctor", "--offline", "--json")
    (finding,) = [
        entry for entry in json.loads(ran.stdout)["findings"] if entry["part"] == "Sessions"
    ]
    assert finding["state"] == "missing"
    ran = await acp_agent("sessions", "show", names[0])
    assert "a part of the conversation is missing." in ran.stdout
    assert "Answer 0." in ran.stdout
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    ran = await acp_agent("sessions", "show", names[0])
    monkeypatch.setenv("LANG", "C.UTF-8")
    assert "有一部分缺失" in ran.stdout
    ran = await acp_agent("sessions", "export", names[0])
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert lines[3]["seq"] == 3
    assert lines[3]["damaged"]["why"] == "broken"
    assert lines[3]["damaged"]["text"].startswith('{"event":"user_message","content":')
    assert KEY not in ran.stdout
    for form in ("md", "html"):
        ran = await acp_agent("sessions", "export", names[0], "--format", form)
        assert "a part of the conversation is missing" in ran.stdout
    assert (await acp_agent("sessions", "show", names[0], "--json")).returncode == 0
