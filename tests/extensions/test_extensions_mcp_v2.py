"""MCP servers of a client that speaks version 2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.extensions.mcp_session import Json, call, echo, offered, program, results
from tests.extensions.mcp_web import web_server
from tests.server.server_session import OPENAI
from tests.support.agent_process import StartAgent
from tests.support.model_server import ModelServer, answer
from tests.support.v2_client import V2Client
from tests.support.v2_editor import EditorV2


@pytest.fixture
async def client(agent: StartAgent, model_server: ModelServer) -> V2Client:
    """A client of version 2 that allows every call once."""
    editor = EditorV2(permission="allow_once")
    running = V2Client(await agent(*OPENAI, editor=editor, environ=model_server.environ()))
    result = await running.initialize()
    assert result["capabilities"]["session"]["mcp"] == {"stdio": {}, "http": {}, "acp": {}}
    return running


def stdio(behaviour: str, **more: Any) -> Json:
    return {"type": "stdio"} | program(behaviour, **more)


@pytest.mark.covers("S1", "P6")
async def test_a_program_and_a_web_server_serve_one_session(
    client: V2Client, model_server: ModelServer, workspace_repo: Path
) -> None:
    async with web_server() as web:
        servers = [stdio("echo"), web.named()]
        session = await client.new_session(workspace_repo, mcpServers=servers)
        model_server.add(answer(echo("one"), call("add", server="web", a=1, b=2)), answer("Done."))
        ended = await client.prompt(session, "go")
    assert ended["stopReason"] == "end_turn"
    assert results(model_server) == ["echo: one", "3"]
    assert len(client.wire.editor.asked) == 2


@pytest.mark.covers("P11")
async def test_prompts_of_servers_come_as_commands(
    client: V2Client, model_server: ModelServer, workspace_repo: Path
) -> None:
    session = await client.new_session(workspace_repo, mcpServers=[stdio("prompts")])
    await client.wire.expect_update(
        session,
        "available_commands_update",
        lambda update: any(one["name"] == "memo:review" for one in update["availableCommands"]),
    )
    await client.resume(session, workspace_repo, mcpServers=[])
    model_server.add(answer("Hello."))
    await client.prompt(session, "hi")
    assert offered(model_server) == []


@pytest.mark.covers("S1", "T4")
@pytest.mark.parametrize(
    ("server", "field"),
    [
        ({"type": "_carrier_pigeon", "name": "x"}, "mcpServers[0].type"),
        ({"type": "sse", "name": "x", "url": "http://127.0.0.1:9"}, "mcpServers[0].type"),
        ({"type": "stdio", "name": "x", "command": "relative"}, "mcpServers[0].command"),
        ({"type": "http", "name": "x", "url": "file:///etc"}, "mcpServers[0].url"),
    ],
)
async def test_a_server_that_is_not_supported_is_refused_by_name(
    client: V2Client, workspace_repo: Path, server: Json, field: str
) -> None:
    params = {"cwd": str(workspace_repo), "mcpServers": [server]}
    posted = client.wire.post("session/new", params)
    error = (await client.wire.answer(posted))["error"]
    assert error["code"] == -32602
    assert error["data"]["field"] == field
