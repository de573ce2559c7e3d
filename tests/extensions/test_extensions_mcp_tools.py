"""The tools of a client's MCP servers in a turn: offered, asked about, called, shown."""

from __future__ import annotations

import pytest

from tests.extensions.mcp_session import (
    OpenWithServers,
    echo,
    notices,
    offered,
    program,
    results,
)
from tests.server.server_session import calls_of, shown_text
from tests.support.model_server import ModelServer, answer


@pytest.mark.covers("S1")
async def test_a_tool_of_a_server_is_offered_asked_about_called_and_shown(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    model_server.add(answer(echo("good morning")), answer("Done."))
    running, session = await with_servers(program("echo"))
    ended = await running.prompt(session, "greet")
    assert ended["stopReason"] == "end_turn"
    assert "mcp__memo__echo" in offered(model_server, 0)
    assert results(model_server) == ["echo: good morning"]
    (asked,) = running.editor.asked
    assert asked["toolCall"]["title"] == "memo: Say it again (echo)"
    names = [option["name"] for option in asked["options"]]
    assert names[1] == "Always allow `echo` of `memo` in this project, as it is described now"
    assert names[3] == "Never allow `echo` of `memo` in this project"
    (updates,) = calls_of(running.updates(session)).values()
    assert updates[-1]["status"] == "completed"
    assert "echo: good morning" in shown_text(updates[-1])
    assert notices(running, session) == []
