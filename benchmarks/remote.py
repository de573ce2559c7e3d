"""Turns over a WebSocket: their latency against stdio, and many clients' pieces against one's."""

from __future__ import annotations

import json
import selectors
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from typing import Self
from urllib.parse import urlsplit

from benchmarks.agent import COMMAND, Agent, Json, clean_environment
from benchmarks.provider import Provider
from benchmarks.table import Row, pairs, row

CLIENTS = 50
PIECES = 2_000  # of each turn
ROUNDS = 5
TURNS = 15
TOKEN = "a-token-of-the-benchmark"


class Listening:
    """A listening agent with a temporary home."""

    def __init__(self, provider: Provider) -> None:
        self._folder = tempfile.TemporaryDirectory()
        extra = provider.environment() | {"ACP_AGENT_LISTEN_TOKEN": TOKEN}
        self.process = subprocess.Popen(
            [COMMAND, "serve", "--listen", "127.0.0.1:0", "--model", "openai/gpt-5"],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=clean_environment(self._folder.name, extra),
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline().decode()
        self.port = urlsplit(line.split()[-1]).port or 0
        if not self.port:
            raise RuntimeError(line + self.process.stderr.read().decode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(10)
        assert self.process.stderr is not None
        self.process.stderr.close()
        self._folder.cleanup()


class Client:
    """A client on a WebSocket, driven as simply and as fast as Python allows.

    It looks for what it waits for in the bytes as they come; taking frames apart would be measured.
    """

    def __init__(self, agent: Listening) -> None:
        self.socket = socket.create_connection(("127.0.0.1", agent.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._id = 0
        self._tail = b""
        self.socket.sendall(
            b"GET /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"
            b"Authorization: Bearer " + TOKEN.encode() + b"\r\n\r\n"
        )
        self.until(b"\r\n\r\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def post(self, method: str, params: Json) -> bytes:
        """Send a request; what its answer has in it."""
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        payload = json.dumps(message).encode().ljust(126)  # from there on a length has two bytes
        # A text frame whose mask, of zeros, changes nothing (RFC 6455, section 5.3).
        self.socket.sendall(b"\x81\xfe" + len(payload).to_bytes(2, "big") + bytes(4) + payload)
        self._tail = b""
        return b'"id":%d,"result"' % self._id

    def until(self, piece: bytes) -> bytes:
        """Read until `piece` came; what came with it."""
        while not (came := self.came(piece)):
            pass
        return came

    def came(self, piece: bytes) -> bytes:
        """Read once; what was read lately where `piece` is in it, or nothing."""
        data = self.socket.recv(262_144)
        if not data:
            raise RuntimeError("the agent closed the connection")
        data = self._tail + data
        self._tail = data[-64:]
        return data if piece in data else b""

    def begin(self, cwd: str) -> str:
        """Initialize, and make a session; its id."""
        self.until(self.post("initialize", {"protocolVersion": 1, "clientCapabilities": {}}))
        made = self.until(self.post("session/new", {"cwd": cwd, "mcpServers": []}))
        session = made.split(b'"sessionId":"', 1)[1].split(b'"', 1)[0]
        return session.decode()

    def prompt(self, session: str) -> bytes:
        """Send a prompt; what its answer has in it."""
        content = [{"type": "text", "text": "hi"}]
        return self.post("session/prompt", {"sessionId": session, "prompt": content})


def rows() -> list[Row]:
    """Latency of a short turn; the rate of many clients."""
    return [_latency(), _rates()]


def _latency() -> Row:
    with Provider(deltas=5) as provider, tempfile.TemporaryDirectory() as cwd:
        with (
            Agent("--model", "openai/gpt-5", extra=provider.environment()) as stdio,
            Listening(provider) as listening,
            Client(listening) as remote,
        ):
            stdio.initialize()
            session = stdio.new_session(cwd)
            stdio.answer(stdio.prompt(session))  # warm
            other = remote.begin(cwd)
            remote.until(remote.prompt(other))

            def over_stdio() -> float:
                began = time.perf_counter()
                stdio.answer(stdio.prompt(session))
                return (time.perf_counter() - began) * 1e3

            def over_websocket() -> float:
                began = time.perf_counter()
                remote.until(remote.prompt(other))
                return (time.perf_counter() - began) * 1e3

            ours, floors = pairs(over_websocket, over_stdio, TURNS)
    return row("short turn over a WebSocket", "ms", ours, "stdio", floors, times=1, plus=1)


def _rates() -> Row:
    with (
        Provider(deltas=PIECES) as provider,
        tempfile.TemporaryDirectory() as cwd,
        Listening(provider) as agent,
    ):
        clients = [Client(agent) for _ in range(CLIENTS)]
        sessions = [one.begin(cwd) for one in clients]
        for one, session in zip(clients, sessions, strict=True):
            one.until(one.prompt(session))  # warm
        ours, floors = pairs(
            lambda: _per_piece(clients, sessions),
            # As many turns, so that whatever else the machine does meets both for as long.
            lambda: statistics.fmean(_per_piece(clients[:1], sessions[:1]) for _ in range(CLIENTS)),
            ROUNDS,
        )
        for one in clients:
            one.socket.close()
    name = f"a piece of {CLIENTS} WebSocket clients' turns at once"
    return row(name, "µs", ours, "one client", floors, times=1 / 0.8)


def _per_piece(clients: Sequence[Client], sessions: Sequence[str]) -> float:
    """Microseconds that a piece took, while all these clients have a turn at the same time."""
    with selectors.DefaultSelector() as ready:
        began = time.perf_counter()
        for one, session in zip(clients, sessions, strict=True):
            ready.register(one.socket, selectors.EVENT_READ, (one, one.prompt(session)))
        while ready.get_map():
            for key, _ in ready.select():
                one, answer = key.data
                if one.came(answer):
                    ready.unregister(one.socket)
        taken = time.perf_counter() - began
    return taken * 1e6 / (PIECES * len(clients))
