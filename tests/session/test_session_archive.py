"""What can be done with sessions that are not open: named, archived, asked after."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.errors import InvalidInputError, SessionBusyError, SessionNotFoundError
from acp_agent.events import TitleChanged, TurnEnded
from acp_agent.ids import SessionId
from acp_agent.session.turns.titles import fork_title, tidy_title
from tests.support.model_server import ModelServer, Stall, answer
from tests.support.open_session import Desk, open_desk

UNKNOWN = SessionId("sess_unknown")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("  A  title \n", "A title"),
        ("two\r\nlines\tand\x07a bell", "two lines and a bell"),
        ("déjà vu 日本", "déjà vu 日本"),
        ("half \ud83d", "half \ufffd"),
        ("x" * 200, "x" * 200),
        ("x" * (200 + 1), "x" * (200 - 1) + "…"),
    ],
)
def test_a_title_is_one_line_of_bounded_length(given: str, kept: str) -> None:
    assert tidy_title(given) == kept


@pytest.mark.parametrize("given", ["", "   ", "\n\t", "\x00\x1b"])
def test_a_title_of_which_nothing_is_left_is_refused(given: str) -> None:
    with pytest.raises(InvalidInputError, match="title: it is empty"):
        tidy_title(given)


def test_forks_of_forks_are_counted_and_stay_short() -> None:
    titles = ["Mend it"]
    for _ in range(3):
        titles.append(fork_title(titles[-1]))
    assert titles == ["Mend it", "Mend it (fork)", "Mend it (fork 2)", "Mend it (fork 3)"]
    assert len(fork_title("x" * 200)) == 200
    assert fork_title("x" * 200).endswith("… (fork)")


async def test_the_users_title_stays_when_the_first_turn_would_give_one(
    desk: Desk, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("Half", stall, "."))
    turn = await desk.begin("Words that would be the title")
    assert await desk.manager.set_title(desk.session.id, " Mine ") == "Mine"
    stall.release()
    await turn.result()
    await desk.editor.until(TurnEnded)
    assert [(event.title, event.by) for event in desk.editor.of(TitleChanged)] == [("Mine", "user")]
    assert (await desk.services.store.get(desk.session.id)).title == "Mine"


async def test_a_session_that_is_not_open_is_named_and_stays_so(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("Yes.")
    await desk.say("One")
    session = desk.session.id
    await desk.manager.close(session, desk.editor)
    await desk.manager.set_title(session, "Mine")
    again = await desk.manager.open(session, str(desk.folder), [])
    assert again.core.state.title == "Mine"
    with pytest.raises(SessionNotFoundError):
        await desk.manager.set_title(UNKNOWN, "Mine")
    locks = desk.services.store.path.parent / "locks"
    assert [lock.name for lock in locks.iterdir()] == [f"{session}.lock"]


async def test_a_session_open_in_another_process_is_neither_renamed_nor_archived(
    desk: Desk, model_server: ModelServer, tmp_path: Path
) -> None:
    session = desk.session.id
    async with open_desk(tmp_path, model_server, session=False) as other:
        for refused in (
            other.manager.set_title(session, "Mine"),
            other.manager.archive(session),
        ):
            with pytest.raises(SessionBusyError, match="another process"):
                await refused
        assert await other.manager.look_up(session) is None
        await other.manager.unarchive(session)  # changes nothing that it has
    record = await desk.services.store.get(session)
    assert (record.title, record.archived) == (None, False)
    assert await desk.manager.look_up(session) is desk.session


async def test_archiving_ends_running_work_and_frees_the_session(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer("Half", Stall()))
    turn = await desk.begin("Go on for ever")
    session = desk.session.id
    await desk.manager.archive(session)
    assert await turn.result() == "cancelled"
    assert desk.manager.find(session) is None
    assert await desk.manager.look_up(session) is None
    desk.services.store.lease(session).release()
    assert (await desk.services.store.get(session)).archived
    await desk.manager.archive(session)
    await desk.manager.open(session, str(desk.folder), [])  # as it is
    assert (await desk.services.store.get(session)).archived
    await desk.manager.unarchive(session)
    assert not (await desk.services.store.get(session)).archived
    for change in (desk.manager.archive, desk.manager.unarchive, desk.manager.look_up):
        with pytest.raises(SessionNotFoundError, match="sess_unknown"):
            await change(UNKNOWN)
