"""Connections in this process, over real sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from protocol.jsonrpc.connection import Connection
from protocol.jsonrpc.handlers import Handler, Surface
from protocol.transports.stdio import StdioTransport
from protocol.v1 import methods, types as t

LIMIT = 60.0
ALL = {**methods.AGENT_METHODS, **methods.CLIENT_METHODS}


def update(text: str) -> t.SessionNotification:
    chunk = t.AgentMessageChunk(content=t.TextContent(text=text))
    return t.SessionNotification(session_id="s", update=chunk)


def text_in(params: t.SessionNotification) -> str:
    assert isinstance(params.update, t.AgentMessageChunk)
    assert isinstance(params.update.content, t.TextContent)
    return params.update.content.text


PROMPT = t.PromptRequest(session_id="s", prompt=[t.TextContent(text="hi")])


_opened: list[socket.socket] = []


def over(sock: socket.socket, answers: dict[str, Handler] | Surface, **options: Any) -> Connection:
    """A connection that answers by a surface, or by handlers of version 1."""
    _opened.append(sock.dup())
    transport = StdioTransport(sock.fileno(), sock.fileno())
    surface = answers if isinstance(answers, Surface) else Surface(ALL, answers)
    return Connection(transport, surface, **options)


def end_reading() -> None:
    """End the threads that read for the connections made so far; closing a socket does not."""
    while _opened:
        with _opened.pop() as sock, suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


@asynccontextmanager
async def serving(connection: Connection) -> AsyncIterator[Connection]:
    task = asyncio.create_task(connection.run())
    try:
        yield connection
    finally:
        await asyncio.wait_for(connection.close(), LIMIT)
        await task


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT):
        while not condition():
            await asyncio.sleep(0.001)
