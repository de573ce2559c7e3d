"""Sessions archived, named and asked after, over the wire of both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.either_version import EitherClient
from tests.server.server_session import EDIT, READ
from tests.support.agent_process import StartAgent
from tests.support.model_server import ModelServer, Stall, answer

pytestmark = pytest.mark.parametrize("version", [1, 2])

MISSING_SESSION = "sess_00000000-0000-7000-8000-000000000000"


# -- session/archive -----------------------------------------------------------------------------


@pytest.mark.covers("S5")
async def test_an_archived_session_leaves_the_list_and_comes_back_as_it_was(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    model_server.otherwise = answer("Yes.")
    client = await EitherClient.before(agent, version, model_server)
    sessions = [await client.new(workspace_repo) for _ in range(3)]
    for session in sessions:
        await client.say(session, f"Hello {session}")
    before = await client.listed()
    assert {entry["archived"] for entry in before.values()} == {False}
    for _ in range(2):
        assert await client.request("session/archive", sessionId=sessions[1]) == {}
    for archive_filter, expected in (
        ({}, {sessions[0], sessions[2]}),
        ({"archived": "exclude"}, {sessions[0], sessions[2]}),
        ({"archived": "only"}, {sessions[1]}),
        ({"archived": "include"}, set(sessions)),
        ({"archived": "only", "cwd": str(workspace_repo.parent)}, set()),
    ):
        entries = await client.listed(**archive_filter)
        assert set(entries) == expected
        assert all(entry["archived"] == (name == sessions[1]) for name, entry in entries.items())
    assert set(await client.listed(archived=None)) == {sessions[0], sessions[2]}
    for _ in range(2):
        assert await client.request("session/unarchive", sessionId=sessions[1]) == {}
    assert await client.listed() == before
    await client.reopen(sessions[1], workspace_repo)
    assert await client.say(sessions[1], "Still here?") == "end_turn"


@pytest.mark.covers("S5", "P7")
async def test_archiving_an_open_session_stops_its_work_and_closes_it(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    model_server.add(answer("Half", Stall()))
    client = await EitherClient.before(agent, version, model_server)
    session = await client.new(workspace_repo)
    prompt = client.post_prompt(session, "Go on for ever")
    await client.wire.expect_update(session, "agent_message_chunk")
    assert await client.request("session/archive", sessionId=session) == {}
    if version == 1:
        assert (await client.wire.result(prompt))["stopReason"] == "cancelled"
    else:
        idle = await client.wire.expect_update(
            session, "state_update", lambda update: update["state"] == "idle"
        )
        assert idle["stopReason"] == "cancelled"
    assert (await client.request("session/status", sessionId=session))["status"] == "saved"
    text = [{"type": "text", "text": "Hello?"}]
    error = await client.refused("session/prompt", sessionId=session, prompt=text)
    assert error["code"] == -32002


@pytest.mark.covers("S6", "T4")
async def test_an_unknown_session_cannot_be_archived_renamed_or_queried(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    client = await EitherClient.before(agent, version, model_server)
    for method, more in (
        ("session/archive", {}),
        ("session/unarchive", {}),
        ("session/status", {}),
        ("session/set_title", {"title": "A title"}),
    ):
        for unknown in (MISSING_SESSION, "", "../x", "é"):
            error = await client.refused(method, sessionId=unknown, **more)
            assert error["code"] == -32002
            assert "not found" in error["message"]
            assert error["data"] == {"sessionId": unknown}
        for wrong in ({"sessionId": 7}, {}):
            error = await client.refused(method, **wrong, **more)
            assert error["code"] == -32602
            assert "sessionId" in error["message"]
    for archived in ("all", "", "ONLY", "_mine"):
        error = await client.refused("session/list", archived=archived)
        assert error["code"] == -32602
        assert error["message"].startswith("archived")
    assert (await client.refused("session/list", archived=True))["code"] == -32602


# -- session/set_title ---------------------------------------------------------------------------


@pytest.mark.covers("S5")
async def test_a_title_of_the_users_is_shown_and_no_turn_replaces_it(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    model_server.otherwise = answer("Yes.")
    client = await EitherClient.before(agent, version, model_server)
    session = await client.new(workspace_repo)
    answered = await client.request("session/set_title", sessionId=session, title="  My \n title ")
    assert answered == {"title": "My title"}
    update = await client.wire.expect_update(session, "session_info_update")
    assert update["title"] == "My title"
    await client.say(session, "Words that would have been the title")
    assert (await client.listed())[session]["title"] == "My title"
    assert client.kinds(session).count("session_info_update") == 1
    for title in ("", "  \n ", None, 7):
        error = await client.refused("session/set_title", sessionId=session, title=title)
        assert error["code"] == -32602
        assert "title" in error["message"]
    assert (await client.refused("session/set_title", sessionId=session))["code"] == -32602
    assert (await client.listed())[session]["title"] == "My title"


async def test_a_session_that_is_not_open_can_be_named(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    model_server.otherwise = answer("Yes.")
    client = await EitherClient.before(agent, version, model_server)
    session = await client.new(workspace_repo)
    await client.say(session, "Hello")
    second_client = await EitherClient.before(agent, 3 - version, model_server)
    error = await second_client.refused("session/set_title", sessionId=session, title="Mine")
    assert error["code"] == -32600
    assert "another process" in error["message"]
    await client.close(session)
    update_count = len(client.wire.updates(session))
    long = await second_client.request("session/set_title", sessionId=session, title="x" * 500)
    assert len(long["title"]) == 200
    assert (await client.listed())[session]["title"] == long["title"]
    assert len(client.wire.updates(session)) == update_count
    assert (await client.request("session/status", sessionId=session))["status"] == "saved"


# -- session/status ------------------------------------------------------------------------------


async def test_the_status_says_whether_a_session_is_in_memory_and_changes_nothing(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    stall = Stall()
    model_server.add(answer("Half", stall, "."))
    client = await EitherClient.before(agent, version, model_server)
    session = await client.new(workspace_repo)
    status = await client.request("session/status", sessionId=session)
    assert status == {"status": "open"} | ({"state": {"state": "idle"}} if version == 2 else {})
    client.post_prompt(session, "Go")
    await client.wire.expect_update(session, "agent_message_chunk")
    status = await client.request("session/status", sessionId=session)
    assert status == {"status": "open"} | ({"state": {"state": "running"}} if version == 2 else {})
    second_client = await EitherClient.before(agent, version, model_server)
    before = await second_client.listed()
    assert await second_client.request("session/status", sessionId=session) == {"status": "saved"}
    assert await second_client.listed() == before
    stall.release()
    await client.wire.expect_update(session, "session_info_update")
    await client.close(session)
    assert await client.request("session/status", sessionId=session) == {"status": "saved"}


async def test_the_status_of_a_session_that_waits_for_the_user_says_so(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    model_server.add(answer(READ), answer(EDIT))
    client = await EitherClient.before(agent, version, model_server)
    client.wire.editor.permission = "never"
    session = await client.new(workspace_repo)
    prompt = client.post_prompt(session, "Edit")
    if version == 1:  # which reports no state
        await client.wire.expect(lambda m: m.get("method") == "session/request_permission")
        status = await client.request("session/status", sessionId=session)
        assert status == {"status": "open"}
        client.wire.cancel(session)
        await client.wire.result(prompt)
        return
    await client.wire.expect_update(
        session, "state_update", lambda update: update["state"] == "requires_action"
    )
    status = await client.request("session/status", sessionId=session)
    assert status == {"status": "open", "state": {"state": "requires_action"}}
    client.wire.cancel(session)
    await client.wire.expect_update(
        session, "state_update", lambda update: update["state"] == "idle"
    )
