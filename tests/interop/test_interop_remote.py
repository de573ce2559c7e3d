"""The official TypeScript SDK's clients for WebSocket and streamable HTTP drive whole turns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.seen_updates import of, text
from tests.server.remote.remote_agent import RemoteAgent
from tests.support.agent_process import environment
from tests.support.model_server import ModelServer, Stall, answer
from tests.support.node import node, run_node

DEMO = ("--model", "demo/demo")
BOTH = pytest.mark.parametrize("transport", ["websocket", "http"])


@pytest.fixture
def started(home: Path) -> Iterator[list[RemoteAgent]]:
    """Agents to end after the test."""
    agents: list[RemoteAgent] = []
    yield agents
    for agent in agents:
        with agent:
            pass


async def drive(
    agent: RemoteAgent, home: Path, cwd: Path, transport: str, *steps: dict[str, Any], **more: Any
) -> dict[str, Any]:
    """What the client saw."""
    task = {
        "transport": transport,
        "url": agent.url,
        "token": agent.token,
        "cwd": str(cwd),
        "press": "allow_once",
        "steps": steps,
    } | more
    status, out, err = await run_node(
        "remote_client.mjs",
        json.dumps(task),
        environ=environment(home),
        node_path=node((22, 0)),  # the first that has a WebSocket of its own
    )
    assert status == 0, err
    seen = json.loads(out)
    assert isinstance(seen, dict)
    return seen


@BOTH
async def test_an_edit_is_confirmed_applied_and_replayed_for_a_later_client(
    home: Path, workspace_repo: Path, started: list[RemoteAgent], transport: str
) -> None:
    agent = RemoteAgent(home, *DEMO)
    started.append(agent)
    seen = await drive(
        agent,
        home,
        workspace_repo,
        transport,
        {"prompt": "replace Hello with Goodbye in greeting.py"},
        {"load": True, "until": "Done"},
    )
    assert seen["initialized"]["protocolVersion"] == 1
    assert seen["stops"] == ["end_turn"]
    assert len(seen["asked"]) == 1
    assert "Goodbye" in (workspace_repo / "greeting.py").read_text()
    live, replayed = seen["connections"]
    assert of(live, "tool_call_update")[-1]["status"] == "completed"
    assert text(replayed) == text(live)
    assert of(replayed, "tool_call") == of(live, "tool_call")
    if transport == "http":
        cookies = {one["cookie"] for one in seen["requests"][1:]}
        assert len(cookies) == 1
        assert all(cookie.startswith("acp-affinity=") for cookie in cookies)
        assert {one["status"] for one in seen["requests"]} == {200, 202}


@BOTH
async def test_a_client_that_left_in_a_turn_loads_the_session_and_sees_the_rest(
    home: Path,
    workspace_repo: Path,
    model_server: ModelServer,
    started: list[RemoteAgent],
    transport: str,
) -> None:
    stall = Stall()
    model_server.add(answer("The beginning, ", stall, "the rest."))
    flags = ("--model", "openai/gpt-5")
    agent = RemoteAgent(home, *flags, environ=model_server.environ("openai"))
    started.append(agent)
    first = await drive(
        agent,
        home,
        workspace_repo,
        transport,
        {"prompt": "Talk.", "cutWhen": "beginning"},
    )
    stall.release()
    second = await drive(
        agent,
        home,
        workspace_repo,
        transport,
        {"load": True, "until": "rest"},
        sessionId=first["sessionId"],
    )
    assert first["stops"] == []
    assert text(second["connections"][0]) == "The beginning, the rest."
