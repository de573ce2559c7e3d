"""Bytes that no client's library would send: each is refused, and the next client is served."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import h2.events
import pytest

from tests.server.remote.http2_frames import Frames
from tests.server.remote.http_messages import INITIALIZE
from tests.server.remote.remote_agent import RemoteAgent
from tests.server.remote.remote_clients import websocket_client

HOST = b"Host: 127.0.0.1\r\n"
JSON = b"Content-Type: application/json\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(INITIALIZE)


def bearer(agent: RemoteAgent) -> bytes:
    return f"Authorization: Bearer {agent.token}\r\n".encode()


def exchange(agent: RemoteAgent, data: bytes, *, half_close: bool = False) -> bytes:
    """All that comes back for these bytes until the agent closes the socket."""
    with socket.create_connection(("127.0.0.1", agent.port), timeout=60) as sock:
        with contextlib.suppress(ConnectionError):
            sock.sendall(data)
        if half_close:
            sock.shutdown(socket.SHUT_WR)
        return received(sock)


def received(sock: socket.socket) -> bytes:
    pieces = []
    with contextlib.suppress(ConnectionError):
        while piece := sock.recv(65_536):
            pieces.append(piece)
    return b"".join(pieces)


def statuses(answer: bytes) -> list[int]:
    return [int(part.split(b" ", 1)[0]) for part in answer.split(b"HTTP/1.1 ")[1:]]


@pytest.fixture(autouse=True)
async def _the_next_client_is_served(remote: RemoteAgent) -> AsyncIterator[None]:
    yield
    async with websocket_client(remote) as client:
        await client.initialize()


@pytest.mark.parametrize(
    "fields",
    [
        LENGTH + b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\n" + LENGTH,
        LENGTH + b"Content-Length: 0\r\n",
        b"Content-Length: 1, 2\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length: -1\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        LENGTH + b"X: a\rb: c\r\n",
        LENGTH + b"X: a\x00b\r\n",
        LENGTH + b"Bad Name: x\r\n",
        LENGTH + b"Name : x\r\n",
        LENGTH + b" Folded: x\r\n" + b"\x01: x\r\n",
    ],
)
def test_a_request_that_could_hide_another_is_refused_and_nothing_after_it_is_read(
    remote: RemoteAgent, fields: bytes
) -> None:
    head = b"POST /acp HTTP/1.1\r\n" + HOST + JSON + bearer(remote) + fields + b"\r\n"
    hidden = b"DELETE /acp HTTP/1.1\r\n" + HOST + bearer(remote) + b"\r\n"
    answers = statuses(exchange(remote, head + INITIALIZE + hidden))
    assert len(answers) == 1
    assert answers[0] in {400, 501}


@pytest.mark.parametrize("length", [b"5", b"0", b"1000"])
def test_a_body_with_two_lengths_is_refused_even_where_one_of_them_is_right(
    remote: RemoteAgent, length: bytes
) -> None:
    fields = b"Content-Length: " + length + b"\r\nTransfer-Encoding: chunked\r\n"
    head = b"POST /acp HTTP/1.1\r\n" + HOST + JSON + bearer(remote) + fields + b"\r\n"
    body = b"%x\r\n" % len(INITIALIZE) + INITIALIZE + b"\r\n0\r\n\r\n"
    assert statuses(exchange(remote, head + body)) == [400]


@pytest.mark.parametrize(
    "line",
    [
        b"POST http://attacker.example/acp HTTP/1.1\r\n",
        b"CONNECT 127.0.0.1:22 HTTP/1.1\r\n",
        b"OPTIONS * HTTP/1.1\r\n",
        b"GET /acp HTTP/3.0\r\n",
        b"G\xffT /acp HTTP/1.1\r\n",
        b"GET /acp\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
        b"GET " + b"/" * 40_000,
    ],
)
def test_a_line_that_is_no_request_for_the_endpoint_is_refused(
    remote: RemoteAgent, line: bytes
) -> None:
    answer = exchange(remote, line + HOST + bearer(remote) + b"\r\n", half_close=True)
    assert all(400 <= status < 600 for status in statuses(answer))


def test_too_many_headers_are_refused(remote: RemoteAgent) -> None:
    many = b"".join(b"X-%d: %s\r\n" % (n, b"x" * 100) for n in range(1000))
    answer = exchange(remote, b"GET /acp HTTP/1.1\r\n" + HOST + many + b"\r\n")
    assert statuses(answer) in ([431], [400])


def test_two_requests_on_one_socket_are_answered_in_order(remote: RemoteAgent) -> None:
    first_request = (
        b"POST /acp HTTP/1.1\r\n" + HOST + JSON + bearer(remote) + LENGTH + b"\r\n" + INITIALIZE
    )
    last = b"DELETE /acp HTTP/1.1\r\nConnection: close\r\n" + HOST + bearer(remote) + b"\r\n"
    assert statuses(exchange(remote, first_request + first_request + last)) == [200, 200, 400]


def test_a_client_that_expects_100_continue_gets_it(remote: RemoteAgent) -> None:
    head = b"POST /acp HTTP/1.1\r\nExpect: 100-continue\r\nConnection: close\r\n" + HOST + JSON
    with socket.create_connection(("127.0.0.1", remote.port), timeout=60) as sock:
        sock.sendall(head + bearer(remote) + LENGTH + b"\r\n")
        assert statuses(sock.recv(1000)) == [100]
        sock.sendall(INITIALIZE)
        assert statuses(received(sock)) == [200]
    refused = exchange(remote, head + LENGTH + b"\r\n")
    assert statuses(refused) == [401]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (b"Sec-WebSocket-Version: 13\r\n", 400),
        (b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short\r\n", 400),
        (b"Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n", 426),
        (b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n", 426),
    ],
)
def test_an_invalid_upgrade_is_refused(remote: RemoteAgent, fields: bytes, status: int) -> None:
    upgrade = b"Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
    head = b"GET /acp HTTP/1.1\r\n" + HOST + bearer(remote) + upgrade + fields + b"\r\n"
    assert statuses(exchange(remote, head)) == [status]


@pytest.fixture
def frames(remote: RemoteAgent) -> Iterator[Frames]:
    connection = Frames(remote)
    with connection.sock:
        yield connection


@pytest.mark.parametrize(
    "field",
    [
        ("connection", "close"),
        ("transfer-encoding", "chunked"),
        ("Acp-Connection-Id", "upper"),
        ("host", "attacker.example"),
        (":path", "/other"),
        ("content-length", "1"),
        ("x", "a\r\nacp-connection-id: b"),
    ],
)
def test_over_http2_smuggled_requests_are_refused(frames: Frames, field: tuple[str, str]) -> None:
    frames.http.send_headers(1, frames.headers(field))
    with contextlib.suppress(Exception):
        frames.http.send_data(1, INITIALIZE, end_stream=True)
    frames.flush()
    assert frames.outcome(1) in {"reset", "terminated", "closed", 400}


def test_over_http2_an_early_refusal_leaves_the_socket_usable(frames: Frames) -> None:
    """A refusal goes out before the body came; what comes of it later is not an error."""
    wrong = [pair for pair in frames.headers() if pair[0] != "authorization"]
    frames.http.send_headers(1, wrong)
    frames.flush()
    assert frames.outcome(1) == 401
    with contextlib.suppress(Exception):
        frames.http.send_data(1, INITIALIZE, end_stream=True)
    frames.http.send_headers(3, frames.headers())
    frames.http.send_data(3, INITIALIZE, end_stream=True)
    frames.flush()
    assert frames.outcome(3) == 200


def test_over_http2_a_flood_of_reset_requests_ends_the_socket(frames: Frames) -> None:
    for number in range(1, 1200, 2):
        frames.http.send_headers(number, frames.headers())
        frames.http.reset_stream(number)
    frames.flush()
    assert any(isinstance(event, h2.events.ConnectionTerminated) for event in frames.events())


def test_over_http2_the_number_of_open_requests_is_limited(frames: Frames) -> None:
    frames.http.DEFAULT_MAX_OUTBOUND_FRAME_SIZE = 16_384
    next(frames.events())
    assert frames.http.remote_settings.max_concurrent_streams == 100


def test_bytes_that_are_no_frames_end_the_socket(frames: Frames, tmp_path: Path) -> None:
    frames.sock.sendall(b"\xff" * 10_000)
    assert frames.outcome(1) in {"terminated", "closed"}


@pytest.mark.parametrize("start", [b"\x00\xff garbage\r\n\r\n", b"GET /acp\r\n\r\n"])
async def test_a_refusal_does_not_repeat_the_bytes_of_the_request(
    remote: RemoteAgent, start: bytes
) -> None:
    answer = exchange(remote, start)
    assert statuses(answer) == [400]
    assert b'{"error": "bad request: illegal request line"}' in answer


async def test_http_1_0_has_no_upgrade_to_a_websocket(remote: RemoteAgent) -> None:
    upgrade = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    key = b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"
    fields = HOST + upgrade + key + bearer(remote)
    assert statuses(exchange(remote, b"GET /acp HTTP/1.0\r\n" + fields + b"\r\n")) == [406]
