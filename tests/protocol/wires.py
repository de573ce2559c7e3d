"""A connection in this process whose other side is the test, with raw lines."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Literal, Self

from msgspec import Raw

from protocol.jsonrpc.handlers import Surface
from tests.protocol.connections import LIMIT, over, serving

Json = dict[str, Any]


class Wire:
    """Serves `connection` while it is entered; what was not asked for stays to be `receive`d.

    Attributes:
        received: How many lines the connection has taken in.
    """

    def __init__(
        self, surface: Surface, *, admit: Callable[[str, Raw], None] | None = None, **options: Any
    ) -> None:
        self.received = 0
        ours, self._theirs = socket.socketpair()
        self._ours = ours
        self.connection = over(ours, surface, admit=admit, trace=self._trace, **options)
        self._ids = 0
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._stack.callback(self._ours.close)
        await self._stack.enter_async_context(serving(self.connection))
        self._reader, self._writer = await asyncio.open_connection(
            sock=self._theirs, limit=64 * 1024 * 1024
        )
        self._stack.callback(self._writer.close)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    def write(self, data: bytes) -> None:
        """Send bytes; those of one pass of the loop arrive together."""
        self._writer.write(data)

    def send(self, *values: object) -> None:
        """Send a line for each value."""
        self.write(b"".join(json.dumps(value).encode() + b"\n" for value in values))

    def post(self, method: str, params: object) -> int:
        """Send a request; its id."""
        self._ids += 1
        self.send({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params})
        return self._ids

    async def ask(self, method: str, params: object) -> Json:
        """Send a request; the response, which has to be the next line."""
        return await self.answer(self.post(method, params))

    async def answer(self, request_id: int) -> Json:
        """The response to a request, which has to be the next line."""
        message = await self.receive()
        assert isinstance(message, dict)
        assert message["id"] == request_id, message
        return message

    async def receive(self) -> Any:
        """The next line's value."""
        line = await asyncio.wait_for(self._reader.readline(), LIMIT)
        assert line.endswith(b"\n"), "the connection ended"
        return json.loads(line)

    def end(self) -> None:
        """Close the writing side."""
        self._writer.write_eof()

    async def rest(self) -> bytes:
        """Everything that was sent up to the connection's end, for which it waits."""
        await asyncio.wait_for(self.connection.wait_closed(), LIMIT)
        self._ours.shutdown(socket.SHUT_WR)
        return await asyncio.wait_for(self._reader.read(), LIMIT)

    def _trace(self, direction: Literal["in", "out"], line: bytes) -> None:
        self.received += direction == "in"
