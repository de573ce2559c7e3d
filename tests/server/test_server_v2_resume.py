"""Resuming sessions of version 2: with and without a replay, in the middle of work, after a crash.

Source: Agent Client Protocol v2, Session Setup, Resuming Sessions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server.server_session import DEMO, READ
from tests.server.v2_session import OpenV2, connect, states
from tests.support.agent_process import StartAgent
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.v2_client import V2Client
from tests.support.v2_editor import EditorV2
from tests.support.wire_client import AnswerError

SLEEP = Call("shell", {"command": "printf begun; sleep 300"})
# What tells of the conversation, as opposed to the state and the title of the session.
INITIAL_UPDATES = {
    "user_message", "agent_message", "agent_thought", "agent_message_chunk", "tool_call_update",
    "terminal_update", "plan_update",
}  # fmt: skip


def kinds(client: V2Client, session: str) -> list[str]:
    return [update["sessionUpdate"] for update in client.wire.updates(session)]


@pytest.mark.covers("S4", "S2")
@pytest.mark.parametrize("replay", [True, False])
async def test_the_state_comes_before_the_response_and_the_conversation_only_on_request(
    opened_v2: OpenV2,
    agent: StartAgent,
    model_server: ModelServer,
    workspace_repo: Path,
    replay: bool,
) -> None:
    model_server.add(answer("Reading.", READ), answer("Read."), answer("And on."))
    client, session = await opened_v2()
    await client.prompt(session, "read it")
    live = client.view(session).conversation()
    await client.wire.stop()
    second_client = await connect(agent, model_server)
    view = await second_client.resume(session, workspace_repo, replay=replay)
    assert states(second_client, session) == ["idle"]
    response = next(
        m for m in second_client.wire.messages if "configOptions" in m.get("result", {})
    )
    before = second_client.wire.messages[: second_client.wire.messages.index(response)]
    updates = [m["params"]["update"]["sessionUpdate"] for m in before if "params" in m]
    assert updates[-1] == "state_update"
    assert bool(INITIAL_UPDATES & set(updates)) == replay
    assert response["result"]["availableCommands"]
    if replay:
        assert view.conversation() == live
    assert (await second_client.prompt(session, "go on"))["stopReason"] == "end_turn"
    assert "Read." in str(model_server.requests[-1].json["messages"])


@pytest.mark.covers("S4")
@pytest.mark.parametrize("replay", [True, False])
async def test_a_session_resumed_in_the_middle_of_its_work_is_running_and_continues(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path, replay: bool
) -> None:
    stall = Stall()
    model_server.add(answer("Half", stall, " and half"))
    client, session = await opened_v2()
    message = await client.said(client.post_prompt(session, "Go"))
    await client.expect_view(session, lambda view: view.text() == "Half")
    view = await client.resume(session, workspace_repo, replay=replay)
    assert view.state == "running"
    assert view.text() == ("Half" if replay else "")
    stall.release()
    await client.expect_view(session, lambda view: view.state == "idle")
    assert client.view(session).text() == ("Half and half" if replay else " and half")
    assert (await client.idle(session, message))["stopReason"] == "end_turn"


@pytest.mark.covers("S4", "P6")
async def test_a_session_resumed_while_the_user_is_asked_says_so(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer(Call("write", {"path": "a.txt", "content": "a"})))
    client, session = await opened_v2(permission="never")
    message = await client.said(client.post_prompt(session, "Go"))
    await client.wire.expect(lambda m: m.get("method") == "session/request_permission")
    view = await client.resume(session, workspace_repo, replay=True)
    assert view.state == "requires_action"
    client.cancel(session)
    assert (await client.idle(session, message))["stopReason"] == "cancelled"
    assert states(client, session) == ["requires_action", "idle: cancelled"]


@pytest.mark.covers("S4", "T4")
async def test_an_unknown_cursor_is_refused_and_nothing_is_resumed(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer("Yes."), answer("Still here."))
    client, session = await opened_v2()
    await client.prompt(session, "hello")
    before = len(client.wire.updates(session))
    cursors: list[Any] = [
        {"type": "message", "messageId": "m"}, {"type": "_ours"}, {}, "start", 1, {"type": 1},
    ]  # fmt: skip
    for cursor in cursors:
        params = {"sessionId": session, "cwd": str(workspace_repo), "replayFrom": cursor}
        with pytest.raises(AnswerError) as caught:
            await client.wire.request("session/resume", params)
        assert caught.value.code == -32602
        assert "replayFrom" in caught.value.message
    assert len(client.wire.updates(session)) == before
    assert (await client.prompt(session, "and now?"))["stopReason"] == "end_turn"


@pytest.mark.covers("S4")
async def test_a_null_cursor_is_no_cursor(opened_v2: OpenV2, workspace_repo: Path) -> None:
    client, session = await opened_v2()
    params = {"sessionId": session, "cwd": str(workspace_repo), "replayFrom": None}
    await client.wire.request("session/resume", params, checked=True)
    assert not INITIAL_UPDATES & set(kinds(client, session))


@pytest.mark.covers("S1", "S4", "S6")
async def test_the_error_for_a_failed_resume_says_why(
    opened_v2: OpenV2, workspace_repo: Path, tmp_path: Path
) -> None:
    client, session = await opened_v2()
    refused: list[tuple[dict[str, Any], int, str]] = [
        ({"cwd": "relative"}, -32602, "cwd"),
        ({"cwd": str(tmp_path / "gone")}, -32602, "cwd"),
        ({}, -32602, "cwd"),
        ({"cwd": str(workspace_repo), "additionalDirectories": ["x"]}, -32602, "additional"),
        ({"cwd": str(workspace_repo), "sessionId": "sess_nobody_made"}, -32002, "not found"),
        ({"cwd": str(workspace_repo), "sessionId": None}, -32602, "sessionId"),
    ]
    for params, code, words in refused:
        with pytest.raises(AnswerError) as caught:
            await client.wire.request("session/resume", {"sessionId": session} | params)
        assert caught.value.code == code, params
        assert words in caught.value.message


@pytest.mark.covers("S4")
async def test_a_session_resumed_in_another_folder_works_there(
    opened_v2: OpenV2, model_server: ModelServer, tmp_path: Path
) -> None:
    second_folder = tmp_path / "other"
    second_folder.mkdir()
    model_server.add(answer(Call("shell", {"command": "pwd"})), answer("There."))
    client, session = await opened_v2()
    await client.resume(session, second_folder)
    assert (await client.prompt(session, "where are we?"))["stopReason"] == "end_turn"
    (terminal,) = client.view(session).terminals.values()
    assert terminal.cwd == str(second_folder)
    assert terminal.output.decode().strip() == str(second_folder)


@pytest.mark.covers("S4", "P3", "T8")
async def test_after_a_kill_during_an_answer_the_replay_has_all_shown_text(
    opened_v2: OpenV2, agent: StartAgent, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer("It was ", "half ", "said", Stall()), answer("Again, then."))
    client, session = await opened_v2()
    message = await client.said(client.post_prompt(session, "say it"))
    await client.expect_view(session, lambda view: view.text().endswith("said"))
    await client.wire.kill()

    second_client = await connect(agent, model_server)
    view = await second_client.resume(session, workspace_repo, replay=True)
    texts = [(one.author, one.text) for one in view.messages.values()]
    assert texts[:2] == [("user", "say it"), ("agent", "It was half said")]
    assert next(iter(view.messages)) == message
    assert "stopped here before it finished" in texts[2][1]
    assert view.state == "idle"
    resumed = await second_client.resume(session, workspace_repo, replay=True)
    assert resumed.conversation() == view.conversation()
    assert (await second_client.prompt(session, "go on"))["stopReason"] == "end_turn"


@pytest.mark.covers("S4", "P3", "P5")
async def test_after_a_kill_in_the_middle_of_a_command_its_call_has_failed_and_its_terminal_exited(
    opened_v2: OpenV2, agent: StartAgent, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer(READ), answer(SLEEP))
    client, session = await opened_v2()
    await client.said(client.post_prompt(session, "Go"))
    await client.expect_update(session, "terminal_output_chunk")
    await client.wire.kill()

    second_client = await connect(agent, model_server)
    view = await second_client.resume(session, workspace_repo, replay=True)
    assert [call["status"] for call in view.calls.values()] == ["completed", "failed"]
    assert all(call["capabilities"] is None for call in view.calls.values())
    (terminal,) = view.terminals.values()
    assert terminal.output == b"begun"
    assert terminal.exit_status == {}
    assert view.state == "idle"


@pytest.mark.covers("S4", "I5")
async def test_a_session_can_be_loaded_although_its_model_is_unavailable(
    opened_v2: OpenV2, agent: StartAgent, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer("Yes."))
    client, session = await opened_v2()
    await client.prompt(session, "hello")
    live = client.view(session).conversation()
    await client.wire.stop()
    second_client = V2Client(await agent(*DEMO, editor=EditorV2()))
    await second_client.initialize()
    view = await second_client.resume(session, workspace_repo, replay=True)
    assert view.conversation() == live
