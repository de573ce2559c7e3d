"""A session as JSON lines or Markdown."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from acp_agent.content import DiffPart, TextBlock
from acp_agent.errors import InvalidInputError, SessionNotFoundError
from acp_agent.events import (
    AgentText,
    AnyEvent,
    NoticeShown,
    SessionStarted,
    TitleChanged,
    ToolCalled,
    ToolEnded,
    ToolOutput,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import SessionId, new_call_id, new_message_id, new_session_id, new_turn_id
from acp_agent.session.history.export import ExportFormat, export_page
from acp_agent.session.store.records import UnknownEvent
from acp_agent.session.store.store import Store

SECRET = "open-sesame-0123456789"


def turn(said: str, *answer: str) -> list[AnyEvent]:
    message, begun = new_message_id(), new_turn_id()
    return [
        TurnStarted(turn=begun),
        UserMessage(message=new_message_id(), content=(TextBlock(text=said),)),
        *(AgentText(message=message, text=piece) for piece in answer),
        TurnEnded(turn=begun, stop_reason="end_turn"),
    ]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await Store.open(tmp_path / "sessions.sqlite3")
    yield opened
    await opened.close()


async def written(store: Store, *batches: Sequence[AnyEvent | UnknownEvent]) -> SessionId:
    session = new_session_id()
    await store.create(session, [SessionStarted(cwd="/work")])
    for batch in batches:
        await store.append(session, batch)
    return session


async def whole(
    store: Store, session: SessionId, form: ExportFormat, limit: int = 10_000_000
) -> list[str]:
    """All parts of an export."""
    parts: list[str] = []
    cursor: str | None = None
    while True:
        page = await export_page(
            store, session, form=form, secrets=[SECRET], limit=limit, cursor=cursor
        )
        parts.append(page.content)
        cursor = page.next_cursor
        if cursor is None:
            return parts


async def test_json_lines_begin_with_the_session_and_have_every_event_in_its_place(
    store: Store,
) -> None:
    newer = UnknownEvent("from_the_future", b'{"event":"from_the_future","deep":{"n":1}}')
    session = await written(store, [TitleChanged(title="A title")], turn("Hi", "Hello."), [newer])
    (text,) = await whole(store, session, "jsonl")
    head, *lines = [json.loads(line) for line in text.splitlines()]
    assert head["format"] == "acp-agent session"
    assert head["session"]["id"] == session
    assert head["session"]["title"] == "A title"
    stored = await store.read_all(session)
    assert [line["seq"] for line in lines] == [item.seq for item in stored]
    assert [line["event"]["event"] for line in lines] == [
        "session_started",
        "title_changed",
        "turn_started",
        "user_message",
        "agent_text",
        "turn_ended",
        "from_the_future",
    ]
    assert lines[-1]["event"] == {"event": "from_the_future", "deep": {"n": 1}}
    assert lines[0]["at"].endswith("Z")


async def test_markdown_reads_like_the_conversation(store: Store) -> None:
    call, message = new_call_id(), new_message_id()
    work: list[AnyEvent] = [
        ToolCalled(
            call=call,
            message=message,
            name="edit",
            arguments="{}",
            title="Edit a.py",
            content=(DiffPart(path="/srv/a.py", old_text="a\n", new_text="b\n"),),
        ),
        ToolEnded(call=call),
        NoticeShown(severity="warning", title="Careful"),
    ]
    shell = new_call_id()
    fence: list[AnyEvent] = [
        ToolCalled(call=shell, message=message, name="shell", arguments="{}", title="cat x.md"),
        ToolOutput(call=shell, text="```\ncode\n```\n"),
        ToolEnded(call=shell, failed=True, exit_code=1),
    ]
    session = await written(store, turn("Mend it", "I ", "mend."), work, fence)
    (text,) = await whole(store, session, "md")
    assert text.startswith(f"# Untitled\n\n- Session: `{session}`\n- Folder: `/work`\n")
    assert "\n## User\n\nMend it\n\n## Agent\n\nI mend.\n" in text
    assert "\n**Tool:** Edit a.py\n\n```diff\n@@ -1 +1 @@\n-a\n+b\n```\n" in text
    assert "\n> Careful\n" in text
    assert "\n**Tool:** cat x.md - exit status 1\n\n````\n```\ncode\n```\n````\n" in text


@pytest.mark.parametrize("form", ["jsonl", "md"])
async def test_a_secret_is_in_no_export_also_where_it_came_in_pieces(
    store: Store, form: ExportFormat
) -> None:
    session = await written(
        store,
        turn(f"The key is {SECRET}", "It is open-ses"),
        turn("and", "x"),
        [TitleChanged(title=f"About {SECRET}")],
    )
    message = new_message_id()
    for piece in ("It is ", SECRET[:9], SECRET[9:], "."):
        await store.append(session, [AgentText(message=message, text=piece)])
    token = "ghp_" + "a1B2" * 9
    await store.append(session, [NoticeShown(severity="info", title=f"seen {token}")])
    text = "".join(await whole(store, session, form))
    assert SECRET not in text
    assert token not in text
    assert "It is [secret]." in text


@pytest.mark.parametrize("form", ["jsonl", "md"])
async def test_the_parts_of_an_export_are_bounded_and_together_the_whole(
    store: Store, form: ExportFormat
) -> None:
    session = await written(store, *(turn(f"Question {n}", "Answer ✓" * 20) for n in range(30)))
    (at_once,) = await whole(store, session, form)
    parts = await whole(store, session, form, limit=1_000)
    assert len(parts) > 5
    assert all(len(part.encode()) <= 1_000 for part in parts)
    assert "".join(parts) == at_once


async def test_a_line_longer_than_a_part_is_a_part_of_its_own(store: Store) -> None:
    session = await written(store, turn("x" * 5_000, "y"))
    parts = await whole(store, session, "jsonl", limit=1_000)
    assert [len(part) > 5_000 for part in parts] == [False, True, False]


async def test_a_session_that_continues_meanwhile_is_exported_as_it_was_in_the_beginning(
    store: Store,
) -> None:
    session = await written(store, *(turn(f"Question {n}", "Answer") for n in range(10)))
    (before,) = await whole(store, session, "md")
    first = await export_page(store, session, form="md", secrets=[], limit=500)
    await store.append(session, turn("Later", "Much later"))
    rest: list[str] = [first.content]
    cursor = first.next_cursor
    while cursor is not None:
        page = await export_page(store, session, form="md", secrets=[], limit=500, cursor=cursor)
        rest.append(page.content)
        cursor = page.next_cursor
    told = "".join(rest)
    assert told == before
    assert "Later" not in told


@pytest.mark.parametrize("cursor", ["", "x", "1", "1.", ".1", "-1.2", "1.2.3", "1e3.2", "9" * 20])
async def test_a_cursor_of_another_program_is_refused(store: Store, cursor: str) -> None:
    session = await written(store)
    with pytest.raises(InvalidInputError, match="cursor"):
        await export_page(store, session, form="md", secrets=[], limit=1, cursor=cursor)


async def test_an_unknown_session_cannot_be_exported(store: Store) -> None:
    with pytest.raises(SessionNotFoundError):
        await export_page(store, SessionId("sess_none"), form="md", secrets=[], limit=1)
