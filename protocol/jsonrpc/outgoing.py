"""Sends lines in order, in bounded memory, and requests, which wait for their responses."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar

from msgspec import Raw

from protocol.codec import typed_json
from protocol.jsonrpc import messages
from protocol.jsonrpc.messages import INTERNAL_ERROR, InvalidResultError, RpcError
from protocol.jsonrpc.methods import Method
from protocol.transports.base import Transport

P = TypeVar("P")
R = TypeVar("R")

CANCEL_REQUEST = "$/cancel_request"
# The notification that cancels a request, and its member with the request's id.
Cancellation = tuple[str, str]
ACP_CANCELLATION: Cancellation = (CANCEL_REQUEST, "requestId")
LSP_CANCELLATION: Cancellation = ("$/cancelRequest", "id")  # Language Server Protocol 3.17

HIGH_WATER: Final = 1024 * 1024  # bytes queued from which `drain` waits
PAUSE: Final = 0.008  # seconds after a piece of a text in which what follows it is collected
_BATCH: Final = 64 * 1024  # bytes given to a transport at once; what a pipe holds

# (method, parameters of the notification that waits, parameters of the next one) -> the parameters
# of one notification that says both, or None where they must stay two. What waits may be long:
# merging should stop at some size, or its cost grows with the square of what waits.
Merge = Callable[[str, Any, Any], object | None]
Trace = Callable[[Literal["in", "out"], bytes], None]


class Outbox:
    """Passes lines to a transport: at once while the peer reads, in batches while it reads slowly.

    A notification that still waits may be merged with the next one. One that could be merged with
    the one sent last waits for `PAUSE` seconds after that, so that a fast stream becomes few
    notifications; whatever else is sent meanwhile takes it along.
    """

    def __init__(self, transport: Transport, trace: Trace | None) -> None:
        self._transport = transport
        self._merge: Merge | None = None
        self._trace = trace
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._last: tuple[str, object] | None = None  # the last line, where it is a notification
        self._sent: tuple[str, object] | None = None  # likewise the line sent last
        self._sent_at = 0.0  # in the loop's time
        self._pause: asyncio.TimerHandle | None = None
        self._drained: asyncio.Future[None] | None = None
        self._ending = False
        self._only_responses = False
        transport.on_idle = self._pump

    @property
    def queued(self) -> int:
        """Bytes that the system has not taken yet."""
        return self._size + self._transport.queued

    def merge_with(self, merge: Merge | None) -> None:
        """Merge with `merge` what is queued from now on, and nothing that is queued already."""
        self._merge = merge
        self._last = self._sent = None

    def send(self, line: bytes) -> None:
        """Queue a line that is never merged."""
        self._queue(line, None)

    def answer(self, line: bytes, after: Callable[[], None] | None = None) -> None:
        """Queue a response, then call `after`."""
        self.send(line)
        if after is not None:
            after()

    def notify(self, method: str, params: object) -> None:
        """Queue a notification."""
        if self._only_responses:
            return
        merged = self._merge_params(self._last, method, params)
        if merged is not None:
            self._size -= len(self._lines.pop())
            self._append(messages.notification(method, merged), (method, merged))
            return
        line = messages.notification(method, params)
        if self._lines or self._merge_params(self._sent, method, params) is None:
            self._queue(line, (method, params))
            return
        delay = self._sent_at + PAUSE - asyncio.get_running_loop().time()
        if delay <= 0:
            self._queue(line, (method, params))
            return
        self._append(line, (method, params))
        self._pause = asyncio.get_running_loop().call_later(delay, self._pump)

    async def drain(self) -> None:
        """Wait while more than `HIGH_WATER` bytes are queued and the peer is there to read them."""
        while not self._may_send():
            if not self._lines and not self._transport.waiting:
                await asyncio.sleep(0)  # lets the transport write what this pass of the loop made
                continue
            if self._drained is None or self._drained.done():
                self._drained = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._drained)

    def end_waiting(self) -> None:
        """Make `drain` return at once: a peer that does not read must not delay the end."""
        self._ending = True
        self._wake()

    def end_notifying(self) -> None:
        """Send no more notifications; responses are still sent."""
        self._only_responses = True

    async def flush(self, timeout: float) -> bool:
        """Send everything, waiting at most `timeout` seconds; return whether that worked."""
        while self._lines:
            self._give_batch(_BATCH)
        return await self._transport.flush(timeout)

    def _merge_params(
        self, previous: tuple[str, object] | None, method: str, params: object
    ) -> object | None:
        if self._merge is None or previous is None or previous[0] != method:
            return None
        return self._merge(method, previous[1], params)

    def _queue(self, line: bytes, notification: tuple[str, object] | None) -> None:
        """Send a line now, after the collected ones, or when the peer reads again."""
        if self._lines or self._transport.waiting:
            self._append(line, notification)
            if self._pause is not None:
                self._pump()
        else:
            self._record_sent(notification)
            self._write(line)

    def _record_sent(self, notification: tuple[str, object] | None) -> None:
        self._sent = notification
        if notification is not None:
            self._sent_at = asyncio.get_running_loop().time()

    def _append(self, line: bytes, last: tuple[str, object] | None) -> None:
        if self._transport.disconnected:
            return
        self._lines.append(line)
        self._size += len(line)
        self._last = last

    def _write(self, line: bytes) -> None:
        if self._trace is not None:
            self._trace("out", line)
        self._transport.write(line)

    def _pump(self) -> None:
        """Give the transport the next batch; called again until nothing waits."""
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        if self._transport.disconnected:
            self._lines.clear()
            self._size = 0
            self._last = None
        elif self._lines and not self._transport.waiting:
            self._give_batch(_BATCH)
            if self._lines:
                asyncio.get_running_loop().call_soon(self._pump)
        if self._may_send():
            self._wake()

    def _wake(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _may_send(self) -> bool:
        return self.queued <= HIGH_WATER or self._transport.disconnected or self._ending

    def _give_batch(self, size: int) -> None:
        batch: list[bytes] = []
        batch_size = 0
        while self._lines and batch_size < size:
            line = self._lines.popleft()
            if self._trace is not None:
                self._trace("out", line)
            batch_size += len(line)
            batch.append(line)
        if not self._lines:
            self._record_sent(self._last)
            self._last = None
        self._size -= batch_size
        self._transport.write(b"".join(batch))


class OutgoingRequests:
    """Sends requests and returns their results."""

    def __init__(self, outbox: Outbox, cancellation: Cancellation = ACP_CANCELLATION) -> None:
        self._outbox = outbox
        self._cancellation = cancellation
        self._ids = itertools.count(1)
        self._waiting: dict[int, tuple[asyncio.Future[Any], Method[Any, Any]]] = {}
        # Given up, and not answered yet: what takes the result all the same.
        self._late: dict[int, tuple[Callable[[Any], None], Method[Any, Any]]] = {}
        self._ended = False

    async def send(
        self,
        method: Method[P, R],
        params: P,
        timeout: float | None,
        on_late_result: Callable[[R], None] | None = None,
    ) -> R:
        """Send a request and wait for its result; see `Connection.request`."""
        if method.result is None:
            raise ValueError(f"{method.name} is a notification and has no answer")
        if self._ended:
            raise _connection_lost(method)
        request_id = next(self._ids)
        line = messages.request(request_id, method.name, params)
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = (future, method)
        self._outbox.send(line)
        try:
            async with asyncio.timeout(timeout):
                return await future
        except (TimeoutError, asyncio.CancelledError):
            if not future.done() or future.cancelled():
                method_name, member = self._cancellation
                self._outbox.notify(method_name, {member: request_id})
                if on_late_result is not None:
                    self._late[request_id] = (on_late_result, method)
            elif on_late_result is not None and future.exception() is None:
                on_late_result(future.result())  # it arrived in the moment of the cancellation
            raise
        finally:
            self._waiting.pop(request_id, None)

    def answer(self, response: messages.Response) -> None:
        """Pass a response to the task that waits for it; drop it if none does."""
        request_id = _parse_id(response.id)
        entry = self._waiting.get(request_id)
        if entry is None or entry[0].done():
            self._answer_late(request_id, response)
            return
        future, method = entry
        try:
            if response.error is not None:
                future.set_exception(_decode_error(response.error))
            else:
                future.set_result(_decode_result(response.result, method))
        except RpcError as error:
            future.set_exception(error)

    def fail(self, raw_id: messages.RequestId, reason: str) -> None:
        """Fail a request whose response cannot be read."""
        request_id = _parse_id(raw_id)
        self._late.pop(request_id, None)
        future, method = self._waiting.get(request_id, (None, None))
        if future is not None and method is not None and not future.done():
            future.set_exception(InvalidResultError(method.name, reason))

    def _answer_late(self, request_id: int, response: messages.Response) -> None:
        callback, method = self._late.pop(request_id, (None, None))
        if callback is None or method is None or response.error is not None:
            return
        try:
            result = _decode_result(response.result, method)
        except RpcError:
            return
        callback(result)

    def end(self) -> None:
        """Fail all requests, later ones too: the peer is gone."""
        self._ended = True
        self._late.clear()
        for future, method in self._waiting.values():
            if not future.done():
                future.set_exception(_connection_lost(method))


def _parse_id(key: messages.RequestId) -> int:
    """Return the number of the request; some clients send it back as a string."""
    if isinstance(key, str):
        return int(key) if key.isascii() and key.isdecimal() and len(key) < 19 else 0
    return key if isinstance(key, int) else 0


def _connection_lost(method: Method[Any, Any]) -> ConnectionError:
    return ConnectionError(f"the connection ended before {method.name} was answered")


def _decode_result(raw: Raw, method: Method[Any, R]) -> R:
    assert method.result is not None
    data = bytes(raw)
    # Clients answer null where an empty object is meant.
    data = b"{}" if data == messages.NULL_ID else data
    try:
        return typed_json.decode(data, method.result)
    except (typed_json.InvalidValueError, typed_json.MalformedJsonError) as error:
        raise InvalidResultError(method.name, str(error)) from None


def _decode_error(raw: Raw) -> RpcError:
    data = bytes(raw)
    try:
        error = typed_json.decode(data, messages.Error)
    except (typed_json.InvalidValueError, typed_json.MalformedJsonError):
        text = data[:200].decode(errors="replace")
        return RpcError(INTERNAL_ERROR, f"the peer failed: {text}")
    return RpcError(error.code, error.message, error.data)
