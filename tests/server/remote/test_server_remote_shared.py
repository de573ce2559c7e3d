"""What several remote clients of one process share: its login, its sessions, their bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.remote.conftest import StartListening
from tests.server.remote.remote_agent import DEMO
from tests.server.remote.remote_clients import websocket_client
from tests.support.framing import Json
from tests.support.wire_client import AnswerError, WireClient


def status_updates(client: WireClient) -> list[str]:
    """The states of `auth/status_update` that came so far."""
    messages = [m for m in client.messages if m.get("method") == "auth/status_update"]
    return [message["params"]["state"] for message in messages]


async def test_a_login_change_is_sent_to_every_client_that_does_not_know_it(
    listening: StartListening,
) -> None:
    agent = listening(*DEMO)
    async with websocket_client(agent) as first, websocket_client(agent) as second:
        for client in (first, second):
            await client.initialize()
        assert (await second.request("auth/status", {}))["state"] == "not_required"
        await first.request("logout", {})

        def out(message: Json) -> bool:
            return message.get("method") == "auth/status_update"

        for client in (first, second):
            await client.expect(out)
            assert status_updates(client) == ["unauthenticated"]
        await second.request("logout", {})
        await first.request("auth/status", {})
        await second.request("auth/status", {})
        assert status_updates(first) == status_updates(second) == ["unauthenticated"]


async def test_a_session_of_one_client_is_named_archived_and_looked_up_by_another(
    listening: StartListening, project: Path
) -> None:
    agent = listening(*DEMO)
    async with websocket_client(agent) as first, websocket_client(agent) as second:
        await first.initialize()
        await second.initialize()
        session = await first.new_session(project)
        assert await second.request("session/status", {"sessionId": session}) == {"status": "open"}
        await second.request("session/set_title", {"sessionId": session, "title": "Shared"})
        update = await first.expect_update(session, "session_info_update")
        assert update["title"] == "Shared"
        assert second.updates(session) == []
        await second.request("session/archive", {"sessionId": session})
        assert await first.request("session/status", {"sessionId": session}) == {"status": "saved"}
        with pytest.raises(AnswerError) as caught:
            await first.prompt(session, "hello")
        assert caught.value.code == -32002


async def test_forks_count_among_the_sessions_that_a_connection_may_have(
    listening: StartListening, project: Path
) -> None:
    agent = listening(*DEMO, "--max-sessions", "2")
    async with websocket_client(agent) as client:
        await client.initialize()
        session = await client.new_session(project)
        params = {"sessionId": session, "cwd": str(project)}
        await client.request("session/fork", params)
        with pytest.raises(AnswerError, match="close one"):
            await client.request("session/fork", params)
