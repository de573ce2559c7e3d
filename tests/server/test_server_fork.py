"""Sessions forked, over the wire of both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.either_version import EitherClient
from tests.server.server_session import READ, messages
from tests.support.agent_process import StartAgent
from tests.support.model_server import ModelServer, Stall, answer

pytestmark = pytest.mark.parametrize("version", [1, 2])
MISSING_SESSION = "sess_00000000-0000-7000-8000-000000000000"


@pytest.mark.covers("S2", "S3")
async def test_a_fork_continues_the_conversation_and_the_source_does_not_change(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    model_server.add(answer("Let me see.", READ), answer("It greets."))
    model_server.otherwise = answer("Yes.")
    client = await EitherClient.before(agent, version, model_server)
    source = await client.new(workspace_repo)
    await client.say(source, "What does it do?")
    update_count = len(client.wire.updates(source))
    opened = await client.request("session/fork", sessionId=source, cwd=str(workspace_repo))
    fork = opened.pop("sessionId")
    second_session = await client.request("session/new", cwd=str(workspace_repo), mcpServers=[])
    assert opened.keys() == second_session.keys() - {"sessionId"}
    assert opened["configOptions"] == second_session["configOptions"]
    assert await client.say(fork, "In the fork") == "end_turn"
    assert await client.say(source, "In the source") == "end_turn"
    first, forked, second_session_messages = (
        messages(model_server, request) for request in (1, 2, 3)
    )
    assert forked[: len(first)] == second_session_messages[: len(first)] == first
    assert "In the fork" not in str(second_session_messages)
    assert "In the fork" not in str(client.wire.updates(source)[update_count:])


@pytest.mark.covers("S2")
async def test_a_fork_replays_nothing_and_tells_its_commands_after_the_response(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    model_server.otherwise = answer("Yes.")
    client = await EitherClient.before(agent, version, model_server)
    source = await client.new(workspace_repo)
    await client.say(source, "Hello")
    request_id = client.wire.post("session/fork", {"sessionId": source, "cwd": str(workspace_repo)})
    opened = (await client.wire.answer(request_id))["result"]
    fork = opened["sessionId"]
    await client.listed()
    if version == 1:
        assert client.kinds(fork) == ["available_commands_update"]
        response = next(i for i, m in enumerate(client.wire.messages) if m.get("id") == request_id)
        later = client.wire.messages[response + 1 :]
        assert fork not in str(client.wire.messages[:response])
        assert any(m.get("params", {}).get("sessionId") == fork for m in later)
    else:
        assert client.kinds(fork) == []
        assert {command["name"] for command in opened["availableCommands"]} >= {"help", "status"}
    loaded = await client.listed()
    assert loaded[fork]["title"] == "Hello (fork)"
    assert loaded[source]["title"] == "Hello"


@pytest.mark.covers("S4")
async def test_a_fork_can_be_replayed_whole_also_by_another_process(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    model_server.otherwise = answer("Yes.")
    client = await EitherClient.before(agent, version, model_server)
    source = await client.new(workspace_repo)
    await client.say(source, "Hello")
    fork = await client.fork(source, workspace_repo)
    await client.say(fork, "Only here")
    await client.wire.kill()
    client = await EitherClient.before(agent, version, model_server)
    cwd = str(workspace_repo)
    if version == 1:
        await client.request("session/load", sessionId=fork, cwd=cwd, mcpServers=[])
    else:
        await client.reopen(fork, workspace_repo, replayFrom={"type": "start"})
    replay = str(client.wire.updates(fork))
    assert replay.index("Hello") < replay.index("Only here")
    assert await client.say(fork, "And now?") == "end_turn"


async def test_a_session_can_be_forked_in_the_middle_of_a_turn(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    stall = Stall()
    model_server.add(answer("Half a sen", stall, "tence."))
    model_server.otherwise = answer("Yes.")
    client = await EitherClient.before(agent, version, model_server)
    source = await client.new(workspace_repo)
    prompt = client.post_prompt(source, "Tell me")
    await client.wire.expect_update(source, "agent_message_chunk")
    fork = await client.fork(source, workspace_repo)
    assert await client.say(fork, "In the fork") == "end_turn"
    assert "Half a sen" not in str(messages(model_server))
    stall.release()
    if version == 1:
        assert (await client.wire.result(prompt))["stopReason"] == "end_turn"
    await client.wire.expect_update(source, "session_info_update")
    assert client.wire.text(source).replace("Yes.", "") == "Half a sentence."


@pytest.mark.covers("S6", "T4", "S1")
async def test_the_error_for_a_failed_fork_says_why(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    client = await EitherClient.before(agent, version, model_server)
    source, cwd = await client.new(workspace_repo), str(workspace_repo)
    for params, code, word in (
        ({"sessionId": MISSING_SESSION, "cwd": cwd}, -32002, "not found"),
        ({"sessionId": "../../etc", "cwd": cwd}, -32002, "not found"),
        ({"sessionId": 7, "cwd": cwd}, -32602, "sessionId"),
        ({"sessionId": source}, -32602, "cwd"),
        ({"sessionId": source, "cwd": "relative"}, -32602, "cwd"),
        ({"sessionId": source, "cwd": cwd, "additionalDirectories": ["x"]}, -32602, "additional"),
    ):
        error = await client.refused("session/fork", **params)
        assert (error["code"], word in error["message"]) == (code, True), error
    everything = await client.wire.request("session/list", {})
    assert everything["sessions"] == []
