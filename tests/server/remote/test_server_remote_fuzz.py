"""Bytes changed at random: nothing they are breaks the agent, and the next client is served.

`ACP_AGENT_FUZZ` and `ACP_AGENT_FUZZ_SEED` say how many to try, and from which seed on, as they do
for the fuzz of the wire.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
from collections.abc import Iterator

import h2.config
import h2.connection
import pytest
from websockets.frames import Frame, Opcode

from tests.server.remote.http_messages import INITIALIZE
from tests.server.remote.remote_agent import DEMO, RemoteAgent
from tests.server.remote.remote_clients import websocket_client

TRIES = max(60, int(os.environ.get("ACP_AGENT_FUZZ", "0")) // 20)
SEED = int(os.environ.get("ACP_AGENT_FUZZ_SEED", "0"))


def http1(agent: RemoteAgent) -> bytes:
    """Two requests on one socket."""
    head = (
        f"POST /acp HTTP/1.1\r\nHost: 127.0.0.1:{agent.port}\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {agent.token}\r\nContent-Length: {len(INITIALIZE)}\r\n\r\n"
    ).encode()
    return (head + INITIALIZE) * 2


def http2(agent: RemoteAgent) -> bytes:
    """A request, an event stream, and a goodbye."""
    http = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
    http.initiate_connection()
    fields = [
        (":method", "POST"),
        (":path", "/acp"),
        (":scheme", "http"),
        (":authority", "127.0.0.1"),
        ("authorization", f"Bearer {agent.token}"),
        ("content-type", "application/json"),
    ]
    http.send_headers(1, fields)
    http.send_data(1, INITIALIZE, end_stream=True)
    http.send_headers(3, [(":method", "GET"), *fields[1:], ("accept", "text/event-stream")])
    http.increment_flow_control_window(1000)
    http.ping(b"01234567")
    http.reset_stream(3)
    http.close_connection()
    return http.data_to_send()


def websocket(agent: RemoteAgent) -> bytes:
    """An upgrade, messages in frames, a ping and a goodbye."""
    head = (
        "GET /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"
        f"Authorization: Bearer {agent.token}\r\n\r\n"
    ).encode()
    frames = (
        Frame(Opcode.TEXT, INITIALIZE),
        Frame(Opcode.TEXT, b'{"jsonrpc":"2.0","id":2,', fin=False),
        Frame(Opcode.PING, b"ping"),
        Frame(Opcode.CONT, b'"method":"session/list","params":{}}'),
        Frame(Opcode.BINARY, b"\x00" * 70_000),
        Frame(Opcode.CLOSE, b"\x03\xe8bye"),
    )
    return head + b"".join(frame.serialize(mask=True) for frame in frames)


def changed(data: bytes, chance: random.Random) -> bytes:
    """The same with a few bytes flipped, cut out, doubled or put in, not before the first line."""
    mutated = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(4, len(mutated))
        match chance.randrange(5):
            case 0:
                mutated[at] ^= 1 << chance.randrange(8)
            case 1:
                del mutated[at : at + chance.randint(1, 20)]
            case 2:
                mutated[at:at] = mutated[max(0, at - 30) : at]
            case 3:
                mutated[at:at] = chance.randbytes(chance.randint(1, 20))
            case _:
                del mutated[at + 1 :]
        if len(mutated) < 5:
            break
    return bytes(mutated)


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteAgent]:
    """An agent that may have as many connections as are tried."""
    many = ("--max-connections", "1000000", "--idle-timeout", "1")
    with RemoteAgent(tmp_path_factory.mktemp("home"), *DEMO, *many) as agent:
        yield agent


@pytest.mark.parametrize("kind", [http1, http2, websocket])
async def test_no_bytes_break_the_agent(tried: RemoteAgent, kind: object) -> None:
    assert callable(kind)
    transport = kind(tried)
    for number in range(TRIES):
        chance = random.Random(SEED + number)
        data = changed(transport, chance)
        with (
            socket.create_connection(("127.0.0.1", tried.port), timeout=60) as sock,
            contextlib.suppress(ConnectionError),
        ):
            while data:
                size = chance.choice((1, 100, 100_000))
                sock.sendall(data[:size])
                data = data[size:]
            with contextlib.suppress(OSError):  # the agent may have closed it already
                sock.shutdown(socket.SHUT_WR)
            while sock.recv(65_536):
                pass
        assert tried.process.poll() is None, (SEED + number, tried.stderr)
    assert "error" not in tried.stderr, tried.stderr
    async with websocket_client(tried) as client:
        await client.initialize()
