"""What a client of version 2 may send beside what the agent knows, and what it is refused for.

Source: Agent Client Protocol v2, Extensibility.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server.v2_session import OpenV2, prompt_params, user_texts
from tests.support.agent_process import StartAgent
from tests.support.framing import Json
from tests.support.model_server import ModelServer, answer
from tests.support.v2_client import INFO, V2Client
from tests.support.v2_editor import EditorV2
from tests.support.wire_client import AnswerError

MORE: Json = {
    "_meta": {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "x": [1]},
    "fromTheFuture": {"deep": [None, True]},
}


@pytest.mark.covers("T4")
async def test_unknown_fields_are_allowed_everywhere(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer("Yes."))
    running = await agent(
        "--model", "openai/gpt-5", editor=EditorV2(), environ=model_server.environ()
    )
    client = V2Client(running)
    capabilities = {"fromTheFuture": {}, "auth": {"terminal": None, "more": 1}, "elicitation": None}
    offer = {"protocolVersion": 2, "info": INFO | MORE, "capabilities": capabilities} | MORE
    assert (await running.request("initialize", offer))["protocolVersion"] == 2
    opened = await running.request(
        "session/new",
        {"cwd": str(workspace_repo), "mcpServers": None, "additionalDirectories": None} | MORE,
    )
    session = opened["sessionId"]
    prompt = prompt_params(session, "hello") | MORE
    prompt["prompt"][0] |= MORE | {"annotations": {"audience": ["_nobody"], "later": 1}}
    message = (await running.request("session/prompt", prompt))["messageId"]
    assert (await client.idle(session, message))["stopReason"] == "end_turn"
    chosen = {"sessionId": session, "configId": "mode", "type": "id", "value": "plan"} | MORE
    assert (await running.request("session/set_config_option", chosen))["configOptions"]
    running.notify("session/cancel", {"sessionId": session} | MORE)
    resumed = {"sessionId": session, "cwd": str(workspace_repo)} | MORE
    resumed["replayFrom"] = {"type": "start", "later": 1}
    assert (await running.request("session/resume", resumed))["availableCommands"]
    for method in ("session/list", "session/close", "session/delete", "auth/logout"):
        assert isinstance(await running.request(method, {"sessionId": session} | MORE), dict)
    assert user_texts(client, session)[0] == message


WRONG: list[tuple[str, Json, str]] = [
    ("session/new", {}, "cwd"),
    ("session/new", {"cwd": 5}, "cwd"),
    ("session/new", {"cwd": "relative"}, "cwd"),
    ("session/new", {"cwd": "/nowhere/at/all"}, "cwd"),
    ("session/new", {"cwd": "/", "mcpServers": {"a": 1}}, "mcpServers"),
    ("session/new", {"cwd": "/", "mcpServers": [{"type": "_pipe", "name": "x"}]}, "mcpServers"),
    ("session/new", {"cwd": "/", "mcpServers": [{"name": "x"}]}, "mcpServers"),
    ("session/prompt", {}, "sessionId"),
    ("session/prompt", {"sessionId": "s"}, "prompt"),
    ("session/prompt", {"sessionId": "s", "prompt": "words"}, "prompt"),
    ("session/resume", {"sessionId": "s"}, "cwd"),
    ("session/delete", {}, "sessionId"),
    ("session/list", {"cwd": ["/"]}, "cwd"),
]


@pytest.mark.covers("T4")
async def test_wrong_parameters_are_refused_by_the_name_of_the_field(opened_v2: OpenV2) -> None:
    client, _ = await opened_v2()
    for method, params, words in WRONG:
        with pytest.raises(AnswerError) as caught:
            await client.wire.request(method, params)
        assert caught.value.code == -32602
        assert words in caught.value.message
        assert "\n" not in caught.value.message
    assert "sessions" in await client.wire.request("session/list", {})


@pytest.mark.covers("T4")
async def test_an_unknown_request_is_an_error_and_an_unknown_notification_is_ignored(
    opened_v2: OpenV2,
) -> None:
    client, session = await opened_v2()
    for method in ("_vendor/thing", "session/fly", "fs/read_text_file", "x"):
        with pytest.raises(AnswerError) as caught:
            await client.wire.request(method, {"sessionId": session})
        assert caught.value.code == -32601
        before = len(client.wire.messages)
        client.wire.notify(method, {"sessionId": session})
        await client.wire.request("session/list", {})
        assert len(client.wire.messages) == before + 1


@pytest.mark.covers("T2")
@pytest.mark.parametrize("name", ["text", 0, -7, 2**53])
async def test_a_request_is_answered_under_the_id_it_came_with(
    opened_v2: OpenV2, name: Any
) -> None:
    client, session = await opened_v2()
    request = {"jsonrpc": "2.0", "id": name, "method": "session/close"}
    await client.wire.send(request | {"params": {"sessionId": session}})
    assert await client.wire.result(name) == {}
