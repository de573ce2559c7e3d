"""The HTTP client of one provider: posts a request and streams the body of its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

OK = 200  # the status of every answer that is read (RFC 9110, section 15.3.1)
CONNECT_SECONDS = 15.0  # the other time limits are those of `retries`


class HttpError(Exception):
    """A request that got no complete answer."""


class ConnectError(HttpError):
    """No connection could be opened."""


class BrokenError(HttpError):
    """The connection ended, or broke the rules of HTTP, before the answer was complete."""


class CompressionError(HttpError):
    """The body of an answer cannot be decompressed."""


class UnsendableError(HttpError):
    """A header has characters that no header can carry. It may be a key, and is not quoted."""


class StatusError(Exception):
    """An answer with the status of an error.

    Args:
        status: the status.
        headers: its headers, with names in lower case.
        body: the beginning of its body.
    """

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.headers = headers
        self.body = body


class Body(Protocol):
    """The body of an answer, as it comes."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the answer, with names in lower case."""
        ...

    async def read(self) -> bytes | None:
        """Return all that has come, as soon as there is something; None at the end.

        Raises:
            Exception: the body broke.
        """
        ...

    async def close(self) -> None:
        """Close the connection, unless the body was read to its end: then it is used again."""
        ...


class Client(Protocol):
    """Sends requests to one provider. Redirects are not followed: they could carry a key away."""

    async def post(self, path: str, body: bytes) -> Body:
        """Send a request with a JSON body; the answer's body is not read yet.

        Args:
            path: what follows the provider's address, with a query perhaps.
            body: the body.

        Raises:
            StatusError: the status is not 200.
            HttpError, TimeoutError: there is no answer.
        """
        ...

    async def connect(self) -> None:
        """Open a connection ahead of the first request; sends nothing of HTTP. Never raises."""
        ...

    async def aclose(self) -> None:
        """Close every connection."""
        ...
