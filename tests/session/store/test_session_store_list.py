"""The list of sessions, page by page."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from acp_agent.content import TextBlock
from acp_agent.errors import InvalidInputError
from acp_agent.events import (
    ConfigChanged,
    SessionStarted,
    TitleChanged,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import SessionId, TurnId, new_message_id, new_session_id
from acp_agent.session.store.records import ArchiveFilter
from acp_agent.session.store.store import Store

TURN = TurnStarted(turn=TurnId("turn_1"))


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000

    def __call__(self) -> int:
        return self.now


async def filled(store: Store, clock: Clock, count: int, *, step: int = 1) -> list[SessionId]:
    """`count` sessions with a turn each; the newest first."""
    made = []
    for _ in range(count):
        clock.now += step
        session = new_session_id()
        await store.create(session, [SessionStarted(cwd="/project"), TURN])
        made.append(session)
    return made[::-1]


async def pages(store: Store, limit: int, cursor: str | None = None) -> list[list[SessionId]]:
    found = []
    while True:
        page = await store.list(limit=limit, cursor=cursor)
        found.append([record.id for record in page.sessions])
        cursor = page.next_cursor
        if cursor is None:
            return found


async def test_sessions_come_newest_first_and_the_last_page_has_no_cursor(tmp_path: Path) -> None:
    clock = Clock()
    store = await Store.open(tmp_path / "journal.db", clock=clock)
    newest_first = await filled(store, clock, 7)
    found = await pages(store, 3)
    exact = await pages(store, 7)
    await store.close()
    assert found == [newest_first[:3], newest_first[3:6], newest_first[6:]]
    assert exact == [newest_first]


async def test_sessions_of_the_same_millisecond_are_neither_repeated_nor_left_out(
    tmp_path: Path,
) -> None:
    clock = Clock()
    store = await Store.open(tmp_path / "journal.db", clock=clock)
    newest_first = await filled(store, clock, 10, step=0)
    found = await pages(store, 3)
    await store.close()
    assert [session for page in found for session in page] == newest_first


async def test_a_session_that_is_written_again_moves_to_the_front(tmp_path: Path) -> None:
    clock = Clock()
    store = await Store.open(tmp_path / "journal.db", clock=clock)
    newest_first = await filled(store, clock, 3)
    clock.now += 1
    await store.append(newest_first[2], [TitleChanged(title="Again")])
    page = await store.list()
    await store.close()
    assert [record.id for record in page.sessions] == [
        newest_first[2],
        newest_first[0],
        newest_first[1],
    ]
    assert page.sessions[0].title == "Again"
    assert page.sessions[0].updated_at == clock.now


async def test_turning_pages_is_steady_while_sessions_come_move_and_go(tmp_path: Path) -> None:
    clock = Clock()
    store = await Store.open(tmp_path / "journal.db", clock=clock)
    newest_first = await filled(store, clock, 9)
    first = await store.list(limit=3)
    await filled(store, clock, 4)
    clock.now += 1
    await store.append(newest_first[1], [TURN])
    await store.delete(newest_first[2])  # the very session that the cursor stands behind
    await store.delete(newest_first[5])
    rest = await pages(store, 3, first.next_cursor)
    await store.close()
    assert rest == [
        [newest_first[3], newest_first[4], newest_first[6]],
        [newest_first[7], newest_first[8]],
    ]


async def test_sessions_without_a_turn_are_listed_only_on_demand(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "journal.db")
    empty, used = new_session_id(), new_session_id()
    await store.create(empty, [SessionStarted(cwd="/project")])
    await store.create(used, [SessionStarted(cwd="/project"), TURN])
    usual = await store.list()
    all_of_them = await store.list(with_empty=True)
    await store.append(empty, [TURN])
    no_longer_empty = await store.list()
    await store.close()
    assert [record.id for record in usual.sessions] == [used]
    assert {record.id for record in all_of_them.sessions} == {used, empty}
    assert {record.id for record in no_longer_empty.sessions} == {used, empty}


async def test_a_session_that_was_named_or_configured_is_listed_before_its_first_turn(
    tmp_path: Path,
) -> None:
    store = await Store.open(tmp_path / "journal.db")
    began = (SessionStarted(cwd="/project"), ConfigChanged(option="mode", value="ask"))
    empty, named, configured = new_session_id(), new_session_id(), new_session_id()
    for session in (empty, named, configured):
        await store.create(session, began)
    await store.append(named, [TitleChanged(title="Mine", by="user")])
    await store.append(configured, [ConfigChanged(option="mode", value="plan")])
    page = await store.list()
    await store.close()
    assert {record.id for record in page.sessions} == {named, configured}


@pytest.mark.parametrize(
    ("cwd", "archived"),
    [("/there", "exclude"), (None, "exclude"), ("/here", "include"), ("/here/", "exclude")],
)
async def test_a_cursor_is_refused_in_a_list_with_other_filters(
    tmp_path: Path, cwd: str | None, archived: ArchiveFilter
) -> None:
    store = await Store.open(tmp_path / "journal.db")
    for folder in ("/here", "/here", "/there", "/there"):
        await store.create(new_session_id(), [SessionStarted(cwd=folder), TURN])
    first = await store.list(cwd="/here", limit=1)
    with pytest.raises(InvalidInputError, match="another cwd or archived filter") as caught:
        await store.list(cwd=cwd, cursor=first.next_cursor, archived=archived)
    rest = await store.list(cwd="/here", cursor=first.next_cursor)
    await store.close()
    assert caught.value.field == "cursor"
    assert len(rest.sessions) == 1


async def test_the_list_can_be_of_one_folder(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "journal.db")
    here, there = new_session_id(), new_session_id()
    await store.create(here, [SessionStarted(cwd="/projects/été"), TURN])
    await store.create(there, [SessionStarted(cwd="/projects"), TURN])
    found = await store.list(cwd="/projects/été")
    unknown = await store.list(cwd="/nowhere")
    await store.close()
    assert [record.id for record in found.sessions] == [here]
    assert (unknown.sessions, unknown.next_cursor) == ([], None)


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "!",
        "é\ud800",
        "bm90IGpzb24=",
        base64.urlsafe_b64encode(b'["x","y"]').decode(),
        base64.urlsafe_b64encode(b"[1]").decode(),
        base64.urlsafe_b64encode(b'[-1,"sess_a"]').decode(),
        base64.urlsafe_b64encode(b'[99999999999999999999999,"sess_a"]').decode(),
        base64.urlsafe_b64encode(b'[1,"\xff"]').decode(),
    ],
)
async def test_a_cursor_that_we_did_not_give_is_refused_by_name(
    tmp_path: Path, cursor: str
) -> None:
    store = await Store.open(tmp_path / "journal.db")
    with pytest.raises(InvalidInputError, match="cursor") as told:
        await store.list(cursor=cursor)
    assert told.value.field == "cursor"
    await store.close()


@pytest.mark.parametrize("limit", [0, -1, 1_001])
async def test_a_page_has_a_sensible_size(tmp_path: Path, limit: int) -> None:
    store = await Store.open(tmp_path / "journal.db")
    with pytest.raises(InvalidInputError) as told:
        await store.list(limit=limit)
    assert told.value.field == "limit"
    await store.close()


async def test_a_session_that_only_answered_commands_does_not_clutter_the_list(
    tmp_path: Path,
) -> None:
    store = await Store.open(tmp_path / "journal.db")
    session = new_session_id()
    await store.create(session, [SessionStarted(cwd="/a")])
    command = UserMessage(
        message=new_message_id(), content=(TextBlock(text="/status"),), local=True
    )
    await store.append(session, [TURN, command])
    found = await store.list()
    await store.close()
    assert found.sessions == []
