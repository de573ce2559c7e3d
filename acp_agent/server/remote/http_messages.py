"""HTTP requests and responses, independent of the HTTP version."""

from __future__ import annotations

import json
from asyncio import BaseTransport
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from protocol.transports.event_streams import EventStream

CONNECTION_ID: Final = "acp-connection-id"
SESSION_ID: Final = "acp-session-id"
PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"  # preface of HTTP/2 (RFC 9113, section 3.4)

Headers = tuple[tuple[str, str], ...]
# Starts a response with status 200, these headers, and a body that is written over time.
OpenStream = Callable[[Headers], EventStream]


class BadRequestError(Exception):
    """A request is malformed; the message says how."""


class Request(NamedTuple):
    """The head of a request.

    Attributes:
        method: `GET`, `POST`, …
        path: the target without its query.
        query: the part after `?`, or an empty text.
        headers: the values of each field in order of arrival, by lower-case name.
        version: the HTTP version, `1.1` or `2`.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, tuple[str, ...]]
    version: str
    peer: str

    def header(self, name: str) -> str | None:
        """Return the value of a field that must not be repeated; None if it is missing.

        Raises:
            BadRequestError: it is repeated.
        """
        values = self.headers.get(name, ())
        if len(values) > 1:
            raise BadRequestError(f"the header {name} came {len(values)} times; send it once")
        return values[0] if values else None


class Reply(NamedTuple):
    """A complete response."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def with_headers(self, *headers: tuple[str, str]) -> Reply:
        """Return a copy with further headers."""
        return self._replace(headers=(*self.headers, *headers))


def refusal(status: int, reason: str, *headers: tuple[str, str]) -> Reply:
    """Return an error response with a readable reason, as JSON: `{"error": reason}`."""
    body = json.dumps({"error": reason}).encode()
    return Reply(status, (("content-type", "application/json"), *headers), body)


def peer_address(transport: BaseTransport | None) -> str:
    """Return the address of a socket's peer; empty if it is gone."""
    name = None if transport is None else transport.get_extra_info("peername")
    return str(name[0]) if isinstance(name, tuple) and name else ""


def parse_headers(raw: list[tuple[bytes, bytes]]) -> dict[str, tuple[str, ...]]:
    """Return fields by lower-case name, from a library's list."""
    headers: dict[str, tuple[str, ...]] = {}
    for name, value in raw:
        key = name.decode("latin-1").lower()
        headers[key] = (*headers.get(key, ()), value.decode("latin-1"))
    return headers
