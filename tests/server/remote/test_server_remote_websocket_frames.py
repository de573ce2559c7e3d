"""Frames of a WebSocket that no client's library sends, and what they cost."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct

import pytest
from websockets.asyncio.client import connect
from websockets.frames import Opcode

from tests.server.remote.http_messages import INITIALIZE
from tests.server.remote.remote_agent import RemoteAgent
from tests.server.remote.remote_clients import websocket_client
from tests.server.remote.websocket_bytes import masked, plain_websocket
from tests.support.process_memory import needs_memory, resident_memory
from tests.support.wire_client import AnswerError


async def test_binary_frames_are_ignored_and_pings_answered(remote: RemoteAgent) -> None:
    async with connect(remote.websocket_url, additional_headers=remote.authorization) as client:
        await client.send(b"\x00binary")
        await (await client.ping())
        await client.send(INITIALIZE.decode())
        assert json.loads(await asyncio.wait_for(client.recv(), 60))["id"] == 1
        await client.send(["{", "}"])  # a message in two frames
        assert json.loads(await asyncio.wait_for(client.recv(), 60))["error"]["code"] == -32600


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"\x81\x02{}", 1002),  # not masked
        (b"\xc1\x82\x00\x00\x00\x00{}", 1002),  # compressed, which was not agreed on
        (b"\x83\x80\x00\x00\x00\x00", 1002),  # no such opcode
        (b"\x80\x80\x00\x00\x00\x00", 1002),  # goes on, and nothing began
        (b"\x89\xfe\x00\x80\x00\x00\x00\x00" + b"x" * 128, 1002),  # a ping that is too long
        (b"\x81\x82\x00\x00\x00\x00\xff\xfe", 1007),
    ],
)
async def test_a_broken_frame_ends_the_connection_with_its_code(
    remote: RemoteAgent, frame: bytes, code: int
) -> None:
    reader, writer = await plain_websocket(remote)
    writer.write(frame)
    async with asyncio.timeout(60):
        answered = await reader.read()
    writer.close()
    assert answered[:1] == b"\x88"
    assert struct.unpack("!H", answered[2:4]) == (code,)


@needs_memory
async def test_pings_from_a_peer_that_reads_nothing_are_not_buffered(
    remote: RemoteAgent,
) -> None:
    _, writer = await plain_websocket(remote)
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    before = resident_memory(remote.process.pid)
    flood = masked(b"x" * 125, Opcode.PING) * 1000
    for _ in range(200):
        writer.write(flood)
        await asyncio.wait_for(writer.drain(), 60)
    await asyncio.sleep(0.3)  # what the last of them take
    assert resident_memory(remote.process.pid) - before < 8 * 1024 * 1024
    writer.transport.abort()


async def test_the_fault_of_one_client_does_not_affect_another(remote: RemoteAgent) -> None:
    async with websocket_client(remote) as good:
        await good.initialize()
        _, writer = await plain_websocket(remote)
        writer.write(os.urandom(5000))
        writer.transport.abort()
        with pytest.raises(AnswerError):
            await good.request("no/such")
