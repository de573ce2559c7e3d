"""HTTP requests and responses, independent of the version of HTTP."""

from __future__ import annotations

import json
from asyncio import BaseTransport
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from protocol.transports.event_streams import EventStream

CONNECTION_ID: Final = "acp-connection-id"
SESSION_ID: Final = "acp-session-id"
PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"  # of HTTP/2 (RFC 9113, section 3.4)

Headers = tuple[tuple[str, str], ...]
# Answers with status 200, these headers, and a body that goes on.
OpenStream = Callable[[Headers], EventStream]


class BadRequestError(Exception):
    """A request is not well-formed; the message says how."""


class Request(NamedTuple):
    """The head of a request.

    Attributes:
        method: `GET`, `POST`, …
        path: the target without its query.
        query: what follows the `?`, or an empty text.
        headers: the values of each field in the order in which they came, by lower-case name.
        version: the HTTP version, `1.1` or `2`.
        peer: the address at the other end of the socket.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, tuple[str, ...]]
    version: str
    peer: str

    def header(self, name: str) -> str | None:
        """The value of a field that may come once only; None where it did not come.

        Raises:
            BadRequestError: it came several times.
        """
        values = self.headers.get(name, ())
        if len(values) > 1:
            raise BadRequestError(f"the header {name} came {len(values)} times; send it once")
        return values[0] if values else None


class Reply(NamedTuple):
    """A whole answer."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def also(self, *headers: tuple[str, str]) -> Reply:
        """The same with further headers."""
        return self._replace(headers=(*self.headers, *headers))


def refusal(status: int, reason: str, *headers: tuple[str, str]) -> Reply:
    """An error for a person to read, as JSON: `{"error": reason}`."""
    body = json.dumps({"error": reason}).encode()
    return Reply(status, (("content-type", "application/json"), *headers), body)


def peer_of(transport: BaseTransport | None) -> str:
    """The address at the other end of a socket; empty where it is gone."""
    name = None if transport is None else transport.get_extra_info("peername")
    return str(name[0]) if isinstance(name, tuple) and name else ""


def headers_of(raw: list[tuple[bytes, bytes]]) -> dict[str, tuple[str, ...]]:
    """Fields by lower-case name, from what a library read."""
    found: dict[str, tuple[str, ...]] = {}
    for name, value in raw:
        key = name.decode("latin-1").lower()
        found[key] = (*found.get(key, ()), value.decode("latin-1"))
    return found
