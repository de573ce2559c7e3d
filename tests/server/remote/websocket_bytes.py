"""A WebSocket whose frames are written and read by hand."""

from __future__ import annotations

import asyncio

from websockets.frames import Frame, Opcode

from tests.server.remote.remote_agent import RemoteAgent


async def plain_websocket(agent: RemoteAgent) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A WebSocket whose frames nobody reads or writes but the test."""
    reader, writer = await asyncio.open_connection("127.0.0.1", agent.port, limit=1 << 16)
    writer.write(
        b"GET /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"
        + f"Authorization: Bearer {agent.token}\r\n\r\n".encode()
    )
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 "), head
    return reader, writer


def masked(payload: bytes, opcode: Opcode = Opcode.TEXT) -> bytes:
    """A frame as a client sends it."""
    return Frame(opcode, payload).serialize(mask=True)
