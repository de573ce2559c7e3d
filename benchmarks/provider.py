"""A model provider in a separate process, and the raw client that is the floor."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[1]
BODY = b'{"model":"any","stream":true,"messages":[{"role":"user","content":"hi"}]}'


class Timing(NamedTuple):
    """Milliseconds from the request to the first byte of the stream and to its end."""

    first: float
    end: float


class Provider:
    """Serves streams of so many pieces, as fast as they are read."""

    def __init__(self, deltas: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.model_server", "--deltas", str(deltas)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().decode().strip()
        self._connection: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def environment(self) -> dict[str, str]:
        """The variables that point an agent here."""
        return {"OPENAI_BASE_URL": f"{self.url}/v1", "OPENAI_API_KEY": "sk-benchmark"}

    def raw(self, body: bytes = BODY) -> Timing:
        """The same stream read from the bare socket, over a connection that is open already."""
        if self._connection is None:
            address = urlsplit(self.url)
            assert address.hostname is not None
            self._connection = socket.create_connection((address.hostname, address.port or 80))
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        began = time.perf_counter()
        self._connection.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: provider\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        first = 0.0
        tail = b""
        while b"[DONE]" not in tail:
            piece = self._connection.recv(65_536)
            if not piece:
                raise RuntimeError("the provider closed the connection")
            if not first and b"data:" in piece:
                first = (time.perf_counter() - began) * 1e3
            tail = tail[-16:] + piece
        end = (time.perf_counter() - began) * 1e3
        while not tail.endswith(b"0\r\n\r\n"):
            tail = tail[-16:] + self._connection.recv(65_536)
        return Timing(first, end)
