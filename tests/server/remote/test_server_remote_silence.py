"""Who stays silent is noticed and cut off, and who only listens is kept."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest
import websockets
from websockets.asyncio.client import connect

from tests.server.remote.conftest import StartListening
from tests.server.remote.http_messages import EVENTS, INITIALIZE, connected
from tests.server.remote.remote_agent import DEMO
from tests.server.remote.remote_clients import http, websocket_client
from tests.server.remote.websocket_bytes import plain_websocket


async def test_a_connection_that_never_initializes_is_ended(listening: StartListening) -> None:
    agent = listening(*DEMO, "--initialize-timeout", "1")
    async with websocket_client(agent) as client:
        await client.initialize()
        async with connect(agent.websocket_url, additional_headers=agent.authorization) as silent:
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await asyncio.wait_for(silent.recv(), 25)  # by default after 30
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1008
            assert "initialize" in closed.value.rcvd.reason
        assert await client.request("session/list", {})  # which has been there for longer


async def test_a_socket_that_sends_nothing_is_closed(listening: StartListening) -> None:
    agent = listening(*DEMO, "--header-timeout", "0.3")

    async def closed(beginning: bytes) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", agent.port)
        writer.write(beginning)
        async with asyncio.timeout(60):
            await reader.read()
        writer.close()

    beginnings = (b"", b"PRI * HT", b"GET /acp HTTP/1.1\r\nHost: 127")
    await asyncio.gather(*map(closed, beginnings))


@pytest.mark.parametrize(
    "data",
    [b"", b"GET /acp HTTP/1.1\r\nHost: 127", b"POST /acp HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"],
    ids=["nothing", "half a head", "no token"],
)
async def test_silent_sockets_block_no_client_with_the_token(
    listening: StartListening, data: bytes
) -> None:
    agent = listening(*DEMO)
    async with websocket_client(agent) as first:
        await first.initialize()
        silent = []
        for _ in range(300):
            silent.append(await asyncio.open_connection("127.0.0.1", agent.port))
            silent[-1][1].write(data)
        async with asyncio.timeout(60), websocket_client(agent) as second:
            await second.initialize()
            assert await second.request("session/list", {})
        assert await first.request("session/list", {})  # which is no stranger
        for _, writer in silent:
            writer.close()


async def test_a_silent_peer_is_pinged_and_one_that_does_not_answer_is_cut(
    listening: StartListening,
) -> None:
    agent = listening(*DEMO, "--ping-interval", "0.2")
    async with connect(
        agent.websocket_url, additional_headers=agent.authorization, ping_interval=None
    ) as alive:
        reader, writer = await plain_websocket(agent)
        began = asyncio.get_running_loop().time()
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(60):
                assert (await reader.read(2))[0] == 0x89
                assert await reader.read() == b""
        assert asyncio.get_running_loop().time() - began > 0.5
        writer.close()
        # It was silent for longer, but answered its pings.
        await alive.send(INITIALIZE.decode())
        assert "result" in json.loads(await alive.recv())


async def test_comments_keep_streams_alive(listening: StartListening) -> None:
    agent = listening(*DEMO, "--ping-interval", "0.1")
    async with http(agent, version=1) as client:
        headers = await connected(client, agent)
        async with client.stream("GET", agent.url, headers=EVENTS | headers) as stream:
            async with asyncio.timeout(60):
                lines = stream.aiter_lines()
                assert await anext(lines) == ":"
