"""What the agent advertises works, and what works it advertises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from acp_agent.server.initialize import SUPPORTED_VERSIONS
from tests.server.server_session import DEMO
from tests.support.agent_process import AgentProcess, StartAgent
from tests.support.editor import EVERYTHING, Editor
from tests.support.oracle_rules import offered
from tests.support.promises import CAPABILITIES_OF, NOT_FOUND, promised, requests_of, served
from tests.support.v2_client import V2Client
from tests.support.v2_editor import EditorV2
from tests.support.wire_client import AnswerError
from tests.support.wire_schema import wire_schema

Json = dict[str, Any]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # noqa: E501 - an image
NOTE = {"uri": "file:///note.txt", "mimeType": "text/plain", "text": "a note"}
CONTENT: dict[str, Json] = {
    "image": {"type": "image", "mimeType": "image/png", "data": PIXEL},
    "audio": {"type": "audio", "mimeType": "audio/wav", "data": "UklGRg=="},
    "embeddedContext": {"type": "resource", "resource": NOTE},
}
SERVERS: dict[str, Json] = {
    "stdio": {"type": "stdio", "name": "s", "command": "/bin/false", "args": [], "env": []},
    "http": {"type": "http", "name": "h", "url": "http://127.0.0.1:9/mcp", "headers": []},
    "sse": {"type": "sse", "name": "e", "url": "http://127.0.0.1:9/sse", "headers": []},
    "acp": {"type": "acp", "name": "a", "serverId": "server-1"},
}

pytestmark = pytest.mark.parametrize("version", SUPPORTED_VERSIONS)


async def opened(agent: StartAgent, version: int) -> tuple[AgentProcess, Json]:
    """An agent that speaks a version with a client that can do everything; what it advertises."""
    editor = Editor(offers=EVERYTHING) if version == 1 else EditorV2(offers=EVERYTHING)
    running = await agent(*DEMO, editor=editor)
    client = running if version == 1 else V2Client(running)
    return running, await client.initialize()


def capability(version: int, advertised: Json, group: str, name: str) -> bool:
    """Whether `prompt.image`, `mcp.http` and the like are advertised."""
    capabilities = advertised[CAPABILITIES_OF[version]]
    if version == 1:
        return offered(capabilities, f"{group}Capabilities", name)
    return offered(capabilities, "session", group, name)


@pytest.mark.covers("I3", "T4")
async def test_exactly_those_methods_are_known_that_the_advertisement_promises(
    agent: StartAgent, workspace_repo: Path, version: int
) -> None:
    schema = wire_schema(f"v{version}")
    if schema is None:
        pytest.skip("the protocol's schema needs Node.js, which is not installed")
    running, advertised = await opened(agent, version)
    new = await running.request("session/new", {"cwd": str(workspace_repo), "mcpServers": []})
    methods = requests_of(schema)
    assert await served(running, methods) == promised(version, advertised, new)


@pytest.mark.covers("I1", "T4")
async def test_methods_of_the_other_version_are_not_known(agent: StartAgent, version: int) -> None:
    schema, second_schema = wire_schema(f"v{version}"), wire_schema(f"v{3 - version}")
    if schema is None or second_schema is None:
        pytest.skip("the protocol's schema needs Node.js, which is not installed")
    running, _ = await opened(agent, version)
    foreign = requests_of(second_schema) - requests_of(schema)
    assert foreign
    assert await served(running, foreign) == set()


@pytest.mark.covers("P1", "I3")
async def test_content_is_accepted_if_and_only_if_it_is_advertised(
    agent: StartAgent, workspace_repo: Path, version: int
) -> None:
    running, advertised = await opened(agent, version)
    for kind in CONTENT:
        await _prompt_with(running, workspace_repo, version, advertised, kind)


async def _prompt_with(
    running: AgentProcess, workspace_repo: Path, version: int, advertised: Json, kind: str
) -> None:
    session = (
        await running.request("session/new", {"cwd": str(workspace_repo), "mcpServers": []})
    )["sessionId"]
    text = {"type": "text", "text": "hello"}
    prompt = {"sessionId": session, "prompt": [text, CONTENT[kind]]}
    request_id = running.post("session/prompt", prompt)
    if not capability(version, advertised, "prompt", kind):
        with pytest.raises(AnswerError) as refused:
            await running.result(request_id)
        assert refused.value.code == -32602
        return
    answer = await running.answer(request_id)
    if version == 2 and "result" in answer:
        message = answer["result"]["messageId"]
        answer = {"result": await V2Client(running).idle(session, message)}
    # The demo model is blind, which its own words say; the kind itself is not refused.
    blind = kind == "image" and "cannot see images" in json.dumps(answer)
    assert blind or answer["result"]["stopReason"] == "end_turn"


@pytest.mark.covers("S1", "I3")
async def test_an_mcp_server_is_accepted_if_its_transport_is_advertised(
    agent: StartAgent, workspace_repo: Path, version: int
) -> None:
    running, advertised = await opened(agent, version)
    for kind, each in SERVERS.items():
        server = dict(each)
        baseline = version == 1 and kind == "stdio"
        if baseline:
            del server["type"]
        params = {"cwd": str(workspace_repo), "mcpServers": [server]}
        answer = await running.answer(running.post("session/new", params))
        if baseline or capability(version, advertised, "mcp", kind):
            assert "result" in answer, answer
        elif version == 2:  # version 1 says nothing of what it does not know
            assert answer["error"]["code"] == -32602, answer


@pytest.mark.covers("I3")
async def test_a_system_prompt_is_accepted_in_the_advertised_modes(
    agent: StartAgent, workspace_repo: Path, version: int
) -> None:
    running, advertised = await opened(agent, version)
    group = "sessionCapabilities" if version == 1 else "session"
    capabilities = advertised[CAPABILITIES_OF[version]]
    for mode in ("append", "override", "_otherwise"):
        is_accepted = offered(capabilities, group, "systemPrompt") and (
            mode == "append" or offered(capabilities, group, "systemPrompt", "mode", mode)
        )
        prompt = {"mode": mode, "content": [{"type": "text", "text": "Rhyme."}]}
        params = {"cwd": str(workspace_repo), "mcpServers": [], "systemPrompt": prompt}
        answer = await running.answer(running.post("session/new", params, checked=True))
        if is_accepted:
            assert "result" in answer, answer
        elif offered(capabilities, group, "systemPrompt"):
            assert answer["error"]["code"] == -32602, answer


@pytest.mark.covers("I4")
async def test_the_login_state_is_sent_on_request_and_when_it_changes(
    agent: StartAgent, version: int
) -> None:
    editor = Editor() if version == 1 else EditorV2()
    running = await agent(editor=editor)
    await (running if version == 1 else V2Client(running)).initialize()
    login, logout = ("authenticate", "logout") if version == 1 else ("auth/login", "auth/logout")
    status = {"state": "unauthenticated", "accounts": []}
    assert await running.request("auth/status", {}, checked=True) == status
    await running.request(login, {"methodId": "demo"}, checked=True)
    await running.request(logout, {}, checked=True)
    assert await running.request("auth/status", {}, checked=True) == status
    updates = [
        message["params"]
        for message in running.messages
        if message.get("method") == "auth/status_update"
    ]
    assert [message["state"] for message in updates] == ["not_required", "unauthenticated"]


@pytest.mark.covers("I3")
async def test_methods_of_our_own_are_known_by_the_names_that_are_advertised(
    agent: StartAgent, version: int
) -> None:
    running, advertised = await opened(agent, version)
    methods = advertised[CAPABILITIES_OF[version]]["_meta"]["acp-agent"]["methods"]
    assert methods
    assert all(method.startswith("_acp-agent/") for method in methods)
    assert await served(running, {*methods}) == {*methods}


@pytest.mark.covers("T4")
async def test_unadvertised_methods_are_not_found(agent: StartAgent, version: int) -> None:
    running, _ = await opened(agent, version)
    for method in ("proxy/initialize", "proxy/successor", "session/no_such", "_vendor/method"):
        answer = await running.answer(running.post(method, {}))
        assert answer["error"]["code"] == NOT_FOUND, answer
