"""A journal with random damage: nothing breaks, nothing hangs, and what is whole is not lost.

`make fuzz` does the same to the real agent, again and again (ACP_AGENT_FUZZ, ACP_AGENT_FUZZ_SEED).
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from collections.abc import Collection
from pathlib import Path

import pytest

from acp_agent.agent.context import Context
from acp_agent.content import TextBlock
from acp_agent.errors import SessionNotFoundError, StoreDamagedError, StoreNewerError
from acp_agent.events import (
    AgentText,
    AnyEvent,
    ModelAnswered,
    ModelAsked,
    SessionStarted,
    TitleChanged,
    ToolCalled,
    ToolEnded,
    TurnEnded,
    TurnStarted,
    Usage,
    UserMessage,
)
from acp_agent.ids import (
    SessionId,
    new_call_id,
    new_message_id,
    new_session_id,
    new_turn_id,
)
from acp_agent.session.store.database import open_database
from acp_agent.session.store.database_recovery import recover_sessions
from acp_agent.session.store.event_codec import recovered_events
from acp_agent.session.store.store import Store
from tests.reliability.damaged_journals import bodies, damage, real_journal, whole_sessions
from tests.support.agent_process import AgentProcess
from tests.support.editor import Editor
from tests.support.hostile import one_line
from tests.support.warm_parent import shared_parent

FUZZ = bool(os.environ.get("ACP_AGENT_FUZZ"))
FIRST = int(os.environ.get("ACP_AGENT_FUZZ_SEED", "0"))
SEEDS = 2_000 if FUZZ else 60
AGENT_SEEDS = 300
SESSIONS = 6


def turn(number: int) -> list[AnyEvent]:
    turn, answer, call = new_turn_id(), new_message_id(), new_call_id()
    return [
        TurnStarted(turn=turn),
        UserMessage(message=new_message_id(), content=(TextBlock(text=f"Question {number}"),)),
        ModelAsked(message=answer, model="demo/demo"),
        AgentText(message=answer, text=f"I look. {'lorem ipsum ' * 100 * (number % 5)}"),
        ToolCalled(call=call, message=answer, name="read", arguments="{}", title="Read"),
        ModelAnswered(message=answer, model="demo/demo", usage=Usage(input=5, output=3)),
        ToolEnded(call=call, result="what it says " * 20),
        TitleChanged(title=f"Title {number}"),
        TurnEnded(turn=turn, stop_reason="end_turn"),
    ]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal in which nothing is damaged."""
    path = tmp_path_factory.mktemp("sound") / "sessions.db"

    async def fill() -> None:
        store = await Store.open(path)
        for _ in range(SESSIONS):
            session = new_session_id()
            await store.create(session, [SessionStarted(cwd="/w")])
            for number in range(5):
                await store.append(session, turn(number))
        await store.close()

    asyncio.run(fill())
    return path


async def read_and_go_on(path: Path, known: Collection[str]) -> set[str]:
    """Everything that an agent does with a journal; the sessions that can be read.

    All that are `known` can be, whether or not a list has them.

    Raises:
        StoreDamagedError: not all of it can be done.
    """
    store = await Store.open(path)
    try:
        page = await store.list(with_empty=True, archived="include")
        for record in page.sessions:
            try:
                events = recovered_events(await store.read_all(record.id))
            except SessionNotFoundError:
                assert record.id not in known  # the index of the list has another id for it
                continue
            Context().feed(events)
            await store.append(record.id, turn(9))
        await store.create(new_session_id(), [SessionStarted(cwd="/w"), *turn(1)])
        await store.check()
        await store.check_sessions()
        found = {record.id for record in page.sessions}
        for name in set(known) - found:
            await store.read_all(SessionId(name))
            found.add(SessionId(name))
        return {str(name) for name in found}
    finally:
        await store.close()


def assert_one_line(said: str, seed: int) -> None:
    assert one_line(said), seed


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("part", range(4))
async def test_random_damage_breaks_nothing_and_loses_no_session_that_is_whole(
    sound: Path, tmp_path: Path, part: int
) -> None:
    before = bodies(sound)
    assert len(before) == SESSIONS
    rescued = 0
    for seed in range(FIRST + part * SEEDS // 4, FIRST + (part + 1) * SEEDS // 4):
        path = tmp_path / f"{seed}" / "sessions.db"
        path.parent.mkdir()
        shutil.copy(sound, path)
        kind = damage(random.Random(seed), path)
        whole = whole_sessions(path, before)
        try:
            found = await asyncio.wait_for(read_and_go_on(path, whole), timeout=30)
        except StoreNewerError:
            continue  # which nobody can tell from a version that is damaged
        except StoreDamagedError as error:
            assert_one_line(str(error), seed)
            database = open_database(path.with_name("fresh.db"))
            recover_sessions(path, database.connection)
            database.connection.close()
            path, found = path.with_name("fresh.db"), set(whole)
            rescued += 1
        assert whole <= found, (seed, kind)
        after = bodies(path)
        for name in whole:
            kept = {seq: body for seq, body in after[name].items() if seq in before[name]}
            assert kept == before[name], (seed, kind, name)
    assert rescued  # else the damage is no damage


@pytest.mark.timeout(3_600)
@pytest.mark.skipif(not FUZZ, reason="it takes minutes: make fuzz")
async def test_the_real_agent_survives_random_damage(tmp_path: Path) -> None:
    folder, home = tmp_path / "folder", tmp_path / "home"
    folder.mkdir()
    (folder / "README.md").write_text("# Sample\n")
    sessions = await real_journal(home, folder)
    before = bodies(home / "acp-agent" / "sessions.db")
    for seed in range(FIRST, FIRST + AGENT_SEEDS):
        other = tmp_path / "other"
        shutil.copytree(home, other)
        try:
            await one_agent(seed, other, folder, sessions, before)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
        shutil.rmtree(other)


async def one_agent(
    seed: int, home: Path, folder: Path, sessions: list[str], before: dict[str, dict[int, bytes]]
) -> None:
    """Damage the journal of a home, and let an agent use it; then repair it where that is due."""
    path = home / "acp-agent" / "sessions.db"
    damage(random.Random(seed), path)
    whole = whole_sessions(path, before)
    errors: list[str] = []
    loaded: set[str] = set()
    editor = Editor(permission="allow_once")
    async with await AgentProcess.start(
        "--model", "demo/demo", home=home, editor=editor, launch=shared_parent().start
    ) as agent:

        async def ask(method: str, **params: object) -> dict[str, object] | None:
            answered = await asyncio.wait_for(agent.answer(agent.post(method, params)), 60)
            if "error" in answered:
                errors.append(answered["error"]["message"])
                return None
            result: dict[str, object] = answered["result"]
            return result

        async def prompt(session: str) -> None:
            await ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "hi"}])

        await agent.initialize()
        where = {"cwd": str(folder), "mcpServers": []}
        listed = await ask("session/list")
        for session in sessions:
            if await ask("session/load", sessionId=session, **where) is not None:
                loaded.add(session)
                await prompt(session)
        made = await ask("session/new", **where)
        if made is not None:
            await prompt(str(made["sessionId"]))
    assert b"Traceback" not in agent.stderr
    assert "Traceback" not in "".join(log.read_text() for log in home.rglob("agent.log"))
    assert all(one_line(error) for error in errors)
    found = [] if listed is None else listed["sessions"]
    assert isinstance(found, list)
    names = {one["sessionId"] for one in found}
    if whole <= loaded and whole <= names:
        return
    if any("a newer version of acp-agent wrote" in error for error in errors):
        return  # which nobody can tell from a version that is damaged
    # A list goes by an index: one that is damaged can hide a session, which opens all the same.
    said_so = any("acp-agent sessions repair" in error for error in errors)
    assert said_so or whole <= loaded, (whole - loaded, errors)
    environ = os.environ | {"ACP_AGENT_HOME": str(home / "acp-agent")}
    ran = await asyncio.create_subprocess_exec(
        *shared_parent().command(), "sessions", "repair", env=environ, stdout=-1, stderr=-1
    )
    _, said = await ran.communicate()
    assert (ran.returncode, said) == (0, b"")
    after = bodies(path)
    for name in whole:
        kept = {seq: body for seq, body in after[name].items() if seq in before[name]}
        assert kept == before[name]
