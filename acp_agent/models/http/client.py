"""Interfaces of the HTTP client of one provider, and its errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

OK = 200  # the only status whose answer is read (RFC 9110, section 15.3.1)
CONNECT_SECONDS = 15.0  # the other time limits are in `retries`


class HttpError(Exception):
    """A request failed before its answer was complete."""


class ConnectError(HttpError):
    """The connection could not be opened."""


class BrokenError(HttpError):
    """The connection ended, or the server violated HTTP, before the answer was complete."""


class CompressionError(HttpError):
    """The body of an answer cannot be decompressed."""


class UnsendableError(HttpError):
    """A header has characters that HTTP does not allow. It may be a key, so it is not quoted."""


class StatusError(Exception):
    """An answer whose status is not 200.

    Args:
        headers: the headers, with names in lower case.
    """

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.headers = headers
        self.body = body


class Body(Protocol):
    """The streamed body of an answer."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers of the answer, with names in lower case."""

    async def read(self) -> bytes | None:
        """Wait for data and return all that has arrived, or None at the end.

        Raises:
            Exception: the body could not be read completely.
        """

    async def close(self) -> None:
        """Close the connection, unless the whole body was read and it can be reused."""


class Client(Protocol):
    """Sends requests to one provider. Does not follow redirects: they could leak the key."""

    async def post(self, path: str, body: bytes) -> Body:
        """Send a request with a JSON body; return the body of the answer, to be read.

        Args:
            path: the path after the provider's address, optionally with a query.

        Raises:
            StatusError: the status is not 200.
            HttpError, TimeoutError: there is no answer.
        """

    async def connect(self) -> None:
        """Open a connection before the first request, without sending one. Never raises."""

    async def aclose(self) -> None:
        """Close every connection."""
