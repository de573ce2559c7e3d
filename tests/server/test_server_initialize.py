"""The first request of a connection, answered by either of the two ways in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from acp_agent import __version__
from tests.server.server_session import DEMO
from tests.support.agent_process import AgentProcess, StartAgent
from tests.support.editor import EVERYTHING, Editor
from tests.support.wire_client import AnswerError

CLIENTS: list[dict[str, Any]] = [
    {},
    {"clientCapabilities": {}},
    {"clientCapabilities": Editor(offers=EVERYTHING).capabilities},
    {"clientCapabilities": {"_meta": {"terminal-auth": True}}},
    {"clientCapabilities": {"auth": {"terminal": True}}, "_meta": {"any": ["thing"]}},
    {"clientCapabilities": {"clientInfo": {"name": "misplaced", "version": "1"}}},
]


def result_bytes(line: bytes) -> bytes:
    """The bytes of a response's result."""
    return line[line.index(b'"result":') :]


@pytest.fixture(params=["first", "traced"])
async def fresh(request: pytest.FixtureRequest, agent: StartAgent, tmp_path: Path) -> AgentProcess:
    """An agent that was not initialized; a traced one answers in the ordinary way at once."""
    trace = ("--trace", str(tmp_path / "trace")) if request.param == "traced" else ()
    return await agent(*DEMO, *trace)


@pytest.mark.cold  # the first answer comes before the imports
@pytest.mark.covers("I1", "I3")
async def test_both_ways_in_answer_every_client_with_the_same_bytes(
    agent: StartAgent,
) -> None:
    for params in CLIENTS:
        running = await agent(*DEMO)
        for _ in range(2):  # the second goes the ordinary way
            await running.request("initialize", {"protocolVersion": 1} | params)
        first, second = running.lines
        assert result_bytes(first) == result_bytes(second)
        await running.stop()


@pytest.mark.covers("I3")
async def test_the_agent_names_itself_and_what_it_can_do(fresh: AgentProcess) -> None:
    result = await fresh.initialize()
    assert result["protocolVersion"] == 1
    assert result["agentInfo"] == {
        "name": "acp-agent",
        "title": "acp-agent",
        "version": __version__,
    }
    capabilities = dict(result["agentCapabilities"])
    assert capabilities.pop("_meta").keys() == {"acp-agent", "steering"}
    assert capabilities == {
        "loadSession": True,
        "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
        "mcpCapabilities": {"http": True, "sse": True, "acp": True},
        "sessionCapabilities": {
            "list": {},
            "delete": {},
            "additionalDirectories": {},
            "resume": {},
            "close": {},
            "systemPrompt": {"mode": {"override": {}}},
            "fork": {},
            "archive": {},
            "status": {},
            "title": {},
        },
        "auth": {"logout": {}, "status": {}},
        "providers": {},
    }


@pytest.mark.covers("I3")
async def test_exactly_the_advertised_methods_are_served(
    agent: StartAgent, workspace_repo: Path
) -> None:
    running = await agent(*DEMO)
    advertised = (await running.initialize())["agentCapabilities"]["sessionCapabilities"]
    session = await running.new_session(workspace_repo)
    params = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    for name in ("list", "resume", "close", "delete"):
        assert name in advertised
        await running.request(f"session/{name}", {} if name == "list" else params)
    with pytest.raises(AnswerError) as caught:
        await running.request("proxy/initialize", {"protocolVersion": 1})
    assert caught.value.code == -32601


@pytest.mark.covers("I1")
async def test_an_older_version_is_refused_with_the_supported_ones(fresh: AgentProcess) -> None:
    with pytest.raises(AnswerError) as caught:
        await fresh.initialize(version=0)
    assert caught.value.code == -32022
    assert caught.value.data == {"requested": 0, "supported": [1, 2]}
    assert (await fresh.initialize())["protocolVersion"] == 1


@pytest.mark.covers("I1")
async def test_an_invalid_version_is_refused_by_name_and_the_next_try_works(
    fresh: AgentProcess,
) -> None:
    for wrong in ("1", "2025-06-18", None, 1.5, True, -1, 65536, [1]):
        with pytest.raises(AnswerError) as caught:
            await fresh.request("initialize", {"protocolVersion": wrong, "clientCapabilities": {}})
        assert caught.value.code == -32602, wrong
        assert "protocolVersion" in caught.value.message
    assert (await fresh.initialize())["protocolVersion"] == 1


@pytest.mark.covers("I1", "T4")
async def test_a_missing_version_is_refused_by_name(fresh: AgentProcess) -> None:
    without: tuple[dict[str, Any] | None, ...] = ({}, {"clientCapabilities": {}}, None)
    for params in without:
        with pytest.raises(AnswerError) as caught:
            await fresh.request("initialize", params)
        assert caught.value.code == -32602
        assert "protocolVersion" in caught.value.message


@pytest.mark.covers("I1")
async def test_initialize_again_leaves_the_sessions_as_they_are(
    agent: StartAgent, workspace_repo: Path
) -> None:
    running = await agent(*DEMO)
    await running.initialize()
    session = await running.new_session(workspace_repo)
    await running.initialize()
    assert (await running.prompt(session, "hello"))["stopReason"] == "end_turn"


@pytest.mark.cold  # the first answer comes before the imports
@pytest.mark.covers("I2")
async def test_requests_before_initialize_are_refused_and_say_what_is_missing(
    fresh: AgentProcess, workspace_repo: Path
) -> None:
    new = {"cwd": str(workspace_repo), "mcpServers": []}
    for method, params in (("session/new", new), ("session/list", {}), ("authenticate", {})):
        with pytest.raises(AnswerError) as caught:
            await fresh.request(method, params)
        assert caught.value.code == -32600
        assert "initialize" in caught.value.message
    await fresh.initialize()
    await fresh.new_session(workspace_repo)


@pytest.mark.cold  # the first answer comes before the imports
@pytest.mark.covers("I2", "T6")
async def test_requests_sent_together_with_initialize_are_answered_after_it(
    agent: StartAgent, workspace_repo: Path
) -> None:
    running = await agent(*DEMO)
    hello = {"protocolVersion": 1, "clientCapabilities": {}}
    new = {"cwd": str(workspace_repo), "mcpServers": []}
    lines = [
        {"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "id": "b", "method": "session/new", "params": new},
    ]
    await running.send(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    assert "sessionId" in await running.result("b")
    assert [message["id"] for message in running.messages[:2]] == ["a", "b"]


@pytest.mark.cold  # the first answer comes before the imports
@pytest.mark.covers("I2", "T3")
async def test_garbage_before_initialize_is_answered_and_initialize_still_works(
    fresh: AgentProcess,
) -> None:
    await fresh.send(b"not json\n")
    error = await fresh.expect(lambda message: "error" in message)
    assert (error["id"], error["error"]["code"]) == (None, -32700)
    assert (await fresh.initialize())["protocolVersion"] == 1


@pytest.mark.covers("T4", "I6")
async def test_odd_but_harmless_clients_are_served(agent: StartAgent, workspace_repo: Path) -> None:
    odd: list[dict[str, Any]] = [
        {"clientInfo": None, "clientCapabilities": None, "_meta": None},
        {"clientCapabilities": {"clientInfo": {"name": "misplaced", "version": "1"}}},
        {"clientCapabilities": {"fs": None, "terminal": None, "unheard": {"of": 1}}},
        {"clientInfo": {"name": "bare"}, "more": [1, 2]},
    ]
    for client in odd:
        running = await agent(*DEMO)
        for _ in range(2):
            await running.request("initialize", {"protocolVersion": 1} | client)
        session = await running.new_session(workspace_repo)
        assert (await running.prompt(session, "hello"))["stopReason"] == "end_turn"


@pytest.mark.covers("I6", "T4")
async def test_capabilities_of_a_wrong_shape_are_not_used(
    fresh: AgentProcess, workspace_repo: Path
) -> None:
    wrong: list[Any] = [
        {"fs": [True], "terminal": "yes", "elicitation": "form", "auth": 1},
        [],
        "all",
        1,
        {"fs": {"readTextFile": "yes", "writeTextFile": 1}, "session": ["notices"], "plan": []},
    ]
    for capabilities in wrong:
        params = {"protocolVersion": 1, "clientCapabilities": capabilities}
        result = await fresh.request("initialize", params)
        assert [method["id"] for method in result["authMethods"]] == ["configured", "demo"]
        session = await fresh.new_session(workspace_repo)
        for words in ("read greeting.py", "ask me tea or coffee? tea, coffee"):
            assert (await fresh.prompt(session, words))["stopReason"] == "end_turn"
        assert not any("method" in message and "id" in message for message in fresh.messages)
        assert "Hello" in str(fresh.updates(session, "tool_call_update"))


@pytest.mark.covers("T4")
async def test_a_type_member_next_to_jsonrpc_does_no_harm(
    agent: StartAgent, workspace_repo: Path
) -> None:
    running = await agent(*DEMO)
    requests = {
        "initialize": {"protocolVersion": 1, "clientCapabilities": {}},
        "session/new": {"cwd": str(workspace_repo), "mcpServers": []},
    }
    for number, (method, params) in enumerate(requests.items()):
        await running.send(
            {"type": "x.Request", "jsonrpc": "2.0", "id": number, "method": method}
            | {"params": params}
        )
        assert await running.result(number)
