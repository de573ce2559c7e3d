"""Clients of a listening agent, with every message judged by the oracle.

`websocket_client` speaks over the `websockets` package, `HttpClient` over `httpx2` with HTTP/2 or
HTTP/1.1. Both are a `WireClient`: what can be said to an agent and read of it is the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, cast

import httpx2
import pytest
import websockets
from websockets.asyncio.client import ClientConnection, connect

from tests.server.remote.remote_agent import RemoteAgent
from tests.support.editor import Editor
from tests.support.framing import Json, framed
from tests.support.oracle import Oracle
from tests.support.wire_client import WireClient

CONNECTION = "Acp-Connection-Id"
SESSION = "Acp-Session-Id"
LONGEST = 64 * 1024 * 1024
# Without it the system may take 32 MB for a client that does not read, and more on other machines.
RECEIVE_BUFFER = (socket.SOL_SOCKET, socket.SO_RCVBUF, 256 * 1024)


class _Outgoing:
    """What a `WireClient` writes, message by message."""

    def __init__(self) -> None:
        self.waiting: asyncio.Queue[bytes] = asyncio.Queue()

    def write(self, data: bytes) -> None:
        for line in data.split(b"\n"):
            if line:
                self.waiting.put_nowait(line)

    async def drain(self) -> None:
        await asyncio.sleep(0)

    def close(self) -> None:
        """The transport is closed by whoever opened it."""


class _Incoming:
    """What a `WireClient` reads, message by message; None is the end."""

    def __init__(self) -> None:
        self.arrived: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def read(self, _: int) -> bytes:
        line = await self.arrived.get()
        return b"" if line is None else line + b"\n"


class Joining(Oracle):
    """Judges the form of messages only: who joins a turn of another connection sees no beginning.

    The rules know the turns of their own connection.
    """

    def received(self, line: bytes) -> list[Json]:
        self.lines += 1
        message = framed(line)
        return message if isinstance(message, list) else [message]


class RemoteClient(WireClient):
    """A client over some transport; `joins` says that it takes a turn over."""

    def __init__(self, editor: Editor | None, *, joins: bool) -> None:
        self.may_receive = asyncio.Event()  # cleared: a client that does not read
        self.may_receive.set()
        self.outgoing = _Outgoing()
        self.incoming = _Incoming()
        super().__init__(
            cast("asyncio.StreamWriter", self.outgoing),
            cast("asyncio.StreamReader", self.incoming),
            editor=editor or Editor(),
            oracle=Joining() if joins else Oracle(),
        )

    @asynccontextmanager
    async def running(self, *pumps: Any) -> AsyncIterator[None]:
        """Carry messages while the block runs, then assert that none broke the protocol."""
        tasks = [asyncio.create_task(coroutine) for coroutine in (self.read(), *pumps)]
        try:
            yield
        finally:
            for task in (*tasks, *self.serving):
                task.cancel()
            await asyncio.gather(*tasks, *self.serving, return_exceptions=True)
            await self.editor.aclose()
        if self.violation is not None:
            raise self.violation
        if self.fault is not None:
            raise self.fault


class WebSocketClient(RemoteClient):
    """A client over a WebSocket."""

    def __init__(
        self, connection: ClientConnection, editor: Editor | None, *, joins: bool = False
    ) -> None:
        super().__init__(editor, joins=joins)
        self.connection = connection

    async def send_all(self) -> None:
        while True:
            await self.connection.send((await self.outgoing.waiting.get()).decode())

    async def receive_all(self) -> None:
        with contextlib.suppress(websockets.ConnectionClosed):
            async for message in self.connection:
                assert isinstance(message, str)
                self.incoming.arrived.put_nowait(message.encode())
                await self.may_receive.wait()
        self.incoming.arrived.put_nowait(None)

    def abort(self) -> None:
        """Cut the socket as a dead network would, without any goodbye."""
        self.cut_off = True
        self.connection.transport.abort()


@asynccontextmanager
async def websocket_client(
    agent: RemoteAgent, *, editor: Editor | None = None, joins: bool = False, **options: Any
) -> AsyncIterator[WebSocketClient]:
    """A client that is connected, not initialized."""
    async with connect(
        agent.websocket_url, additional_headers=agent.authorization, max_size=LONGEST, **options
    ) as connection:
        connection.transport.get_extra_info("socket").setsockopt(*RECEIVE_BUFFER)
        client = WebSocketClient(connection, editor, joins=joins)
        async with client.running(client.send_all(), client.receive_all()):
            yield client


class HttpClient(RemoteClient):
    """A client over streamable HTTP, which opens a stream for each session that it names."""

    def __init__(
        self,
        agent: RemoteAgent,
        posts: httpx2.AsyncClient,
        version: int,
        editor: Editor | None,
        *,
        joins: bool = False,
    ) -> None:
        super().__init__(editor, joins=joins)
        self.agent = agent
        self.posts = posts
        self.version = version
        self.connection = ""
        self.streams: dict[str | None, asyncio.Task[None]] = {}
        self.statuses: list[int] = []
        self._asked_in: dict[Any, str] = {}

    async def send_all(self) -> None:
        while True:
            line = await self.outgoing.waiting.get()
            message = json.loads(line)
            if not self.connection:
                await self._open(line)
                continue
            session = message.get("params", {}).get("sessionId")
            if "method" not in message:
                session = self._asked_in.pop(message["id"], None)
            if session is not None:
                await self.open(session)
            response = await self.post_line(line, session)
            self.statuses.append(response.status_code)

    async def _open(self, line: bytes) -> None:
        response = await self.posts.post(
            self.agent.url, content=line, headers={"Content-Type": "application/json"}
        )
        assert response.status_code == 200, response.text
        self.connection = response.headers[CONNECTION]
        self.incoming.arrived.put_nowait(response.content)
        await self.open(None)

    async def post_line(self, line: bytes, session: str | None) -> httpx2.Response:
        """POST one message."""
        headers = {"Content-Type": "application/json", CONNECTION: self.connection}
        if session is not None:
            headers[SESSION] = session
        return await self.posts.post(self.agent.url, content=line, headers=headers)

    async def open(self, session: str | None) -> None:
        """Open the stream of a session, or of the connection, unless it is open."""
        task = self.streams.get(session)
        if task is not None and not task.done():
            return
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.streams[session] = asyncio.create_task(self._follow(session, opened))
        await opened

    async def close_stream(self, session: str | None) -> None:
        """Close a stream as a client does that lost it."""
        task = self.streams.pop(session)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def _follow(self, session: str | None, opened: asyncio.Future[None]) -> None:
        headers = {"Accept": "text/event-stream", CONNECTION: self.connection}
        if session is not None:
            headers[SESSION] = session
        async with (
            # A socket of its own: of two streams that wait on one, this library keeps the answers
            # of a third from whoever waits for them.
            http(self.agent, version=self.version) as client,
            client.stream("GET", self.agent.url, headers=headers) as response,
        ):
            assert response.status_code == 200, await response.aread()
            assert response.headers["content-type"] == "text/event-stream"
            opened.set_result(None)
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    self._arrived(line.removeprefix("data: ").encode(), session)
                await self.may_receive.wait()

    def _arrived(self, line: bytes, session: str | None) -> None:
        message: Json = json.loads(line)
        if "method" in message and "id" in message and session is not None:
            self._asked_in[message["id"]] = session
        self.incoming.arrived.put_nowait(line)


def http(agent: RemoteAgent, *, version: int = 2, **options: Any) -> httpx2.AsyncClient:
    """An HTTP client that is let in, of HTTP/2 with prior knowledge or of HTTP/1.1."""
    transport = httpx2.AsyncHTTPTransport(
        http1=version == 1,
        http2=version == 2,
        trust_env=False,
        verify=False,  # reading the system's certificates takes longer than most tests
        socket_options=[RECEIVE_BUFFER],
    )
    return httpx2.AsyncClient(
        transport=transport,
        headers=agent.authorization,
        timeout=httpx2.Timeout(20.0, read=None),
        trust_env=False,
        **options,
    )


@asynccontextmanager
async def http_client(
    agent: RemoteAgent,
    *,
    version: int = 2,
    editor: Editor | None = None,
    joins: bool = False,
    **options: Any,
) -> AsyncIterator[HttpClient]:
    """A client that has sent nothing yet; it ends its connection at the end of the block."""
    async with http(agent, version=version, **options) as session:
        client = HttpClient(agent, session, version, editor, joins=joins)
        async with client.running(client.send_all()):
            try:
                yield client
            finally:
                for task in client.streams.values():
                    task.cancel()
                await asyncio.gather(*client.streams.values(), return_exceptions=True)
        if client.connection:
            await session.delete(agent.url, headers={CONNECTION: client.connection})


Open = Callable[..., AbstractAsyncContextManager[RemoteClient]]

EVERY_WAY = pytest.mark.parametrize(
    "open_client",
    [websocket_client, partial(http_client, version=2), partial(http_client, version=1)],
    ids=["websocket", "http2", "http1"],
)
