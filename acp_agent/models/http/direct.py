"""An HTTP/1.1 client without proxy support, built on asyncio streams and h11."""

from __future__ import annotations

import asyncio
import socket
import ssl
import zlib
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

import h11

from acp_agent.config.certificates import tls_context
from acp_agent.models.http.client import (
    CONNECT_SECONDS,
    OK,
    BrokenError,
    CompressionError,
    ConnectError,
    StatusError,
    UnsendableError,
)
from acp_agent.platform.descriptor_limit import describe_os_error

_CLOSED = "the server closed the connection"
_READ = 256 * 1024  # bytes
_HEAD = 256 * 1024  # the most bytes of the headers of an answer
_ERROR_BODY = 1024 * 1024  # the most bytes read of the body of an error
_IDLE_SECONDS = 60.0  # after which an unused connection is not used again
_EYEBALLS_SECONDS = 0.25  # until the next address of a host is tried too (RFC 8305)


class _Address(NamedTuple):
    host: str
    port: int
    tls: ssl.SSLContext | None


class DirectClient:
    """A `Client` without a proxy; see `make_client`."""

    def __init__(self, base_url: str, headers: Mapping[str, str]) -> None:
        components = urlsplit(base_url)
        secure = components.scheme == "https"
        assert components.hostname is not None
        port = components.port or (443 if secure else 80)
        self._address = _Address(components.hostname, port, tls_context() if secure else None)
        self._path, self._query = components.path.rstrip("/"), components.query
        self._headers = {"host": components.netloc, "accept-encoding": "identity", **headers}
        self._idle: list[_Connection] = []
        self._busy: set[_Connection] = set()
        self._closed = False

    async def post(self, path: str, body: bytes) -> _Body:
        """Send a request; see `Client`."""
        path, _, query = path.partition("?")
        query = "&".join(filter(None, (self._query, query)))
        target = f"{self._path}{path}{f'?{query}' if query else ''}"
        headers = [*self._headers.items(), ("content-length", str(len(body)))]
        while True:
            connection = self._take()
            reused = connection is not None and connection.served
            if connection is None:
                connection = await _Connection.open(self._address)
            self._busy.add(connection)
            try:
                answer = _Body(self, connection, await connection.send(target, headers, body))
                refused = None if answer.status == OK else await _beginning(answer)
            except BaseException as error:
                self.give_back(connection, reusable=False)
                # The provider may close a connection that waits at any time (RFC 9112, 9.3.1).
                if reused and isinstance(error, BrokenError) and not connection.answered:
                    continue
                raise
            if refused is not None:
                await answer.close()
                raise StatusError(answer.status, answer.headers, refused)
            return answer

    async def connect(self) -> None:
        """Open a connection before the first request; see `Client`."""
        if self._idle or self._busy:
            return
        with suppress(ConnectError, TimeoutError):  # the request will report it
            self.give_back(await _Connection.open(self._address), reusable=True)

    async def aclose(self) -> None:
        """Close every connection."""
        self._closed = True
        for connection in (*self._idle, *self._busy):
            connection.close()
        self._idle.clear()

    def _take(self) -> _Connection | None:
        """Return the idle connection that was used last, or None."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and connection.waits < _IDLE_SECONDS:
                return connection
            connection.close()
        return None

    def give_back(self, connection: _Connection, *, reusable: bool) -> None:
        """Store a connection for the next request, or close it."""
        self._busy.discard(connection)
        if reusable and not self._closed:
            connection.mark_idle()
            self._idle.append(connection)
        else:
            connection.close()


class _Connection:
    """A connection, for one request at a time.

    Attributes:
        answered: true if data was received since the last request.
        served: true if an earlier request was answered completely.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.answered = self.served = self._ended = False
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD)
        self._clock = asyncio.get_running_loop().time
        self._since = self._clock()

    @classmethod
    async def open(cls, address: _Address) -> _Connection:
        """Open a connection to an address.

        Raises:
            ConnectError: the host was not found, or refused the connection.
            TimeoutError: the host did not answer in time.
        """
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(
                    address.host,
                    address.port,
                    ssl=address.tls,
                    limit=_READ,
                    happy_eyeballs_delay=_EYEBALLS_SECONDS,
                )
        except TimeoutError:
            raise
        except (OSError, UnicodeError) as error:  # UnicodeError: an invalid host name
            message = describe_os_error(error) if isinstance(error, OSError) else "no such host"
            raise ConnectError(message) from error
        with suppress(OSError):  # a model may send nothing for minutes while it reasons
            sock: socket.socket = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return cls(reader, writer)

    @property
    def is_open(self) -> bool:
        """Return whether the connection is open at both ends."""
        return not self._writer.is_closing() and not self._reader.at_eof()

    @property
    def waits(self) -> float:
        """Return the seconds since the last use."""
        return self._clock() - self._since

    def mark_idle(self) -> None:
        """Start the idle time."""
        self._since = self._clock()

    def close(self) -> None:
        """Close the connection at once."""
        self._writer.transport.abort()

    async def send(self, target: str, headers: list[tuple[str, str]], body: bytes) -> h11.Response:
        """Send a request and return the head of its answer. Raises UnsendableError, BrokenError."""
        self.answered = False
        try:
            request = h11.Request(method="POST", target=target, headers=headers)
        except (h11.LocalProtocolError, UnicodeEncodeError):
            raise UnsendableError from None
        head = self._http.send(request) or b""
        self._http.send(h11.Data(data=body))
        self._http.send(h11.EndOfMessage())
        self._writer.write(head + body)
        while isinstance(event := await self._event(), h11.InformationalResponse):
            pass
        if not isinstance(event, h11.Response):
            raise BrokenError(_CLOSED)
        return event

    async def read(self) -> bytes | None:
        """Return the data of the body that has arrived, or None at its end. Raises BrokenError."""
        pieces: list[bytes] = []
        while True:
            if self._http.their_state is not h11.SEND_BODY:  # h11 would ask for more data
                return b"".join(pieces) or None
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                if pieces:  # the next call raises the error
                    return b"".join(pieces)
                raise self._broken() from error
            if isinstance(event, h11.Data):
                pieces.append(event.data)
            elif event is not h11.NEED_DATA or pieces:
                return b"".join(pieces) or None
            else:
                await self._receive()

    def next_request(self) -> bool:
        """Prepare for another request; return False if the connection cannot be reused."""
        both_done = self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
        if not both_done or self._http.trailing_data[0]:  # unexpected data would answer it
            return False
        self._http.start_next_cycle()
        self.served = True
        return True

    async def _event(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                await self._receive()
        except h11.RemoteProtocolError as error:
            raise self._broken() from error
        return event

    def _broken(self) -> BrokenError:
        """Return the error for data that `h11` refused."""
        return BrokenError(_CLOSED if self._ended else "its answer is not valid HTTP")

    async def _receive(self) -> None:
        try:
            received = await self._reader.read(_READ)
        except OSError as error:
            raise BrokenError(describe_os_error(error)) from error
        self.answered = self.answered or bool(received)
        self._ended = not received
        self._http.receive_data(received)


class _Body:
    """The body of an answer; see `Body`."""

    def __init__(self, client: DirectClient, connection: _Connection, head: h11.Response) -> None:
        self.status = head.status_code
        self.headers = {
            name.decode("latin-1"): text.decode("latin-1") for name, text in head.headers
        }
        self._client = client
        self._connection: _Connection | None = connection
        self._encoding = self.headers.get("content-encoding", "").strip().lower()
        # Compression is not requested, but some services use gzip or deflate nevertheless.
        self._decompress = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)

    async def read(self) -> bytes | None:
        """Wait for data and return it, or None at the end; see `Body`."""
        while self._connection is not None:
            # The rest of a piece comes first: pieces are decompressed in parts of limited size.
            received = self._decompress.unconsumed_tail or await self._connection.read()
            if received is None:
                connection, self._connection = self._connection, None
                self._client.give_back(connection, reusable=connection.next_request())
            elif text := self._decoded(received):
                return text
        return None

    def _decoded(self, received: bytes) -> bytes:
        if self._encoding in {"", "identity"}:
            return received
        if self._encoding not in {"gzip", "x-gzip", "deflate"}:
            raise CompressionError(f"unknown content encoding {self._encoding[:40]!r}")
        try:
            return self._decompress.decompress(received, _READ)
        except zlib.error as error:
            raise CompressionError(str(error)) from error

    async def close(self) -> None:
        """Close the connection, unless the whole body was read; see `Body`."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self._client.give_back(connection, reusable=False)


async def _beginning(body: _Body) -> bytes:
    """Return the beginning of an error's body, or as much of it as can be read."""
    read = b""
    with suppress(BrokenError, CompressionError):
        while len(read) < _ERROR_BODY and (piece := await body.read()) is not None:
            read += piece
    return read
