"""Events that the journal must not lose, must not write, or cannot read."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from acp_agent.errors import InvalidInputError
from acp_agent.events import (
    AgentText,
    SessionStarted,
    TitleChanged,
    ToolEnded,
)
from acp_agent.ids import CallId, MessageId, SessionId, new_session_id
from acp_agent.session.store.records import UnknownEvent
from acp_agent.session.store.store import Store

START = SessionStarted(cwd="/project", directories=("/library",))


def said(text: str, message: str = "msg_1") -> AgentText:
    return AgentText(message=MessageId(message), text=text)


async def events_of(store: Store, session: SessionId) -> list[object]:
    return [stored.event for stored in await store.read_all(session)]


async def test_an_event_of_a_newer_version_keeps_its_unknown_fields(
    tmp_path: Path,
) -> None:
    store = await Store.open(tmp_path / "journal.db")
    session = new_session_id()
    new_kind = UnknownEvent("hologram_shown", b'{"event":"hologram_shown","beams":[1,2]}')
    new_shape = UnknownEvent(
        "permission_decided",
        b'{"event":"permission_decided","call":"call_1","allowed":true,"by":"oracle"}',
    )
    new_field = msgspec.Raw(b'{"event":"agent_text","message":"msg_1","text":"hi","font":"serif"}')
    await store.create(session, [START, new_kind, new_shape])
    await store.append(session, [UnknownEvent("agent_text", bytes(new_field))])
    found = await events_of(store, session)
    await store.close()
    assert found == [START, new_kind, new_shape, said("hi")]


async def test_lone_halves_of_characters_never_reach_the_file(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "journal.db")
    session = new_session_id()
    await store.create(session, [SessionStarted(cwd="/a\udcff")])
    await store.append(
        session, [said("smile \ud83d"), said("\ude00"), TitleChanged(title="\ud83d!")]
    )
    await store.append(
        session, [ToolEnded(call=CallId("call_1"), raw_output={"k\udc80": ["\ud800", 1]})]
    )
    found = await events_of(store, session)
    record = await store.get(session)
    page = await store.list(cwd="/a\udcff", with_empty=True)
    await store.close()
    assert found[1] == said("smile 😀")
    assert found[3] == ToolEnded(call=CallId("call_1"), raw_output={"k\ufffd": ["\ufffd", 1]})
    assert (record.cwd, record.title) == ("/a\ufffd", "\ufffd!")
    assert [found.id for found in page.sessions] == [session]


async def test_an_event_that_is_too_large_is_refused_and_the_session_continues(
    tmp_path: Path,
) -> None:
    store = await Store.open(tmp_path / "journal.db")
    session = new_session_id()
    await store.create(session, [START])
    large = said("x" * (8 << 20))
    await store.append(session, [large])
    with pytest.raises(InvalidInputError, match=r"67 MB is too much.*at most 67 MB"):
        await store.append(session, [said("first"), said("x" * (64 << 20), "msg_2")])
    await store.append(session, [said("next")])
    assert await events_of(store, session) == [START, large, said("next")]
    await store.close()


async def test_a_value_that_json_cannot_hold_is_refused_with_its_whole_append(
    tmp_path: Path,
) -> None:
    store = await Store.open(tmp_path / "journal.db")
    session = new_session_id()
    await store.create(session, [START])
    with pytest.raises(InvalidInputError):
        await store.append(
            session, [said("x"), ToolEnded(call=CallId("c"), raw_output={"k": object()})]
        )
    assert await events_of(store, session) == [START]
    await store.close()
