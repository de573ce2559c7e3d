"""Sessions are named by their ids, by the beginning of one, or as the latest."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from acp_agent.cli.session_lookup import find_session, full_id, match_id
from acp_agent.content import TextBlock
from acp_agent.errors import InvalidInputError, SessionNotFoundError
from acp_agent.events import SessionStarted, TitleChanged, TurnStarted, UserMessage
from acp_agent.ids import SessionId, new_message_id, new_turn_id
from acp_agent.session.store.store import Store
from tests.cli.cli_process import acp_agent

# The last has the highest id as well, which goes first where two were used in one millisecond.
NAMES = ["sess_01aa", "sess_01aab", "sess_01abc", "sess_02", "sess_%", "sess_z"]


@pytest.fixture
async def store(tmp_path: Path) -> Store:
    store = await Store.open(tmp_path / "agent" / "sessions.db")
    for name in NAMES:
        turn = TurnStarted(turn=new_turn_id())
        message = UserMessage(message=new_message_id(), content=(TextBlock(text="Go"),))
        await store.create(
            SessionId(name),
            [SessionStarted(cwd="/w"), turn, message, TitleChanged(title=f"On {name}")],
        )
    await store.archive(SessionId("sess_02"))
    return store


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sess_01aa", "sess_01aa"),  # whole, though another one begins with it
        ("sess_01aab", "sess_01aab"),
        ("sess_01ab", "sess_01abc"),
        ("sess_0", None),
        ("sess_02", "sess_02"),
        ("sess_%", "sess_%"),
        ("latest", "sess_z"),
    ],
)
async def test_the_beginning_of_an_id_is_enough_where_no_other_begins_so(
    store: Store, name: str, expected: str | None
) -> None:
    if expected is None:
        with pytest.raises(InvalidInputError) as raised:
            await find_session(store, name)
        for session_id in ("sess_01aa", "sess_01aab", "sess_01abc", "sess_02"):
            assert f"{session_id} (On {session_id})" in str(raised.value)
        assert "type more" in str(raised.value)
    else:
        assert (await find_session(store, name)).id == expected
    await store.close()


@pytest.mark.parametrize("name", ["", "sess_03", "01aa", "SESS_01ab", "sess_01ab*", "sess_01abcd"])
async def test_an_unknown_prefix_of_an_id_is_not_found(store: Store, name: str) -> None:
    with pytest.raises(SessionNotFoundError):
        await find_session(store, name)
    await store.close()


async def test_the_commands_take_a_beginning_and_say_which_session_they_mean(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.close()
    monkeypatch.setenv("ACP_AGENT_HOME", str(tmp_path / "agent"))
    assert await full_id("sess_01ab") == "sess_01abc"
    assert await full_id("of another agent") == "of another agent"

    ran = await asyncio.to_thread(acp_agent, tmp_path, "sessions", "show", "sess_01ab")
    assert "On sess_01abc" in ran.stdout
    ran = await asyncio.to_thread(acp_agent, tmp_path, "sessions", "delete", "--yes", "sess_0")
    assert ran.returncode == 1
    assert "several session IDs begin with 'sess_0'" in ran.stderr
    ran = await asyncio.to_thread(acp_agent, tmp_path, "sessions", "delete", "--yes", "sess_01ab")
    assert ran.stdout == "Deleted sess_01abc.\n"
    assert "sess_01aab" in (await asyncio.to_thread(acp_agent, tmp_path, "sessions", "list")).stdout


def test_at_most_five_matching_sessions_are_listed() -> None:
    sessions = [(f"sess_{number}", "about\nit " * 20) for number in range(9)]
    with pytest.raises(InvalidInputError) as raised:
        match_id("sess", sessions)
    assert str(raised.value).count("sess_") == 5
    assert str(raised.value).endswith(", …")
    assert "\n" not in str(raised.value)
