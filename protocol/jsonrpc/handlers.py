"""Handlers of requests and notifications, and the peer's requests while they are being answered."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final, cast

from protocol.jsonrpc import messages
from protocol.jsonrpc.messages import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    REQUEST_CANCELLED,
    RequestId,
    RpcError,
    log,
)
from protocol.jsonrpc.methods import Method
from protocol.jsonrpc.outgoing import Merge

NotificationHandler = Callable[[Any], Awaitable[None] | None]
MapError = Callable[[Exception], RpcError | None]
# Takes the line of a response, and what to do once that has its place among what is sent.
Answer = Callable[[bytes, Callable[[], None] | None], None]
MAX_CALLS: Final = 1_000  # requests being answered from which no further message is read
MAX_BYTES: Final = 64 * 1024 * 1024  # of the requests that are being answered; one may have more
_LARGE_BYTES, _SMALL_BYTES = 4 * 1024 * 1024, 1024 * 1024  # bytes of them, see `IncomingRequests`
_END_TIMEOUT = 1.0  # seconds for cancelled handlers to end


class Call:
    """A request of the peer while it is being answered.

    Attributes:
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
        """Set the task that answers. For the connection."""
        self._task = task

    def cancel(self) -> None:
        """Ask the handler to stop; a second call does nothing. For the connection."""
        if self.cancelled or self._task is None or self._task.done():
            return
        self.cancelled = True
        if self._callback is None:
            self._task.cancel()
        else:
            self._callback()


class Reply:
    """A handler's result, with a function to call right after the response is queued.

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
Handler = RequestHandler | NotificationHandler


class Surface:
    """The methods that one side answers in one version of a protocol; `Connection.serve` switches.

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


class IncomingRequests:
    """Runs handlers in tasks, sends their responses, and ends them.

    Args:
        on_memory_freed: called when requests of many bytes were answered, and few bytes are left.
    """

    def __init__(self, on_memory_freed: Callable[[], None] | None = None) -> None:
        self._on_memory_freed = on_memory_freed
        self._calls: dict[asyncio.Task[None], Call] = {}
        self._sizes: dict[asyncio.Task[None], int] = {}  # of the requests, in bytes
        self._below_limit: asyncio.Future[None] | None = None
        self.size = 0  # bytes of the requests that are being answered
        self._was_large = False
        self._by_id: dict[messages.RequestId, Call] = {}
        self._tasks: set[asyncio.Task[None]] = set()  # of notifications

    @property
    def count(self) -> int:
        """How many requests are being answered."""
        return len(self._calls)

    def check_room(self, size: int) -> None:
        """Refuse a request of `size` bytes if too many bytes of requests are being answered.

        Raises:
            RpcError: they are.
        """
        if self.size and self.size + size > MAX_BYTES:
            raise RpcError(
                INVALID_REQUEST,
                f"invalid request: {self.size} bytes of requests are being answered, and there may "
                f"be {MAX_BYTES} with this one; wait for their answers, or cancel them",
            )

    async def drain(self) -> None:
        """Wait until at most half of the allowed number of requests are being answered."""
        while self.count > MAX_CALLS // 2:
            if self._below_limit is None or self._below_limit.done():
                self._below_limit = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._below_limit)

    def in_use(self, request_id: messages.RequestId) -> bool:
        """Return whether a request with this id is being answered; null never is."""
        return request_id is not None and request_id in self._by_id

    def start(
        self,
        message: messages.Request,
        method: Method[Any, Any],
        handler: Handler,
        params: object,
        *,
        answer: Answer,
        map_error: MapError | None,
        size: int,
    ) -> None:
        """Start the handler of a request of `size` bytes; handlers start in the order of the calls.

        The request's id is in use until its response has its place.
        """
        call = Call(message.id, message.method)
        work = self._run_handler(
            call, message.raw_id, method, handler, params, answer=answer, map_error=map_error
        )
        task = asyncio.get_running_loop().create_task(work)
        call.attach(task)
        self._calls[task] = call
        self._sizes[task] = size
        self.size += size
        self._was_large = self._was_large or self.size >= _LARGE_BYTES
        if message.id is not None:
            self._by_id[message.id] = call
        task.add_done_callback(self._on_done)

    def start_notification(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the handler of a notification; nothing waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)

    def cancel(self, request_id: int | str) -> None:
        """Cancel a request because the peer asks; do nothing if it is not being answered."""
        call = self._by_id.get(request_id)
        if call is not None:
            # After the handler's first step, so that it can say how it wants to be cancelled.
            asyncio.get_running_loop().call_soon(call.cancel)

    def is_current_task(self) -> bool:
        """Return whether the caller runs in a handler."""
        return asyncio.current_task() in self._running()

    async def wait_idle(self, timeout: float) -> None:
        """Wait at most `timeout` seconds until nothing runs; every task runs at least one step."""
        await asyncio.sleep(0)  # a task that is cancelled before its first step answers nothing
        if timeout and self._running():
            await asyncio.wait(self._running(), timeout=timeout)

    def cancel_all(self) -> None:
        """Ask all handlers to end."""
        for call in list(self._calls.values()):
            call.cancel()
        for task in self._tasks:
            task.cancel()

    async def end(self) -> None:
        """Cancel the handlers that did not end when they were asked to."""
        for task in self._running():
            task.cancel()
        if self._running():
            await asyncio.wait(self._running(), timeout=_END_TIMEOUT)

    def _running(self) -> set[asyncio.Task[None]]:
        return self._calls.keys() | self._tasks

    async def _run_handler(
        self,
        call: Call,
        raw_id: bytes,
        method: Method[Any, Any],
        handler: Handler,
        params: object,
        *,
        answer: Answer,
        map_error: MapError | None,
    ) -> None:
        then: Callable[[], None] | None = None
        try:
            if method.result is None:
                outcome = cast("NotificationHandler", handler)(params)
                if isinstance(outcome, Awaitable):
                    await outcome
                result = None
            else:
                result = await cast("RequestHandler", handler)(params, call)
            if isinstance(result, Reply):
                then = result.then
                result = result.result
            # Every result of the protocol is an object: nothing to say is an empty one.
            line = messages.result(raw_id, {} if result is None else result)
        except asyncio.CancelledError:
            line = messages.failure(raw_id, RpcError(REQUEST_CANCELLED, "request cancelled"))
        except Exception as error:  # noqa: BLE001 - the border: every failure becomes an answer
            line = messages.failure(raw_id, error_for(error, call.method, map_error))
        answer(line, partial(self._release, call, then))

    def _release(self, call: Call, then: Callable[[], None] | None = None) -> None:
        """Free the id of `call`, whose response is queued, and call `then`."""
        if self._by_id.get(call.id) is call:
            del self._by_id[call.id]
        if then is not None:
            then()

    def _on_done(self, task: asyncio.Task[None]) -> None:
        was_large = self._was_large
        call = self._calls.pop(task, None)
        self.size -= self._sizes.pop(task, 0)
        self._was_large = self._was_large and self.size > _SMALL_BYTES
        if was_large and not self._was_large and self._on_memory_freed is not None:
            self._on_memory_freed()
        if (
            self._below_limit is not None
            and not self._below_limit.done()
            and self.count <= MAX_CALLS // 2
        ):
            self._below_limit.set_result(None)
        self._tasks.discard(task)
        cancelled = task.cancelled()
        error = None if cancelled else task.exception()
        if error is not None:
            log("a handler failed", error)
        if call is not None and (cancelled or error is not None):
            self._release(call)  # it never came to its answer


def error_for(error: Exception, method: str, map_error: MapError | None) -> RpcError:
    """Return the error response for a handler of `method` that failed with `error`."""
    if isinstance(error, RpcError):
        return error
    if map_error is not None:
        try:
            mapped = map_error(error)
        except Exception as second:  # noqa: BLE001 - a mistake there must not cost the answer
            log("an error could not be mapped", second)
            mapped = None
        if mapped is not None:
            return mapped
    reference = os.urandom(4).hex()
    log(f"{method} failed, reference {reference}", error)
    return RpcError(INTERNAL_ERROR, f"internal error, see the log for reference {reference}")
