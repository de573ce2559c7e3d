"""More MCP servers that nobody here wrote, and a real browser: `make test-mcp-servers`."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from acp_agent.cli.mcp.editing import configure_known_server
from tests.extensions.mcp_session import (
    Json,
    OpenWithServers,
    call,
    results,
    until_offered,
)
from tests.support.model_server import ModelServer, answer
from tests.support.web_site import Server, response

pytestmark = pytest.mark.skipif(
    not os.environ.get("ACP_AGENT_MCP_SERVERS"), reason="make test-mcp-servers runs these"
)


def python_server(name: str, *arguments: str) -> Json:
    module = f"mcp_server_{name}"
    return {"name": name, "command": sys.executable, "args": ["-m", module, *arguments], "env": []}


async def test_the_time_server_tells_the_time_of_a_place(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    running, session = await with_servers(python_server("time"))
    await until_offered(running, model_server, session, "mcp__time__get_current_time")
    asked = call("get_current_time", server="time", timezone="Asia/Tokyo")
    model_server.add(answer(asked), answer("Done."))
    await running.prompt(session, "go")
    assert "+09:00" in results(model_server)[0]


async def test_the_fetch_server_reads_a_page_of_this_computer(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    async with Server() as site:
        site.pages["/"] = response(b"<h1>Harbour</h1><p>Ships come in.</p>", "text/html")
        running, session = await with_servers(
            python_server("fetch", "--ignore-robots-txt", "--allow-private-ips")
        )
        await until_offered(running, model_server, session, "mcp__fetch__fetch")
        model_server.add(
            answer(call("fetch", server="fetch", url=f"http://127.0.0.1:{site.port}/")),
            answer("Done."),
        )
        await running.prompt(session, "go")
    assert "Ships come in." in results(model_server)[0]


async def test_the_memory_server_stores_facts(
    with_servers: OpenWithServers, model_server: ModelServer, tmp_path: Path
) -> None:
    npx = shutil.which("npx")
    assert npx is not None
    file = tmp_path / "memory.json"
    running, session = await with_servers(
        {
            "name": "memory",
            "command": npx,
            "args": ["-y", "@modelcontextprotocol/server-memory@2026.8.31"],
            "env": [{"name": "MEMORY_FILE_PATH", "value": str(file)}],
        }
    )
    await until_offered(running, model_server, session, "mcp__memory__create_entities")
    entity = {"name": "port", "entityType": "fact", "observations": ["It is 8080."]}
    model_server.add(
        answer(call("create_entities", server="memory", entities=[entity])),
        answer(call("search_nodes", server="memory", query="8080")),
        answer("Done."),
    )
    await running.prompt(session, "go")
    assert "It is 8080." in results(model_server)[-1]
    assert "8080" in file.read_text()


async def test_the_known_browser_opens_a_page_and_clicks_in_it(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    script = "document.title = 'Clicked'"
    page = f'<title>Harbour</title><button onclick="{script}">Enter</button>'
    known = configure_known_server("browser")
    server: Json = {"name": "browser", "command": known.command, "args": known.args, "env": []}
    async with Server() as site:
        site.pages["/"] = response(page.encode(), "text/html")
        running, session = await with_servers(server)
        await until_offered(running, model_server, session, "mcp__browser__browser_navigate")
        model_server.add(
            answer(
                call("browser_navigate", server="browser", url=f"http://127.0.0.1:{site.port}/")
            ),
            answer(call("browser_click", server="browser", element="Enter", target="e2")),
            answer(call("browser_snapshot", server="browser")),
            answer("Done."),
        )
        await running.prompt(session, "go")
    opened, clicked, seen = results(model_server)
    assert "Harbour" in opened, opened
    assert "Clicked" in clicked + seen, clicked + seen
