"""MCP servers that nobody here wrote: two of npm's, one of PyPI's."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.extensions.mcp_session import (
    Json,
    OpenWithServers,
    call,
    notices,
    offered,
    results,
    until_offered,
)
from tests.server.server_session import calls_by_id
from tests.support.editor import EVERYTHING, Editor
from tests.support.model_server import ModelServer, answer
from tests.support.npm_packages import node_modules

pytestmark = pytest.mark.slow


def npm_server(name: str, *arguments: str) -> Json:
    """A server of @modelcontextprotocol, started as its package's `bin` says."""
    script = node_modules() / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
    node = shutil.which("node")
    assert node is not None
    return {"name": name, "command": node, "args": [str(script), *arguments], "env": []}


@pytest.mark.covers("S1")
async def test_the_filesystem_server_reads_and_writes_where_it_may(
    with_servers: OpenWithServers, model_server: ModelServer, workspace_repo: Path
) -> None:
    written, outside = workspace_repo / "made.txt", workspace_repo.parent / "outside.txt"
    running, session = await with_servers(npm_server("filesystem", str(workspace_repo)))
    await until_offered(running, model_server, session, "mcp__filesystem__write_file")
    model_server.add(
        answer(
            call("read_text_file", server="filesystem", path=str(workspace_repo / "README.md")),
            call("write_file", server="filesystem", path=str(written), content="made"),
            call("write_file", server="filesystem", path=str(outside), content="no"),
        ),
        answer("Done."),
    )
    await running.prompt(session, "go")
    readme, made, refused = results(model_server)
    assert "A repository for tests." in readme
    assert "Successfully wrote" in made
    assert "denied" in refused
    assert written.read_text() == "made"
    assert not outside.exists()
    ends = [updates[-1]["status"] for updates in calls_by_id(running.updates(session)).values()]
    assert ends == ["completed", "completed", "failed"]


@pytest.mark.covers("S1")
async def test_the_everything_server_offers_all_its_features(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    running, session = await with_servers(npm_server("everything"))
    await until_offered(running, model_server, session, "mcp__everything__echo")
    names = offered(model_server)
    assert {"list_mcp_resources", "read_mcp_resource", "mcp__everything__echo"} <= set(names)
    model_server.add(
        answer(
            call("echo", server="everything", message="one"),
            call("get-tiny-image", server="everything"),
            call("get-structured-content", server="everything", location="New York"),
            call("trigger-long-running-operation", server="everything", duration=1, steps=2),
        ),
        answer("Done."),
    )
    await running.prompt(session, "go")
    echoed, image, weather, steps = results(model_server)
    assert echoed == "Echo: one"
    assert "image" in image.lower()
    assert "temperature" in weather
    assert "completed" in steps
    commands = running.updates(session, "available_commands_update")[-1]["availableCommands"]
    assert any(command["name"].startswith("everything:") for command in commands)
    assert notices(running, session) == []


@pytest.mark.covers("P12")
async def test_the_everything_server_asks_the_user_also_from_a_task(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    editor = Editor(offers=EVERYTHING, permission="allow_once")
    contents = [{"name": "Ada"}, {"interpretation": "historical"}]
    editor.answer = lambda _: {"action": "accept", "content": contents.pop(0)}
    running, session = await with_servers(npm_server("everything"), editor=editor)
    await until_offered(running, model_server, session, "mcp__everything__echo")
    query = {"topic": "ports", "ambiguous": True}
    model_server.add(
        answer(call("trigger-elicitation-request", server="everything")),
        answer(call("simulate-research-query", server="everything", **query)),
        answer("Done."),
    )
    await running.prompt(session, "go")
    form, report = results(model_server)
    assert "Name: Ada" in form
    assert "Research Report: ports" in report
    assert "istorical" in report
    assert notices(running, session) == []


@pytest.mark.covers("S1")
async def test_the_git_server_tells_of_the_repository(
    with_servers: OpenWithServers, model_server: ModelServer, workspace_repo: Path
) -> None:
    server = {
        "name": "git",
        "command": sys.executable,
        "args": ["-m", "mcp_server_git", "--repository", str(workspace_repo)],
        "env": [],
    }
    (workspace_repo / "new.txt").write_text("new")
    status = call("git_status", server="git", repo_path=str(workspace_repo))
    running, session = await with_servers(server)
    await until_offered(running, model_server, session, "mcp__git__git_status")
    model_server.add(answer(status), answer("Done."))
    await running.prompt(session, "status?")
    assert "new.txt" in results(model_server)[0]
    (asked,) = running.editor.asked
    assert asked["toolCall"]["kind"] == "read"
