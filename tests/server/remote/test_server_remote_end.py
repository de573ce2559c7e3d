"""How a listening agent ends, and what its clients hear of it."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import websockets
from websockets.asyncio.client import connect

from acp_agent.server.client_connection import ClientConnection
from acp_agent.server.remote.connections import Connections
from acp_agent.server.remote.settings import Limits
from protocol.transports.base import Transport
from tests.server.remote.conftest import StartListening
from tests.server.remote.counted_steps import Counted, until_still
from tests.server.remote.http_messages import BOTH, EVENTS, connected
from tests.server.remote.remote_agent import DEMO
from tests.server.remote.remote_clients import http, http_client, websocket_client
from tests.support.model_server import Answer, ModelServer, Stall, Text, answer

MODEL = ("--model", "openai/gpt-5")


@pytest.mark.covers("T8")
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_ends_turns_closes_connections_and_saves_the_conversation(
    listening: StartListening, model_server: ModelServer, project: Path, by: signal.Signals
) -> None:
    model_server.add(answer("The first words ", Stall(), "never come."))
    agent = listening(*MODEL, environ=model_server.environ("openai"))
    async with websocket_client(agent) as client:
        await client.initialize()
        session = await client.new_session(project)
        prompt = client.post_prompt(session, "Talk.")
        await client.expect_update(session, "agent_message_chunk")
        client.oracle.leaving()
        agent.process.send_signal(by)
        assert (await client.result(prompt))["stopReason"] == "cancelled"
        async with asyncio.timeout(60):
            await client.connection.wait_closed()
        assert client.connection.close_code == 1001
    agent.stop(by=by)
    restarted = listening(*MODEL, environ=model_server.environ("openai"))
    async with websocket_client(restarted) as client:
        await client.initialize()
        params = {"sessionId": session, "cwd": str(project), "mcpServers": []}
        await client.request("session/load", params, checked=True)
        assert "The first words" in client.text(session)


class Link:
    """A client's link that serves it until nothing more is read."""

    def __init__(self, transport: Transport) -> None:
        self.handshake = SimpleNamespace(agreed=True)
        self.happened: list[str] = []
        self._transport = transport

    async def run(self) -> None:
        assert await self._transport.read_message() is None
        await asyncio.sleep(0)  # what it was asked is answered
        self.happened.append("answered")

    def release_sessions(self) -> None:
        self.happened.append("left")


@pytest.mark.covers("T6", "T8")
@pytest.mark.parametrize("subject", ["client", "agent"])
async def test_sessions_pass_at_once_to_a_returning_client(
    subject: str,
) -> None:
    """Whoever has left a session is told no more of it, and so not how its calls ended."""
    links: list[Link] = []

    def make(transport: Transport, *, local: bool) -> ClientConnection:
        links.append(Link(transport))
        return cast("ClientConnection", links[-1])

    connections = Connections(make, Limits())
    connection, _ = connections.open_http(local=True)
    await asyncio.sleep(0)  # it is served
    if subject == "client":
        connections.end(connection)
    await connections.close()
    assert links[0].happened == (["left", "answered"] if subject == "client" else ["answered"])


@BOTH
async def test_event_streams_end_with_the_agent(listening: StartListening, version: int) -> None:
    agent = listening(*DEMO)
    async with http(agent, version=version) as client:
        headers = await connected(client, agent)
        async with client.stream("GET", agent.url, headers=EVENTS | headers) as stream:
            agent.process.terminate()
            async with asyncio.timeout(60):
                assert [line async for line in stream.aiter_lines() if line.strip(":")] == []
    agent.stop()


async def test_the_agent_ends_while_a_client_reads_nothing(
    listening: StartListening, model_server: ModelServer, project: Path
) -> None:
    agent = listening(*MODEL, environ=model_server.environ("openai"))
    steps = Counted(Text("word " * 400) for _ in range(6000))
    model_server.add(Answer(steps=steps))
    async with websocket_client(agent, max_queue=1) as client:
        await client.initialize()
        session = await client.new_session(project)
        client.may_receive.clear()
        client.post_prompt(session, "Talk.")
        await until_still(steps)  # the buffers of the system are full
        agent.stop()
        assert "could be ended" not in agent.stderr
        client.abort()


async def test_many_idle_clients_do_not_delay_the_exit(listening: StartListening) -> None:
    agent = listening(*DEMO)
    sockets = [
        await connect(agent.websocket_url, additional_headers=agent.authorization)
        for _ in range(30)
    ]
    for idle_socket in sockets[::2]:
        await idle_socket.send("not JSON")
    agent.process.terminate()
    for idle_socket in sockets:
        await asyncio.wait_for(idle_socket.wait_closed(), 60)
        assert idle_socket.close_code == 1001
    agent.stop()


@pytest.mark.covers("T8")
async def test_a_client_that_leaves_takes_nothing_of_the_others_with_it(
    listening: StartListening, project: Path
) -> None:
    agent = listening(*DEMO)
    async with websocket_client(agent) as stays:
        await stays.initialize()
        session = await stays.new_session(project)
        async with websocket_client(agent) as leaves, http_client(agent) as goes:
            await leaves.initialize()
            await goes.initialize()
        assert (await stays.prompt(session, "hi"))["stopReason"] == "end_turn"
        stays.abort()
    with pytest.raises(websockets.InvalidStatus):
        async with connect(agent.websocket_url):
            pass
