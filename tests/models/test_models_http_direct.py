"""Our own HTTP client, against a server that answers with exact bytes."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from acp_agent.models.http.client import BrokenError, ConnectError, StatusError
from acp_agent.models.http.direct import DirectClient
from acp_agent.models.http.factory import make_client
from tests.support.web_site import Authority

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
REFUSED = b"HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno"
STRAY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n"


def compressed(size: int) -> bytes:
    body = gzip.compress(bytes(size))
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@asynccontextmanager
async def serve(
    answers: Sequence[Sequence[bytes]],
    host: str = "127.0.0.1",
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[str]:
    """Serve a list of answers to each connection in turn; a list that is over closes it."""
    left = iter(answers)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for given in next(left):
            await reader.readuntil(b"{}")
            writer.write(given)
        writer.close()

    server = await asyncio.start_server(answer, host, ssl=tls)
    async with server:
        name = f"[{host}]" if ":" in host else host
        yield f"http{'s' if tls else ''}://{name}:{server.sockets[0].getsockname()[1]}"


async def ask(client: DirectClient) -> list[bytes]:
    try:
        body = await client.post("/", b"{}")
    except StatusError as refused:
        return [refused.body]
    pieces = []
    while (piece := await body.read()) is not None:
        pieces.append(piece)
    return pieces


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([[CHUNKED, REFUSED, CHUNKED]], [b"ok", b"no", b"ok"]),  # one connection for all
        ([[CHUNKED], [CHUNKED]], [b"ok", b"ok"]),  # closed while idle: asked again
        ([[STRAY, b""], [CHUNKED]], [b"ok", b"ok"]),  # not taken for the next answer
    ],
    ids=["reused", "closed", "stray"],
)
async def test_a_connection_answers_the_next_request_where_it_can(
    answers: Sequence[Sequence[bytes]], expected: Sequence[bytes]
) -> None:
    async with serve(answers) as url, asyncio.timeout(60):
        client = make_client(url, {})
        assert isinstance(client, DirectClient)
        assert [b"".join(await ask(client)) for _ in expected] == list(expected)
        await client.aclose()


@pytest.mark.skipif(not socket.has_ipv6, reason="this computer has no IPv6")
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "the server closed the connection"),
        (b"HTTP/1.1 2", "the server closed the connection"),
        (b"SSH-2.0-OpenSSH_9.9\r\n\r\n", "its answer is not valid HTTP"),
        (CHUNKED.replace(b"\r\n2\r\n", b"\r\nZZ\r\n"), "its answer is not valid HTTP"),
    ],
)
async def test_a_broken_answer_is_explained_in_plain_words(answer: bytes, reason: str) -> None:
    async with serve([[answer]]) as url, asyncio.timeout(60):
        client = make_client(url, {})
        assert isinstance(client, DirectClient)
        with pytest.raises(BrokenError, match=f"^{reason}$"):
            await ask(client)
        await client.aclose()


async def test_an_ipv6_address_is_reached() -> None:
    async with serve([[CHUNKED]], "::1") as url, asyncio.timeout(60):
        client = make_client(url, {})
        assert isinstance(client, DirectClient)
        assert await ask(client) == [b"ok"]
        await client.aclose()


async def test_only_a_server_with_a_trusted_certificate_gets_a_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, trusted = Authority(tmp_path), tmp_path / "trusted.pem"
    trusted.write_bytes(authority.certificate.public_bytes(Encoding.PEM))
    async with serve([[CHUNKED]], tls=authority.server("localhost")) as url, asyncio.timeout(60):
        named = url.replace("127.0.0.1", "localhost")
        with pytest.raises(ConnectError, match="certificate"):
            await ask(DirectClient(named, {}))
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        client = DirectClient(named, {})
        assert await ask(client) == [b"ok"]
        await client.aclose()


async def test_a_connection_opened_ahead_serves_the_first_request_and_is_asked_once() -> None:
    # The second connection would answer where the first request went over a new one.
    async with serve([[CHUNKED], [REFUSED]]) as url, asyncio.timeout(60):
        client = make_client(url, {})
        assert isinstance(client, DirectClient)
        await client.connect()
        await client.connect()
        assert await ask(client) == [b"ok"]
        await client.aclose()
    async with serve([[b"HTTP/1.1 "], [CHUNKED]]) as url, asyncio.timeout(60):
        client = make_client(url, {})
        assert isinstance(client, DirectClient)
        await client.connect()
        with pytest.raises(BrokenError):  # the provider may have taken the request
            await ask(client)
        await client.aclose()


async def test_a_cancelled_request_closes_its_connection() -> None:
    gone = asyncio.Event()

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        begun.set()
        with suppress(ConnectionError):
            await reader.read()
        gone.set()
        writer.close()

    begun = asyncio.Event()
    async with await asyncio.start_server(never, "127.0.0.1") as server, asyncio.timeout(60):
        client = make_client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", {})
        assert isinstance(client, DirectClient)
        request = asyncio.create_task(ask(client))
        await begun.wait()
        request.cancel()
        await gone.wait()
        await client.aclose()


async def test_a_compressed_answer_is_never_held_whole() -> None:
    size = 20_000_000
    async with serve([[compressed(size)]]) as url, asyncio.timeout(60):
        client = make_client(url, {})
        assert isinstance(client, DirectClient)
        pieces = await ask(client)
        assert sum(map(len, pieces)) == size
        assert max(map(len, pieces)) < 1_000_000
        await client.aclose()
