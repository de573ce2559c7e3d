"""No remote client takes more than its share."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
import websockets

from tests.server.remote.conftest import StartListening
from tests.server.remote.counted_steps import Counted, until_still
from tests.server.remote.http2_frames import Frames
from tests.server.remote.http_messages import (
    BOTH,
    EVENTS,
    INITIALIZE,
    JSON,
    connected,
    reason,
    request,
)
from tests.server.remote.remote_agent import DEMO
from tests.server.remote.remote_clients import http, http_client, websocket_client
from tests.support.model_server import Answer, ModelServer, Text
from tests.support.module_trace import until_idle
from tests.support.process_memory import peak_memory

MODEL = ("--model", "openai/gpt-5")
SMALL = ("--max-message-size", "100000")


@BOTH
async def test_a_body_over_the_limit_is_413(listening: StartListening, version: int) -> None:
    agent = listening(*DEMO, *SMALL)
    long = INITIALIZE[:-1] + b" " * 200_000 + b"}"

    async def pieces() -> Any:
        for at in range(0, len(long), 10_000):
            yield long[at : at + 10_000]

    async with http(agent, version=version) as client:
        for body in (long, pieces()):
            response = await client.post(agent.url, content=body, headers=JSON)
            assert response.status_code == 413
            assert "100000" in reason(response)
        assert (await client.post(agent.url, content=INITIALIZE, headers=JSON)).is_success


def send(frames: Frames, stream: int, size: int) -> None:
    """Send a part of a request's body."""
    for _ in range(size // 10_000):
        frames.http.send_data(stream, b" " * 10_000)
    frames.flush()


async def test_over_http2_bodies_that_come_together_have_a_limit_together(
    listening: StartListening,
) -> None:
    agent = listening(*DEMO, *SMALL)
    frames = Frames(agent)
    with frames.sock:
        next(frames.events())  # the windows
        for stream in (1, 3, 5):
            frames.http.send_headers(stream, frames.headers())
            send(frames, stream, 80_000)
        assert frames.outcome(5) == 503
        frames.http.send_data(1, INITIALIZE, end_stream=True)  # behind the spaces
        frames.flush()
        assert frames.outcome(1) == 200
        frames.http.send_headers(7, frames.headers())
        send(frames, 7, 80_000)  # where the first had its place
        frames.http.send_data(7, INITIALIZE, end_stream=True)
        frames.flush()
        assert frames.outcome(7) == 200


async def test_over_http2_what_a_refused_client_continues_to_send_has_an_end(
    listening: StartListening,
) -> None:
    agent = listening(*DEMO, *SMALL)
    frames = Frames(agent)
    with frames.sock:
        next(frames.events())
        frames.http.send_headers(
            1, [pair for pair in frames.headers() if pair[0] != "authorization"]
        )
        frames.flush()
        assert frames.outcome(1) == 401
        send(frames, 1, 120_000)
        assert frames.outcome(1) == "reset"


async def test_a_websocket_message_over_the_limit_costs_one_error_and_nothing_else(
    listening: StartListening, project: Path
) -> None:
    agent = listening(*DEMO, *SMALL)
    async with websocket_client(agent) as client:
        await client.initialize()
        session = await client.new_session(project)
        await until_idle(agent.process.pid)  # the first prompt is prepared
        before = peak_memory(agent.process.pid)
        await client.send(request("session/list", {"x": "y" * 40_000_000}, 90))
        refused = await client.expect(lambda m: "error" in m)
        assert refused["error"]["code"] == -32600
        assert "100000" in refused["error"]["message"]
        assert peak_memory(agent.process.pid) - before < 20 * 1024 * 1024
        assert (await client.prompt(session, "hi"))["stopReason"] == "end_turn"


async def test_there_are_no_more_connections_than_allowed(listening: StartListening) -> None:
    agent = listening(*DEMO, "--max-connections", "2")
    async with websocket_client(agent) as first, http(agent) as client:
        await first.initialize()
        headers = await connected(client, agent)
        response = await client.post(agent.url, content=INITIALIZE, headers=JSON)
        assert response.status_code == 503
        assert int(response.headers["retry-after"]) > 0
        assert "--max-connections" in response.text
        with pytest.raises(websockets.InvalidStatus) as refused:
            async with websocket_client(agent):
                pass
        assert refused.value.response.status_code == 503
        assert b"--max-connections" in (refused.value.response.body or b"")
        await client.delete(agent.url, headers=headers)
        headers = await connected(client, agent)


async def test_leftovers_of_broken_clients_make_room_for_new_ones(
    listening: StartListening,
) -> None:
    agent = listening(*DEMO, "--max-connections", "2")
    async with http_client(agent, version=1) as used, http(agent) as client:
        await used.initialize()
        left = await connected(client, agent)
        async with asyncio.timeout(60):
            while (await client.post(agent.url, content=INITIALIZE, headers=JSON)).is_error:
                await asyncio.sleep(0.2)
        rejected = await client.post(
            agent.url, content=request("session/list", {}), headers=JSON | left
        )
        assert rejected.status_code == 404
        assert await used.request("session/list", {})


async def test_a_connection_has_no_more_sessions_than_allowed(
    listening: StartListening, project: Path
) -> None:
    agent = listening(*DEMO, "--max-sessions", "2")
    for open_client in (websocket_client, http_client):
        async with open_client(agent) as client:
            await client.initialize()
            params = {"cwd": str(project), "mcpServers": []}
            request_ids = [client.post("session/new", params) for _ in range(4)]
            answers = [await client.answer(request) for request in request_ids]
            session_ids = [
                request["result"]["sessionId"] for request in answers if "result" in request
            ]
            assert len(session_ids) == 2
            errors = [request["error"] for request in answers if "error" in request]
            assert all("close one" in error["message"] for error in errors)
            load = {"sessionId": session_ids[0], "cwd": str(project), "mcpServers": []}
            await client.request("session/load", load)
            await client.request("session/close", {"sessionId": session_ids[0]})
            assert await client.new_session(project)


async def test_a_connection_has_no_more_streams_than_sessions(
    listening: StartListening, project: Path
) -> None:
    agent = listening(*DEMO, "--max-sessions", "1")
    names = []
    for _ in range(2):
        async with websocket_client(agent) as client:
            await client.initialize()
            names.append(await client.new_session(project))
    async with http(agent) as client:
        headers = await connected(client, agent)
        first = EVENTS | headers | {"Acp-Session-Id": names[0]}
        second = EVENTS | headers | {"Acp-Session-Id": names[1]}
        async with client.stream("GET", agent.url, headers=first) as stream:
            assert stream.status_code == 200
            assert (await client.get(agent.url, headers=second)).status_code == 429


@pytest.mark.covers("T9")
@pytest.mark.parametrize("open_client", [websocket_client, http_client])
async def test_a_client_that_reads_late_holds_its_turn_back_and_loses_nothing(
    listening: StartListening, model_server: ModelServer, project: Path, open_client: Any
) -> None:
    agent = listening(*MODEL, environ=model_server.environ("openai"))
    words = [f"{number:06d} " * 3000 for number in range(1600)]  # more than the system may hold
    steps = Counted(map(Text, words))
    model_server.add(Answer(steps=steps))
    async with open_client(agent) as client:
        await client.initialize()
        session = await client.new_session(project)
        client.may_receive.clear()
        prompt = client.post_prompt(session, "Talk.")
        await until_still(steps)
        assert not model_server.requests[0].answered.is_set()
        client.may_receive.set()
        assert (await client.result(prompt, timeout=60))["stopReason"] == "end_turn"
        assert client.text(session) == "".join(words)


async def test_a_hundred_clients_are_served_at_the_same_time_by_default(
    listening: StartListening,
) -> None:
    agent = listening(*DEMO)
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(100):
            client = await stack.enter_async_context(websocket_client(agent))
            await client.initialize()
