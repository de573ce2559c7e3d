"""A JSON-RPC 2.0 connection: both sides send requests, responses and notifications."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from protocol.jsonrpc.dispatcher import Admit, Dispatcher
from protocol.jsonrpc.handlers import MAX_CALLS, IncomingRequests, Surface
from protocol.jsonrpc.methods import Method
from protocol.jsonrpc.outgoing import (
    ACP_CANCELLATION,
    HIGH_WATER,
    Cancellation,
    Outbox,
    OutgoingRequests,
    Trace,
)
from protocol.transports.base import Oversize, Transport

P = TypeVar("P")
R = TypeVar("R")

READ_LIMIT: Final = 4 * HIGH_WATER  # bytes of output that wait from which nothing is read
_STALL_TIMEOUT = 1.0  # seconds
_MIN_SETTLE_TIMEOUT = 0.1  # seconds that handlers get whose grace is used up by the on_shutdown
_FLUSH_TIMEOUT = 1.0  # seconds that the peer gets to read what is queued at the end


class Connection:
    """One side of a connection; `run` serves it.

    Requests of the peer start in the order in which they arrive, each in a task of its own, so that
    a slow one holds up nothing. Notifications whose handler is a plain function are handled while
    reading, in order with everything else; for a coroutine function a task is started.

    A request whose id is that of one still being answered is refused (-32600), because its answer
    could not be distinguished from the other's; null ids are exempt. A notification
    method that comes as a request is handled and answered with `{}`, or refused (-32601) where the
    method says so; a request method that comes without an id is ignored.

    Where the surface takes batches, their messages are handled as if each had come on its own line,
    except that the responses go out as one array once the last of them is ready, and that a message
    which is none is answered without its id.

    Args:
        transport: What carries the messages.
        surface: What this side answers, until `serve` says otherwise.
        admit: Called when a request or a notification arrives, before its method is looked up, with
            the method's name and the parameters as they came (`{}` where there are none). It may
            call `serve`, or raise `RpcError` to refuse the message; a refused notification is
            ignored. Not called for a request's method that comes without an id, which is ignored
            as well. The handler of what arrived before may not have begun by then, so what one
            message permits to the next ones is to be noted here. Called again where parameters
            with a lone surrogate had to be repaired.
        trace: Sees every line: as it came in, and as it goes out.
        drain_timeout: Seconds that running handlers get to finish after the peer closed its side.
        grace: Seconds that cancelled handlers get to finish before `run` returns.
        on_shutdown: Awaited when handlers were cancelled, before they are waited for, so that they
            can still report how they ended. It limits its own time, which counts as grace.
        on_memory_freed: Called when large requests were answered, so that memory may be released.
        cancellation: The notification that cancels a request of this side.
    """

    def __init__(
        self,
        transport: Transport,
        surface: Surface,
        *,
        admit: Admit | None = None,
        trace: Trace | None = None,
        drain_timeout: float = 0.25,
        grace: float = 2.0,
        on_shutdown: Callable[[], Awaitable[None]] | None = None,
        on_memory_freed: Callable[[], None] | None = None,
        cancellation: Cancellation = ACP_CANCELLATION,
    ) -> None:
        self._transport = transport
        self._drain_timeout = drain_timeout
        self._grace = grace
        self._on_shutdown = on_shutdown
        self._outbox = Outbox(transport, trace)
        self._outbox.merge_with(surface.merge)
        self._requests = OutgoingRequests(self._outbox, cancellation)
        self._calls = IncomingRequests(on_memory_freed)
        self._dispatcher = Dispatcher(
            surface, self._outbox, self._requests, self._calls, admit=admit, trace=trace
        )
        self._closed = asyncio.Event()
        self._closing = False
        self._running = False

    @property
    def closed(self) -> bool:
        """Whether the connection has ended: nothing is read, and nothing sent arrives."""
        return self._closed.is_set() or self._transport.disconnected

    @property
    def queued(self) -> int:
        """Bytes that wait for the peer to read."""
        return self._outbox.queued

    @property
    def answering(self) -> int:
        """How many requests of the peer are being answered. Any thread may ask."""
        return self._calls.count

    def serve(self, surface: Surface) -> None:
        """Answer by `surface` from now on; called in `admit`, from the admitted message on.

        Handlers that run already are not touched, and their errors are mapped as before.
        """
        self._dispatcher.surface = surface
        self._outbox.merge_with(surface.merge)

    async def wait_closed(self) -> None:
        """Wait until `run` has returned."""
        await self._closed.wait()

    async def run(self) -> None:
        """Serve until the peer ends the connection or `close` is called.

        Then what still runs is cancelled and everything queued is passed on; both within bounds.
        """
        self._running = True
        try:
            while (message := await self._transport.read_message()) is not None:
                if isinstance(message, Oversize):
                    self._dispatcher.refuse(message)
                else:
                    self._dispatcher.receive(message)
                del message  # it may be long, and the next one may be long in coming
                if self._is_peer_behind():
                    await self._wait_for_peer()
        finally:
            try:
                await self._shut_down()
            finally:
                self._closed.set()

    def _is_peer_behind(self) -> bool:
        """Return whether more requests or more output wait than are allowed."""
        return self._calls.count > MAX_CALLS or self._outbox.queued > READ_LIMIT

    async def _wait_for_peer(self) -> None:
        """Pause reading while the peer reads too slowly, or sends more requests than are answered.

        A peer may be unable to read before it has written: it gets one message read a second while
        nothing moves, so that neither waits for ever.
        """
        while self._is_peer_behind() and not self.closed:
            previous = self._outbox.queued, self._calls.count
            with suppress(TimeoutError):
                async with asyncio.timeout(_STALL_TIMEOUT):
                    await self._outbox.drain()
                    await self._calls.drain()
                    return
            if self._outbox.queued >= previous[0] and self._calls.count >= previous[1]:
                return

    async def request(
        self,
        method: Method[P, R],
        params: P,
        *,
        timeout: float | None = None,
        on_late_result: Callable[[R], None] | None = None,
    ) -> R:
        """Send a request and wait for the response.

        When the wait ends early, by the time limit or because the waiting task is cancelled, the
        peer is sent `$/cancel_request`, and a late response is dropped.

        Args:
            method: What to ask.
            timeout: Seconds to wait at most; None: as long as the connection lives.
            on_late_result: Called with a result that comes after all, to release what it brought.

        Raises:
            RpcError: the peer answered with an error, or with a malformed result.
            TimeoutError: no answer in time.
            ConnectionError: the connection ended first.
        """
        return await self._requests.send(method, params, timeout, on_late_result)

    def notify(self, method: Method[P, Any], params: P) -> None:
        """Send a notification after everything sent before. Never waits; see `drain`."""
        self._outbox.notify(method.name, params)

    def stop_draining(self) -> None:
        """Make `drain` return at once: a peer that does not read must not delay the shutdown."""
        self._outbox.end_waiting()

    async def drain(self) -> None:
        """Wait while the peer reads too slowly; return at once if it does not, or is gone."""
        await self._outbox.drain()

    def stop(self) -> None:
        """Stop reading, as if the peer had closed its side; `run` returns soon."""
        self._transport.close()

    async def close(self) -> None:
        """End the connection from this side; returns when `run` is done."""
        self._closing = True
        self._transport.close()
        if not self._running:
            self._closed.set()
        # A handler cannot wait for its own end.
        if not self._calls.is_current_task():
            await self._closed.wait()

    async def _shut_down(self) -> None:
        self._transport.close()
        self.stop_draining()
        self._requests.end()
        loop = asyncio.get_running_loop()
        try:
            # A peer that is gone reads no answer, but what it asked for last is begun.
            await self._calls.wait_idle(0.0 if self._closing else self._drain_timeout)
            self._calls.cancel_all()
            deadline = loop.time() + self._grace
            if self._on_shutdown is not None:
                await self._on_shutdown()
            await self._calls.wait_idle(max(_MIN_SETTLE_TIMEOUT, deadline - loop.time()))
        finally:
            # Whoever is cancelled for good is answered at once; nothing may come after that.
            self._outbox.end_notifying()
            await self._calls.end()
            await self._outbox.flush(_FLUSH_TIMEOUT)
