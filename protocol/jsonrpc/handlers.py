"""A request being answered, and the forms a handler may have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from protocol.jsonrpc.errors import RpcError
from protocol.jsonrpc.messages import RequestId
from protocol.jsonrpc.methods import Method
from protocol.jsonrpc.outbox import Merge


class Call:
    """A request of the peer's while it is being answered.

    Attributes:
        id: The request's id.
        method: The request's method.
        cancelled: Whether the peer (or the end of the connection) asked to cancel it.
    """

    __slots__ = ("_callback", "_task", "cancelled", "id", "method")

    def __init__(self, request_id: RequestId, method: str) -> None:
        self.id = request_id
        self.method = method
        self.cancelled = False
        self._callback: Callable[[], None] | None = None
        self._task: asyncio.Task[None] | None = None

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Call `callback` instead of cancelling the handler's task; the handler then answers.

        Called at once when the request was cancelled already.
        """
        self._callback = callback
        if self.cancelled:
            callback()

    def attach(self, task: asyncio.Task[None]) -> None:
        """Say which task answers. For the connection."""
        self._task = task

    def cancel(self) -> None:
        """Ask the handler to stop. A second time is the same as once. For the connection."""
        if self.cancelled or self._task is None or self._task.done():
            return
        self.cancelled = True
        if self._callback is None:
            self._task.cancel()
        else:
            self._callback()


class Reply:
    """A handler's result, with something to do right after the response is queued.

    Args:
        result: What the response brings.
        then: Called once the response has its place, so that what it sends comes after.
    """

    __slots__ = ("result", "then")

    def __init__(self, result: object, then: Callable[[], None] | None = None) -> None:
        self.result = result
        self.then = then


# The parameters' type differs from method to method, which no mapping's type can say.
RequestHandler = Callable[[Any, Call], Coroutine[Any, Any, object]]
NotificationHandler = Callable[[Any], Awaitable[None] | None]
Handler = RequestHandler | NotificationHandler


MapError = Callable[[Exception], RpcError | None]


class Surface:
    """One side of one version of a protocol; a connection may go from one to another.

    Attributes:
        methods: What is answered, by name.
        handlers: How, by name; a method without one counts as unknown.
        map_error: Turns an exception of a handler into an error response; None for one that it
            does not know, which becomes an internal error that tells nothing but a reference to
            the log.
        merge: Joins two notifications of one method while the first waits for a slow reader.
        batches: Whether the peer may send several messages as one array (JSON-RPC 2.0 section 6).
    """

    __slots__ = ("batches", "handlers", "map_error", "merge", "methods")

    def __init__(
        self,
        methods: Mapping[str, Method[Any, Any]],
        handlers: Mapping[str, Handler],
        *,
        map_error: MapError | None = None,
        merge: Merge | None = None,
        batches: bool = False,
    ) -> None:
        self.methods = methods
        self.handlers = handlers
        self.map_error = map_error
        self.merge = merge
        self.batches = batches
