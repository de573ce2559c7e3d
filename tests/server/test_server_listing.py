"""session/list: what is in it, in which order, and a page at a time."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.server.server_session import DEMO
from tests.support.agent_process import StartAgent
from tests.support.wire_client import AnswerError


@pytest.mark.covers("S5")
async def test_the_list_has_newest_sessions_first_with_titles_and_hides_empty_ones(
    agent: StartAgent, workspace_repo: Path, tmp_path: Path
) -> None:
    running = await agent(*DEMO)
    await running.initialize()
    assert await running.request("session/list", {}) == {"sessions": []}
    assert await running.request("session/list") == {"sessions": []}
    second_folder = tmp_path / "other"
    second_folder.mkdir()
    first = await running.new_session(workspace_repo, additionalDirectories=[str(second_folder)])
    second = await running.new_session(second_folder)
    third = await running.new_session(workspace_repo)
    await running.new_session(workspace_repo)  # never prompted
    for session in (first, second, third):
        await running.prompt(session, "hello")
    await running.prompt(first, "hello again")

    listed = (await running.request("session/list", {}))["sessions"]
    assert [entry["sessionId"] for entry in listed] == [first, third, second]
    newest = listed[0]
    assert newest["cwd"] == str(workspace_repo)
    assert newest["additionalDirectories"] == [str(second_folder)]
    assert newest["title"] == "hello"
    when = datetime.fromisoformat(newest["updatedAt"])
    assert when.utcoffset() == timedelta(0)
    assert abs(datetime.now(when.tzinfo) - when) < timedelta(minutes=5)

    listing = await running.request("session/list", {"cwd": str(workspace_repo)})
    assert [entry["sessionId"] for entry in listing["sessions"]] == [first, third]
    for nowhere in (str(tmp_path / "missing"), "/"):
        assert await running.request("session/list", {"cwd": nowhere}) == {"sessions": []}


@pytest.mark.covers("S5")
async def test_a_folder_lists_its_sessions_however_its_path_is_written(
    agent: StartAgent, workspace_repo: Path
) -> None:
    running = await agent(*DEMO)
    await running.initialize()
    ways = [f"{workspace_repo}{end}" for end in ("", "/", "/.", "//")]
    for way in ways:
        created = await running.request("session/new", {"cwd": way, "mcpServers": []})
        await running.prompt(created["sessionId"], "hello")
    for way in ways:
        assert len((await running.request("session/list", {"cwd": way}))["sessions"]) == len(ways)


@pytest.mark.covers("S5")
async def test_pages_follow_each_other_without_a_gap_or_a_double(
    agent: StartAgent, workspace_repo: Path
) -> None:
    running = await agent(*DEMO)
    await running.initialize()
    created_ids = []
    for _ in range(53):
        session = await running.new_session(workspace_repo)
        await running.prompt(session, "hello")
        created_ids.append(session)
    first = await running.request("session/list", {})
    assert len(first["sessions"]) == 50
    # One moves to the front between the pages; it must not push another out of the second.
    await running.prompt(created_ids[0], "hello")
    second = await running.request("session/list", {"cursor": first["nextCursor"]})
    assert second.get("nextCursor") is None
    session_ids = [entry["sessionId"] for page in (first, second) for entry in page["sessions"]]
    assert len(session_ids) == len(set(session_ids))
    assert set(session_ids) | {created_ids[0]} == set(created_ids)


@pytest.mark.covers("S5", "T4")
async def test_a_relative_folder_is_refused_by_name(agent: StartAgent) -> None:
    running = await agent(*DEMO)
    await running.initialize()
    for cwd in ("project", "./project", "", "~/project"):
        with pytest.raises(AnswerError) as caught:
            await running.request("session/list", {"cwd": cwd})
        assert caught.value.code == -32602
        assert caught.value.message.startswith("cwd:"), caught.value.message


@pytest.mark.covers("S5")
async def test_a_session_is_listed_once_an_option_of_it_was_set(
    agent: StartAgent, workspace_repo: Path
) -> None:
    running = await agent(*DEMO)
    await running.initialize()
    session = await running.new_session(workspace_repo)
    await running.new_session(workspace_repo)
    await running.request(
        "session/set_config_option", {"sessionId": session, "configId": "mode", "value": "plan"}
    )
    listed = (await running.request("session/list", {}))["sessions"]
    assert [entry["sessionId"] for entry in listed] == [session]


@pytest.mark.covers("S5", "T4")
async def test_a_foreign_cursor_is_refused_by_name(agent: StartAgent) -> None:
    running = await agent(*DEMO)
    await running.initialize()
    for cursor in ("nonsense", "", "AAAA", 7):
        with pytest.raises(AnswerError) as caught:
            await running.request("session/list", {"cursor": cursor})
        assert caught.value.code == -32602
        assert "cursor" in caught.value.message
