"""MCP over ACP: servers that the client runs itself, reached through the connection."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from jsonrpcserver import Error, Success

from tests.extensions.mcp_session import OpenWithServers, call, notices, offered, results
from tests.server.server_session import calls_by_id
from tests.support.agent_process import AgentProcess
from tests.support.editor import EVERYTHING, Editor, Json
from tests.support.model_server import ModelServer, answer
from tests.support.waiting import until

NEWEST = "2026-07-28"
CACHED = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
SERVER = {"type": "acp", "name": "Project tools", "serverId": "tools-1"}


def named(tool: str, **arguments: Any) -> Any:
    """A model's call of a tool of the client's server."""
    return call(tool, server="Project_tools", **arguments)


class Provider(Editor):
    """An editor with a server of its own, which speaks the newest version and no other."""

    def __init__(self) -> None:
        super().__init__(offers=EVERYTHING, permission="allow_once")
        self.running: AgentProcess | None = None
        self.messages: list[Json] = []
        self.tools = ["where", "ask", "wait"]
        self.listening: Json | None = None
        self.waiting = asyncio.Event()
        self._methods["mcp/message"] = self._message

    async def _message(self, **params: Any) -> Any:
        self.messages.append(params)
        if params["serverId"] != SERVER["serverId"]:
            return Error(-32602, "there is no such server")
        outcome = await self.answer_inner(params, params["method"], params.get("params") or {})
        return Success(outcome)

    async def answer_inner(self, message: Json, method: str, params: Json) -> Json:
        match method:
            case "server/discover":
                capabilities = {"tools": {"listChanged": True}}
                versions = {"supportedVersions": [NEWEST], "capabilities": capabilities}
                return {"result": versions | CACHED}
            case "tools/list":
                tools = [{"name": name, "inputSchema": {"type": "object"}} for name in self.tools]
                return {"result": {"tools": tools} | CACHED}
            case "tools/call":
                return await self.called(message, params)
            case "subscriptions/listen":
                self.listening = message
                meta = {"io.modelcontextprotocol/subscriptionId": message["requestId"]}
                acknowledged = {"notifications": {"toolsListChanged": True}, "_meta": meta}
                self.tell(message, "notifications/subscriptions/acknowledged", acknowledged)
                await asyncio.Event().wait()
                return {"result": {}}
            case _:
                return {"error": {"code": -32601, "message": f"no method {method}"}}

    async def called(self, message: Json, params: Json) -> Json:
        match params["name"]:
            case "where":
                token = params["_meta"]["progressToken"]
                progress = {"progressToken": token, "progress": 1, "total": 2}
                self.tell(message, "notifications/progress", progress)
                await asyncio.sleep(0.1)
                return {"result": {"content": [{"type": "text", "text": "here"}]} | DONE}
            case "ask" if "inputResponses" in params:
                text = str(params["inputResponses"]["q"])
                return {"result": {"content": [{"type": "text", "text": text}]} | DONE}
            case "ask":
                schema = {"type": "object", "properties": {"value": {"type": "string"}}}
                form = {"mode": "form", "message": "Which one?", "requestedSchema": schema}
                asked = {"q": {"method": "elicitation/create", "params": form}}
                return {"result": {"resultType": "input_required", "inputRequests": asked}}
            case "wait":
                self.waiting.set()
                await asyncio.Event().wait()
        return {"error": {"code": -32602, "message": "no such tool", "data": None}}

    def tell(self, message: Json, method: str, params: Json) -> None:
        assert self.running is not None
        outer = {"serverId": message["serverId"], "requestId": message["requestId"]}
        self.running.notify("mcp/message", outer | {"method": method, "params": params})


DONE = {"resultType": "complete"}


@pytest.fixture
async def provider(with_servers: OpenWithServers, workspace_repo: Path) -> tuple[Provider, str]:
    """An editor with a server, and a session that knows it."""
    editor = Provider()
    editor.running, _ = await with_servers(editor=editor)
    session = await editor.running.new_session(workspace_repo, mcpServers=[SERVER])
    return editor, session


@pytest.mark.covers("S1")
async def test_a_tool_of_the_clients_own_server_is_called_over_the_connection(
    provider: tuple[Provider, str], model_server: ModelServer
) -> None:
    editor, session = provider
    running = editor.running
    assert running is not None
    model_server.add(answer(named("where")), answer("Done."))
    await running.prompt(session, "where?")
    assert results(model_server) == ["here"]
    (asked,) = editor.asked
    assert asked["toolCall"]["title"] == "Project tools: where"
    (updates,) = calls_by_id(running.updates(session)).values()
    assert "Project tools: where (50%)" in [update.get("title") for update in updates]
    names = [message["requestId"] for message in editor.messages]
    assert len(set(names)) == len(names)
    assert not any(message["method"].startswith("notifications/") for message in editor.messages)


async def test_a_question_of_the_clients_server_is_asked_and_the_call_is_repeated(
    provider: tuple[Provider, str], model_server: ModelServer
) -> None:
    editor, session = provider
    editor.answer = lambda _: {"action": "accept", "content": {"value": "that one"}}
    assert editor.running is not None
    model_server.add(answer(named("ask")), answer("Done."))
    await editor.running.prompt(session, "ask")
    (asked,) = editor.questions
    assert asked["message"] == "The MCP server 'Project tools' asks: Which one?"
    assert "that one" in results(model_server)[0]


@pytest.mark.covers("T5", "P7")
async def test_cancelling_the_turn_cancels_the_request_to_the_clients_server(
    provider: tuple[Provider, str], model_server: ModelServer
) -> None:
    editor, session = provider
    running = editor.running
    assert running is not None
    model_server.add(answer(named("wait")))
    asked = running.post_prompt(session, "wait")
    async with asyncio.timeout(60):
        await editor.waiting.wait()
    running.cancel(session)
    assert (await running.result(asked))["stopReason"] == "cancelled"
    await running.expect(lambda message: message.get("method") == "$/cancel_request")


async def test_a_change_of_the_tools_reaches_the_session_that_listens(
    provider: tuple[Provider, str], model_server: ModelServer
) -> None:
    editor, session = provider
    running = editor.running
    assert running is not None
    model_server.add(answer("Hello."))
    await running.prompt(session, "hi")
    assert offered(model_server) == [f"mcp__Project_tools__{name}" for name in sorted(editor.tools)]
    await until(lambda: editor.listening is not None, within=20)
    assert editor.listening is not None
    editor.tools = ["new"]
    meta = {"io.modelcontextprotocol/subscriptionId": editor.listening["requestId"]}
    editor.tell(editor.listening, "notifications/tools/list_changed", {"_meta": meta})
    model_server.otherwise = answer("Wait.")
    async with asyncio.timeout(60):
        while offered(model_server) != ["mcp__Project_tools__new"]:
            await running.prompt(session, "and now?")


@pytest.mark.covers("T4")
async def test_a_notification_that_makes_no_sense_is_ignored(
    provider: tuple[Provider, str], model_server: ModelServer
) -> None:
    editor, session = provider
    running = editor.running
    assert running is not None
    for params in (
        {},
        {"serverId": 1, "requestId": 2, "method": 3},
        {"serverId": "tools-1", "requestId": "nobody's", "method": "notifications/progress"},
        {"serverId": "unheard-of", "requestId": "x", "method": "m", "params": {}},
        {"serverId": "tools-1", "requestId": "x", "method": "m", "params": [1]},
    ):
        running.notify("mcp/message", params)
    model_server.add(answer(named("where")), answer("Done."))
    await running.prompt(session, "where?")
    assert results(model_server) == ["here"]


@pytest.mark.covers("T4")
@pytest.mark.parametrize("server", ["tools-1", "unheard-of"])
async def test_a_request_of_the_clients_server_is_refused_and_not_answered_with_nothing(
    provider: tuple[Provider, str], server: str
) -> None:
    editor, _ = provider
    assert editor.running is not None
    params = {"serverId": server, "requestId": "1", "method": "roots/list"}
    answered = await editor.running.answer(editor.running.post("mcp/message", params))
    refused = answered["error"]
    assert refused["code"] == -32601
    assert "mcp/message is a notification" in refused["message"]


async def test_a_server_that_the_client_lacks_is_reported(
    provider: tuple[Provider, str], workspace_repo: Path
) -> None:
    editor, _ = provider
    assert editor.running is not None
    lost = SERVER | {"serverId": "lost", "name": "lost"}
    session = await editor.running.new_session(workspace_repo, mcpServers=[lost])
    await editor.running.expect_update(session, "notice")
    (notice,) = notices(editor.running, session)
    assert notice == ("The MCP server 'lost' could not be connected. there is no such server.")
