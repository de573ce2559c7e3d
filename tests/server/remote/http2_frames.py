"""A client of HTTP/2 that sends frames by hand."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import h2.config
import h2.connection
import h2.events

from tests.server.remote.remote_agent import RemoteAgent


class Frames:
    """A client of HTTP/2 that sends what a library would not."""

    def __init__(self, agent: RemoteAgent) -> None:
        self._agent = agent
        self.sock = socket.create_connection(("127.0.0.1", agent.port), timeout=60)
        config = h2.config.H2Configuration(
            client_side=True,
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
            header_encoding=None,
        )
        self.http = h2.connection.H2Connection(config)
        self.http.initiate_connection()
        self.flush()

    def headers(self, *more: tuple[str, str], method: str = "POST") -> list[tuple[str, str]]:
        return [
            (":method", method),
            (":path", "/acp"),
            (":scheme", "http"),
            (":authority", "127.0.0.1"),
            ("authorization", f"Bearer {self._agent.token}"),
            ("content-type", "application/json"),
            *more,
        ]

    def flush(self) -> None:
        with contextlib.suppress(ConnectionError):
            self.sock.sendall(self.http.data_to_send())

    def events(self) -> Iterator[h2.events.Event]:
        with contextlib.suppress(ConnectionError):
            while data := self.sock.recv(65_536):
                yield from self.http.receive_data(data)
                self.flush()

    def outcome(self, stream: int) -> int | str:
        """The status of a request, or how else it ended."""
        for event in self.events():
            if isinstance(event, h2.events.ResponseReceived) and event.stream_id == stream:
                return int(dict(event.headers or [])[b":status"])
            if isinstance(event, h2.events.StreamReset) and event.stream_id == stream:
                return "reset"
            if isinstance(event, h2.events.ConnectionTerminated):
                return "terminated"
        return "closed"
