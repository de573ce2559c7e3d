"""Opening a session again: with a replay, without one, and while another process has it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.server.server_session import DEMO, OpenSession, messages
from tests.support.agent_process import StartAgent
from tests.support.model_server import Call, ModelServer, answer
from tests.support.replays import STATE, conversation
from tests.support.wire_client import AnswerError


@pytest.mark.covers("S4")
async def test_load_replays_first_and_then_answers_with_an_object(
    opened: OpenSession, agent: StartAgent, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer("The answer."))
    first, session = await opened()
    await first.prompt(session, "The question.")
    await first.stop()

    second, _ = await opened()
    load = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    request = second.post("session/load", load)
    result = await second.result(request)
    assert isinstance(result, dict)
    assert result["modes"]["currentModeId"] == "ask"
    assert {option["id"] for option in result["configOptions"]} >= {"mode", "model"}
    at = next(i for i, message in enumerate(second.messages) if message.get("id") == request)
    before = [
        message["params"]["update"]
        for message in second.messages[:at]
        if message.get("method") == "session/update" and message["params"]["sessionId"] == session
    ]
    texts = [
        (update["sessionUpdate"], update["content"]["text"])
        for update in conversation(before)
        if "content" in update
    ]
    assert texts == [
        ("user_message_chunk", "The question."),
        ("agent_message_chunk", "The answer."),
    ]
    after = second.updates(session)[len(before) :]
    assert {update["sessionUpdate"] for update in after} <= STATE


@pytest.mark.covers("S4")
async def test_resume_replays_nothing_needs_no_mcp_servers_and_the_model_remembers(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer("The answer."), answer("More."))
    first, session = await opened()
    await first.prompt(session, "The question.")
    await first.stop()

    second, _ = await opened()
    await second.request("session/resume", {"sessionId": session, "cwd": str(workspace_repo)})
    await second.request("session/list", {})
    assert {update["sessionUpdate"] for update in second.updates(session)} <= STATE
    await second.prompt(session, "And more?")
    assert second.text(session) == "More."
    roles = [message["role"] for message in messages(model_server)]
    assert roles == ["user", "assistant", "user"]
    assert "The answer." in json.dumps(messages(model_server)[1])


@pytest.mark.covers("S4", "T8")
async def test_a_session_that_another_process_has_open_is_refused_until_that_one_ends(
    agent: StartAgent, workspace_repo: Path
) -> None:
    first = await agent(*DEMO)
    second = await agent(*DEMO)
    await first.initialize()
    await second.initialize()
    session = await first.new_session(workspace_repo)
    await first.prompt(session, "hello")
    params = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    for method in ("session/load", "session/resume", "session/delete"):
        with pytest.raises(AnswerError) as caught:
            await second.request(method, params)
        assert caught.value.code == -32600
        assert session in caught.value.message
        assert "another" in caught.value.message.lower()
    assert second.updates(session) == []
    await first.stop()
    await second.request("session/load", params)
    assert (await second.prompt(session, "hello again"))["stopReason"] == "end_turn"


@pytest.mark.covers("S4")
async def test_a_session_can_be_opened_in_another_folder_and_works_there(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "greeting.py").write_text("the moved one\n")
    model_server.add(answer("Hi."), answer(Call("read", {"path": "greeting.py"})), answer("Read."))
    running, session = await opened()
    await running.prompt(session, "hi")
    await running.request(
        "session/load", {"sessionId": session, "cwd": str(moved), "mcpServers": []}
    )
    await running.prompt(session, "read greeting.py")
    assert "the moved one" in json.dumps(messages(model_server)[-1])
    listed = await running.request("session/list", {"cwd": str(moved)})
    assert [entry["sessionId"] for entry in listed["sessions"]] == [session]


@pytest.mark.covers("T8")
async def test_two_processes_work_on_one_store_at_the_same_time(
    agent: StartAgent, workspace_repo: Path
) -> None:
    first = await agent(*DEMO)
    second = await agent(*DEMO)
    sessions = []
    for running in (first, second):
        await running.initialize()
        sessions.append(await running.new_session(workspace_repo))
    request_ids = [
        (running, running.post_prompt(session, "hello"))
        for running, session in zip((first, second), sessions, strict=True)
    ]
    for running, request in request_ids:
        assert (await running.result(request))["stopReason"] == "end_turn"
    for running in (first, second):
        listed = (await running.request("session/list", {}))["sessions"]
        assert {entry["sessionId"] for entry in listed} == set(sessions)
