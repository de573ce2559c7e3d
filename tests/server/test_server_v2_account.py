"""Logging in and out over version 2.

Source: Agent Client Protocol v2, Authentication.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.v2_session import OpenV2, prompt_params
from tests.support.agent_process import StartAgent
from tests.support.model_server import ModelServer, answer
from tests.support.v2_client import V2Client
from tests.support.v2_editor import ALL_OF_V2, EditorV2
from tests.support.wire_client import AnswerError


@pytest.mark.covers("I4")
async def test_a_terminal_login_is_offered_to_those_who_can_run_one_and_starts_the_program(
    agent: StartAgent,
) -> None:
    able = V2Client(await agent(editor=EditorV2(offers=ALL_OF_V2)))
    unable = V2Client(await agent(editor=EditorV2()))
    methods = (await able.initialize())["authMethods"]
    (terminal,) = [method for method in methods if method["type"] == "terminal"]
    assert set(terminal) <= {"methodId", "name", "description", "type", "args", "env", "_meta"}
    assert terminal["args"][0] == "--login"
    assert "command" not in terminal
    for method in methods:
        assert method["methodId"]
        assert method["name"]
    assert len({method["methodId"] for method in methods}) == len(methods)
    further_methods = (await unable.initialize())["authMethods"]
    assert "terminal" not in {method["type"] for method in further_methods}
    assert "agent" in {method["type"] for method in further_methods}


@pytest.mark.covers("I4", "I5")
async def test_a_user_without_a_key_sees_how_to_log_in_and_can_work_afterwards(
    agent: StartAgent, workspace_repo: Path
) -> None:
    client = V2Client(await agent(editor=EditorV2()))
    methods = (await client.initialize())["authMethods"]
    with pytest.raises(AnswerError) as caught:
        await client.new_session(workspace_repo)
    assert caught.value.code == -32000
    assert caught.value.data == {"authMethods": methods}
    login = {"methodId": "demo"}
    assert await client.wire.request("auth/login", login, checked=True) == {}
    session = await client.new_session(workspace_repo)
    assert (await client.prompt(session, "hello"))["stopReason"] == "end_turn"


@pytest.mark.covers("I4")
@pytest.mark.parametrize("method", ["nobody offered this", "terminal", "login", "", None, 7])
async def test_a_login_that_was_not_offered_is_refused(agent: StartAgent, method: object) -> None:
    client = V2Client(await agent(editor=EditorV2(offers=ALL_OF_V2)))
    methods = {m["methodId"]: m for m in (await client.initialize())["authMethods"]}
    if method in methods:
        assert methods[method]["type"] == "terminal"
    with pytest.raises(AnswerError) as caught:
        await client.wire.request("auth/login", {"methodId": method})
    assert caught.value.code == -32602
    assert "methodId" in caught.value.message


@pytest.mark.covers("I4", "I5")
async def test_a_logout_lets_the_work_end_and_refuses_what_comes_next(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer("Yes."))
    client, session = await opened_v2()
    assert (await client.prompt(session, "hello"))["stopReason"] == "end_turn"
    assert await client.wire.request("auth/logout", {}, checked=True) == {}
    assert await client.wire.request("auth/logout", {}, checked=True) == {}
    for method, params in (
        ("session/new", {"cwd": str(workspace_repo)}),
        ("session/prompt", prompt_params(session, "still there?")),
    ):
        with pytest.raises(AnswerError) as caught:
            await client.wire.request(method, params)
        assert caught.value.code == -32000
    listed = await client.wire.request("session/list", {}, checked=True)
    assert [entry["sessionId"] for entry in listed["sessions"]] == [session]
