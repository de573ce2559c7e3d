"""Whole turns over a socket: WebSocket, HTTP/2 and HTTP/1.1, each held to the oracle."""

from __future__ import annotations

from pathlib import Path

from tests.server.remote.remote_agent import RemoteAgent
from tests.server.remote.remote_clients import (
    EVERY_WAY,
    Open,
)
from tests.support.editor import Editor


@EVERY_WAY
async def test_a_turn_with_a_permission_completes(
    remote: RemoteAgent, project: Path, open_client: Open
) -> None:
    async with open_client(remote, editor=Editor()) as client:
        await client.initialize()
        session = await client.new_session(project)
        result = await client.prompt(session, "replace Hello with Goodbye in greeting.py")
        assert result["stopReason"] == "end_turn"
        assert "Goodbye" in (project / "greeting.py").read_text()
        assert client.updates(session, "tool_call_update")[-1]["status"] == "completed"
        await client.request("session/close", {"sessionId": session})
