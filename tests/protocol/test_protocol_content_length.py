"""Messages with a Content-Length header, however they are cut and whatever is between them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from protocol.transports.base import Oversize
from protocol.transports.content_length import ContentLengthTransport


@asynccontextmanager
async def transport(sent: list[bytes], limit: int = 100) -> AsyncIterator[ContentLengthTransport]:
    """A transport whose peer sends these pieces, one at a time, and then ends."""

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in sent:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        writer.write_eof()
        received.set_result(await reader.read())
        writer.close()

    received: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(peer, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    try:
        yield ContentLengthTransport(reader, writer, limit=limit)
    finally:
        writer.close()
        server.close()


async def messages(one: ContentLengthTransport) -> list[bytes | Oversize]:
    found = []
    while (message := await one.read_message()) is not None:
        found.append(message)
    return found


TWO = b"Content-Length: 2\r\n\r\n{}Content-Type: x\r\ncontent-length:4\r\n\r\n[{}]"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
async def test_messages_are_read_however_they_are_cut(size: int) -> None:
    pieces = [TWO[at : at + size] for at in range(0, len(TWO), size)]
    async with transport(pieces) as one:
        assert await messages(one) == [b"{}", b"[{}]"]
        assert not one.broken


async def test_a_too_long_message_is_reported_and_the_next_is_read() -> None:
    long = b'{"id": 7, "result": "' + b"x" * 200 + b'"}'
    async with transport([b"Content-Length: %d\r\n\r\n%b" % (len(long), long), TWO]) as one:
        assert await messages(one) == [Oversize(100, b"7", True), b"{}", b"[{}]"]


@pytest.mark.parametrize(
    "sent",
    [
        b"x" * 10_000,
        b"Content-Length: many\r\n\r\n{}",
        b"Content-Length: -1\r\n\r\n{}",
        b"Length: 2\r\n\r\n{}",
        b"Content-Length: " + b"9" * 30 + b"\r\n\r\n",
    ],
)
async def test_invalid_framing_ends_the_connection_with_a_reason(sent: bytes) -> None:
    async with transport([sent]) as one:
        assert await messages(one) == []
        assert one.broken


@pytest.mark.parametrize("sent", [b"", b"Content-Length: 2", b"Content-Length: 2\r\n\r\n{"])
async def test_a_peer_that_ends_within_a_message_ends_the_connection(sent: bytes) -> None:
    async with transport([sent]) as one:
        assert await messages(one) == []


async def test_a_line_of_text_before_the_first_header_is_passed_over() -> None:
    async with transport([b"Starting ...\n" + TWO]) as one:
        assert await messages(one) == [b"{}", b"[{}]"]


async def test_reading_ends_when_this_side_closes() -> None:
    async with transport([b"Content-Length: 50\r\n\r\n"]) as one:
        reading = asyncio.create_task(one.read_message())
        await asyncio.sleep(0)
        one.close()
        assert await asyncio.wait_for(reading, 60) is None
