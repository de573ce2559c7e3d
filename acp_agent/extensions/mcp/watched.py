"""A transport that tells when the server's side of it has ended."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Self

import anyio
from mcp.client._transport import ReadStream, TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

from acp_agent.extensions.mcp.mending import Mender


@asynccontextmanager
async def watched(
    transport: AbstractAsyncContextManager[TransportStreams], ended: asyncio.Event, mender: Mender
) -> AsyncIterator[TransportStreams]:
    """`transport`, which sets `ended` when nothing more will come from the server.

    The package tells those who wait for an answer, and nobody else. What comes is mended.
    """
    async with transport as (incoming, outgoing):
        yield _Watched(incoming, ended, mender), outgoing


class _Watched:
    """A stream of messages that is watched for its end."""

    def __init__(
        self,
        stream: ReadStream[SessionMessage | Exception],
        ended: asyncio.Event,
        mender: Mender,
    ) -> None:
        self._mender = mender
        self._stream = stream
        self._ended = ended

    @property
    def last_context(self) -> contextvars.Context | None:
        """What the package asks for, where its own streams have it."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """The next message."""
        try:
            item = await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._ended.set()
            raise
        if isinstance(item, Exception):
            return item
        # In a thread: a list or a result may be long, and this reads everything that it sends.
        if isinstance(item.message, JSONRPCResponse):
            return await asyncio.to_thread(self._mender.mend, item)
        return self._mender.mend(item)

    async def aclose(self) -> None:
        """Close this side."""
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, traceback)
