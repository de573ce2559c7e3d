"""MCP servers behind streamable HTTP and behind server-sent events."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from tests.extensions.mcp_session import OpenWithServers, call, results
from tests.extensions.mcp_web import KEY, web_server
from tests.server.server_session import calls_by_id
from tests.support.model_server import ModelServer, answer


@pytest.mark.covers("S1", "I3")
@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_server_behind_http_is_called_with_its_configured_headers(
    with_servers: OpenWithServers, model_server: ModelServer, kind: Literal["http", "sse"]
) -> None:
    key = "opensesame-4711-opensesame"
    async with web_server(kind, key=key) as web:
        model_server.add(answer(call("add", server="web", a=2, b=3)), answer("Five."))
        running, session = await with_servers(web.named(**{KEY: key}))
        await running.prompt(session, "add")
        assert results(model_server) == ["5"]
        assert all(request[KEY] == key for request in web.requests)
        await running.request("session/close", {"sessionId": session})
        if kind == "http":
            assert web.requests[-1][":method"] == "DELETE"


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_server_on_this_computer_is_reached_without_the_proxy(
    with_servers: OpenWithServers, model_server: ModelServer, kind: Literal["http", "sse"]
) -> None:
    environ = {"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "", "no_proxy": ""}
    async with web_server(kind) as web:
        model_server.add(answer(call("add", server="web", a=2, b=3)), answer("Five."))
        running, session = await with_servers(web.named(), environ=environ)
        await running.prompt(session, "add")
        assert results(model_server) == ["5"]


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_refused_login_is_reported_without_the_key(
    with_servers: OpenWithServers, kind: Literal["http", "sse"], home: Path
) -> None:
    key = "wrong-key-4711-wrong-key"
    async with web_server(kind, key="right-key") as web:
        running, session = await with_servers(web.named(**{KEY: key}))
        notice = await running.expect_update(session, "notice")
        assert notice["title"] == "The MCP server 'web' could not be connected."
        assert "HTTP 401" in notice["description"]
        await running.stop()
    assert key not in str(running.lines)
    logs = [file.read_text() for file in (home / "acp-agent").rglob("*.log*")]
    assert not any(key in log for log in logs)


async def test_progress_comes_over_http_too(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    async with web_server() as web:
        model_server.add(answer(call("steps", server="web")), answer("Done."))
        running, session = await with_servers(web.named())
        await running.prompt(session, "go")
        (updates,) = calls_by_id(running.updates(session)).values()
        titles = [update["title"] for update in updates if "title" in update]
        assert "web: steps (25%, a quarter)" in titles


@pytest.mark.parametrize("kind", ["http", "json"])
async def test_a_too_large_result_fails_only_its_call(
    with_servers: OpenWithServers, model_server: ModelServer, kind: Literal["http", "json"]
) -> None:
    async with web_server(kind) as web:
        add = call("add", server="web", a=1, b=1)
        model_server.add(answer(call("huge", server="web")), answer(add), answer("Done."))
        running, session = await with_servers(web.named())
        assert (await running.prompt(session, "go", timeout=60))["stopReason"] == "end_turn"
        huge, two = results(model_server)
        assert huge.startswith("Error: ")
        assert len(huge) < 500
        assert two == "2"


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_server_that_comes_back_is_connected_again(
    with_servers: OpenWithServers, model_server: ModelServer, kind: Literal["http", "sse"]
) -> None:
    add = call("add", server="web", a=1, b=1)
    async with web_server(kind) as web:
        running, session = await with_servers(web.named())
        model_server.add(answer(add), answer("Done."))
        await running.prompt(session, "hi")
    async with web_server(kind, port=web.port):
        if kind == "sse":  # with "http", a call finds out, and is made in a new session
            await running.expect_update(session, "notice")
        model_server.add(answer(add), answer("Done."))
        await running.prompt(session, "go on")
        assert results(model_server)[-1] == "2"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"url": "ftp://127.0.0.1/mcp"}, "mcpServers[0].url"),
        ({"url": "not an address"}, "mcpServers[0].url"),
        ({"headers": [{"name": "X Y", "value": "1"}]}, "mcpServers[0].headers"),
        ({"headers": [{"name": "X", "value": "secret\r\nY: 1"}]}, "mcpServers[0].headers"),
    ],
)
@pytest.mark.covers("S1", "T4")
async def test_an_address_or_a_header_that_cannot_be_used_is_refused_by_name(
    with_servers: OpenWithServers, workspace_repo: Path, change: dict[str, object], field: str
) -> None:
    running, _ = await with_servers()
    server = {"type": "http", "name": "web", "url": "http://127.0.0.1:9/mcp", "headers": []}
    params = {"cwd": str(workspace_repo), "mcpServers": [server | change]}
    error = (await running.answer(running.post("session/new", params)))["error"]
    assert error["code"] == -32602
    assert error["data"]["field"] == field
    assert "secret" not in error["message"]
