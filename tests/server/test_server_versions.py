"""Which version a connection speaks, and sessions that go from one to the other."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.server.server_session import OPENAI
from tests.support.agent_process import AgentProcess, StartAgent
from tests.support.framing import Json
from tests.support.model_script import Call, Stall, answer
from tests.support.model_server import ModelServer
from tests.support.v2_client import INFO, V2Client
from tests.support.v2_editor import EditorV2
from tests.support.wire_client import AnswerError

V1_SHAPE: Json = {"clientCapabilities": {}}
V2_SHAPE: Json = {"info": INFO, "capabilities": {}}


@pytest.fixture(params=["first", "traced"])
async def fresh(agent: StartAgent, request: pytest.FixtureRequest, tmp_path: Path) -> AgentProcess:
    """An agent that takes its first line alone, and one whose connection takes it."""
    trace = ["--trace", str(tmp_path / "trace")] if request.param == "traced" else []
    return await agent("--model", "demo/demo", *trace)


@pytest.mark.covers("I1")
@pytest.mark.parametrize(
    ("requested", "shape", "expected"),
    [
        (1, V2_SHAPE, 1),
        (2, V2_SHAPE, 2),
        (3, V1_SHAPE, 1),
        (65535, {}, 1),
        (65535, V2_SHAPE, 2),
        (65535, V1_SHAPE | V2_SHAPE, 2),
    ],
)
async def test_the_highest_version_that_fits_the_parameters_is_used(
    fresh: AgentProcess, requested: int, shape: Json, expected: int
) -> None:
    for _ in range(2):  # some clients ask twice
        result = await fresh.request("initialize", {"protocolVersion": requested} | shape)
        assert result["protocolVersion"] == expected
        assert ("capabilities" in result) == (expected == 2)
        assert ("agentCapabilities" in result) == (expected == 1)


@pytest.mark.covers("I1")
async def test_version_2_without_a_name_is_refused_by_field_and_the_next_try_works(
    fresh: AgentProcess,
) -> None:
    wrong: list[tuple[Json, str]] = [
        ({}, "info"),
        ({"info": None}, "info"),
        ({"info": {"name": "x"}}, "info.version"),
        ({"info": {"version": "1"}}, "info.name"),
        ({"info": "x"}, "info"),
    ]
    for info, field in wrong:
        with pytest.raises(AnswerError) as caught:
            await fresh.request("initialize", {"protocolVersion": 2, "capabilities": {}} | info)
        assert caught.value.code == -32602
        assert caught.value.data == {"field": field}
    with pytest.raises(AnswerError) as early:
        await fresh.request("session/list", {})
    assert early.value.code == -32600
    result = await fresh.request("initialize", {"protocolVersion": 2} | V2_SHAPE)
    assert result["protocolVersion"] == 2


@pytest.mark.covers("I1")
async def test_a_connection_keeps_to_its_version(fresh: AgentProcess, workspace_repo: Path) -> None:
    await fresh.request("initialize", {"protocolVersion": 2} | V2_SHAPE)
    for params in ({"protocolVersion": 1} | V1_SHAPE, {"protocolVersion": 65535} | V1_SHAPE):
        with pytest.raises(AnswerError) as caught:
            await fresh.request("initialize", params)
        assert caught.value.code == -32600
        assert "version 2 already" in caught.value.message
    opened = await fresh.request("session/new", {"cwd": str(workspace_repo)})
    assert "modes" not in opened


@pytest.mark.covers("I1")
async def test_of_two_versions_requested_at_once_the_first_is_used(
    agent: StartAgent, workspace_repo: Path, tmp_path: Path
) -> None:
    running = await agent("--model", "demo/demo", "--trace", str(tmp_path / "trace"))
    first = running.post("initialize", {"protocolVersion": 1} | V1_SHAPE)
    second = running.post("initialize", {"protocolVersion": 2} | V2_SHAPE)
    assert (await running.result(first))["protocolVersion"] == 1
    with pytest.raises(AnswerError) as caught:
        await running.result(second)
    assert caught.value.code == -32600
    session = await running.new_session(workspace_repo)
    assert (await running.prompt(session, "hello"))["stopReason"] == "end_turn"


@pytest.mark.covers("I1", "T6")
async def test_requests_directly_after_initialize_have_its_version(
    fresh: AgentProcess, workspace_repo: Path
) -> None:
    first = fresh.post("initialize", {"protocolVersion": 2} | V2_SHAPE)
    second = fresh.post("session/new", {"cwd": str(workspace_repo)})  # no mcpServers: version 2's
    third = fresh.post("session/load", {"sessionId": "x", "cwd": "/", "mcpServers": []})
    assert (await fresh.result(first))["protocolVersion"] == 2
    assert "availableCommands" in await fresh.result(second)
    with pytest.raises(AnswerError) as caught:
        await fresh.result(third)
    assert caught.value.code == -32601


@pytest.mark.covers("T4")
@pytest.mark.parametrize(
    ("version", "shape", "methods"),
    [
        (2, V2_SHAPE, ("session/load", "session/set_mode", "authenticate", "logout")),
        (1, V1_SHAPE, ("auth/login", "auth/logout", "tool_call/cancel", "terminal/cancel")),
    ],
)
async def test_a_method_of_the_other_version_is_unknown(
    agent: StartAgent, version: int, shape: Json, methods: tuple[str, ...]
) -> None:
    running = await agent("--model", "demo/demo")
    await running.request("initialize", {"protocolVersion": version} | shape)
    for method in methods:
        with pytest.raises(AnswerError) as caught:
            await running.request(method, {"sessionId": "x"})
        assert caught.value.code == -32601


@pytest.mark.covers("I6", "T4")
async def test_capabilities_of_a_wrong_shape_count_as_none(fresh: AgentProcess) -> None:
    wrong: list[Any] = [None, [], "all", {"elicitation": []}, {"auth": 1}]
    for capabilities in wrong:
        params = {"protocolVersion": 2, "info": INFO, "capabilities": capabilities}
        result = await fresh.request("initialize", params)
        assert [method["methodId"] for method in result["authMethods"]] == ["configured", "demo"]


@pytest.mark.covers("T3", "I1")
async def test_batches_are_for_version_2(agent: StartAgent) -> None:
    running = await agent("--model", "demo/demo")
    await running.request("initialize", {"protocolVersion": 1} | V1_SHAPE)
    batch = [{"jsonrpc": "2.0", "id": 7, "method": "session/list", "params": {}}]
    await running.send(batch)
    refused = await running.expect(lambda message: "error" in message)
    assert (refused["id"], refused["error"]["code"]) == (None, -32600)


async def test_a_session_goes_from_one_version_to_the_other_and_back(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path
) -> None:
    """What one version showed, the other shows, and each replay is that of one conversation."""
    environ = model_server.environ()
    model_server.add(
        answer("First.", Call("write", {"path": "a.txt", "content": "one\n"})), answer("Written.")
    )
    first = await agent(*OPENAI, environ=environ)
    await first.initialize()
    session = await first.new_session(workspace_repo)
    assert (await first.prompt(session, "write it"))["stopReason"] == "end_turn"
    before = first.updates(session)
    await first.stop()

    model_server.add(answer(Call("shell", {"command": "cat a.txt"})), answer("It says one."))
    two = await agent(*OPENAI, environ=environ, editor=EditorV2())
    client = V2Client(two)
    await client.initialize()
    view = await client.resume(session, workspace_repo, replay=True)
    assert view.text("user") == "write it"
    assert view.text() == "First.Written."
    ((call, call_view),) = view.calls.items()
    call_update = next(u for u in before if u["sessionUpdate"] == "tool_call")
    ended = [u for u in before if u["sessionUpdate"] == "tool_call_update"][-1]
    assert call == call_update["toolCallId"]
    assert call_view["status"] == ended["status"] == "completed"
    assert call_view["rawInput"] == call_update["rawInput"]
    assert "+one" in call_view["content"][0]["patch"]["text"]
    assert (await client.prompt(session, "what does it say?"))["stopReason"] == "end_turn"
    live = client.view(session)
    await two.stop()

    three = await agent(*OPENAI, environ=environ)
    await three.initialize()
    params = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    await three.request("session/load", params)
    replayed = three.updates(session)
    words = "".join(
        update["content"]["text"]
        for update in replayed
        if update["sessionUpdate"] == "agent_message_chunk"
    )
    assert words == live.text() == "First.Written.It says one."
    calls = [u["toolCallId"] for u in replayed if u["sessionUpdate"] == "tool_call"]
    assert calls == list(live.calls)
    diff = next(u for u in replayed if u["sessionUpdate"] == "tool_call")
    assert diff["toolCallId"] == call

    # The model was sent one conversation, each request beginning with the one before.
    history = [request.json["messages"] for request in model_server.requests]
    for earlier, later in pairwise(history):
        assert later[: len(earlier)] == earlier


async def test_a_turn_is_stopped_over_either_version(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path
) -> None:
    stall = Stall()
    model_server.add(answer("Half", stall))
    running = await agent(*OPENAI, environ=model_server.environ(), editor=EditorV2())
    client = V2Client(running)
    await client.initialize()
    session = await client.new_session(workspace_repo)
    message = await client.said(client.post_prompt(session, "go"))
    await client.expect_view(session, lambda view: view.text() == "Half")
    client.cancel(session)
    client.cancel(session)
    assert (await client.idle(session, message))["stopReason"] == "cancelled"
