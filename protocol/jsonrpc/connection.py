"""A JSON-RPC 2.0 connection: both sides ask, answer and notify at the same time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from inspect import isawaitable
from typing import Any, TypeVar, cast

from msgspec import Raw

from protocol.codec import typed_json
from protocol.jsonrpc import messages
from protocol.jsonrpc.call import Call, Handler, NotificationHandler, Reply, RequestHandler
from protocol.jsonrpc.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    REQUEST_CANCELLED,
    RpcError,
)
from protocol.jsonrpc.method import Method
from protocol.jsonrpc.outbox import Merge, Outbox, Trace
from protocol.jsonrpc.requests import CANCEL_REQUEST, Requests
from protocol.transports.base import Oversize, Transport

P = TypeVar("P")
R = TypeVar("R")

_LONGEST_NAME = 100  # characters of an unknown method's name that an error repeats


class Connection:
    """One side of a connection; `run` serves it.

    Requests of the peer start in the order in which they arrive, each in a task of its own, so that
    a slow one holds up nothing. Notifications whose handler is a plain function are handled while
    reading, in order with everything else; for a coroutine function a task is started.

    A request whose id is that of one still being answered is refused (-32600), because its answer
    could not be told from the other's; null ids are exempt, they name nothing. A notification
    method that comes as a request is handled and answered with `{}`; a request method that comes
    without an id is ignored.

    Args:
        transport: What carries the messages.
        methods: What this side answers, by name.
        handlers: How, by name; a method without one counts as unknown.
        map_error: Turns an exception of a handler into an error response; None for one that it
            does not know, which becomes an internal error that tells nothing but a reference to
            the log.
        admit: Called with a method's name when it arrives; raises `RpcError` to refuse it. A
            refused notification is ignored. The handler of what arrived before may not have begun
            by then, so what one message permits to the next ones is to be noted here.
        merge: Joins two notifications of one method while the first waits for a slow reader.
        trace: Sees every line: as it came in, and as it goes out.
        linger: Seconds that running handlers get to answer by themselves after the peer closed
            its side.
        grace: Seconds that cancelled handlers get to end before `run` returns.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        methods: Mapping[str, Method[Any, Any]],
        handlers: Mapping[str, Handler],
        map_error: Callable[[Exception], RpcError | None] | None = None,
        admit: Callable[[str], None] | None = None,
        merge: Merge | None = None,
        trace: Trace | None = None,
        linger: float = 0.25,
        grace: float = 2.0,
    ) -> None:
        self._transport = transport
        self._methods = methods
        self._handlers = handlers
        self._map_error = map_error
        self._admit = admit
        self._trace = trace
        self._linger = linger
        self._grace = grace
        self._outbox = Outbox(transport, merge, trace)
        self._requests = Requests(self._outbox)
        self._calls: dict[asyncio.Task[None], Call] = {}
        self._open_ids: dict[messages.RequestId, Call] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = asyncio.Event()
        self._closing = False
        self._running = False

    @property
    def closed(self) -> bool:
        """Whether the connection is over: nothing is read any more, nothing sent arrives."""
        return self._closed.is_set() or self._transport.gone

    @property
    def queued(self) -> int:
        """Bytes that wait for the peer to read."""
        return self._outbox.queued

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
                    self._outbox.send(messages.failure(messages.NULL_ID, _too_long(message.limit)))
                else:
                    self._receive_safely(message)
        finally:
            try:
                await self._wind_up()
            finally:
                self._closed.set()

    async def request(self, method: Method[P, R], params: P, *, timeout: float | None = None) -> R:
        """Ask the peer and wait for its answer.

        When the wait ends early, by the time limit or because the waiting task is cancelled, the
        peer is told so by `$/cancel_request`, and a late answer is dropped.

        Args:
            method: What to ask.
            params: With which parameters.
            timeout: Seconds to wait at most; None: as long as the connection lives.

        Raises:
            RpcError: the peer answered with an error, or with a malformed result.
            TimeoutError: no answer in time.
            ConnectionError: the connection ended first.
        """
        return await self._requests.send(method, params, timeout)

    def notify(self, method: Method[P, Any], params: P) -> None:
        """Send a notification after everything sent before. Never waits; see `drain`."""
        self._outbox.notify(method.name, params)

    async def drain(self) -> None:
        """Wait while the peer is far behind in reading; at once when it is not, or is gone."""
        await self._outbox.drain()

    async def close(self) -> None:
        """End the connection from this side; returns when `run` is done."""
        self._closing = True
        self._transport.close()
        if not self._running:
            self._closed.set()
        # A handler cannot wait for its own end.
        if asyncio.current_task() not in self._calls.keys() | self._tasks:
            await self._closed.wait()

    def _receive_safely(self, line: bytes) -> None:
        try:
            self._receive(line)
        except Exception as error:  # noqa: BLE001 - one message must not end the connection
            _log("a message could not be handled", error)

    def _receive(self, line: bytes) -> None:
        if self._trace is not None:
            self._trace("in", line)
        message = messages.parse(line)
        if isinstance(message, messages.Request):
            self._on_request(message, line)
        elif isinstance(message, messages.Notification):
            self._on_notification(message, line)
        elif isinstance(message, messages.Response):
            self._requests.answer(message)
        else:
            self._outbox.send(messages.failure(message.raw_id, message.error))

    def _on_request(self, message: messages.Request, line: bytes) -> None:
        try:
            if self._admit is not None:
                self._admit(message.method)
            method, handler = self._lookup(message)
            params = _decode(message.params, method)
        except typed_json.MalformedJsonError as error:
            self._receive_mended(line, error)
        except RpcError as error:
            self._outbox.send(messages.failure(message.raw_id, error))
        else:
            call = Call(message.id, message.method)
            work = self._answer(call, message.raw_id, handler, method, params)
            task = asyncio.get_running_loop().create_task(work)
            call.attach(task)
            self._calls[task] = call
            if message.id is not None:
                self._open_ids[message.id] = call
            task.add_done_callback(self._finished)

    def _lookup(self, message: messages.Request) -> tuple[Method[Any, Any], Handler]:
        handler = self._handlers.get(message.method)
        method = self._methods.get(message.method)
        if handler is None or method is None:
            name = message.method[:_LONGEST_NAME]
            raise RpcError(METHOD_NOT_FOUND, f"method not found: {name}")
        if message.id is not None and message.id in self._open_ids:
            raise RpcError(INVALID_REQUEST, "invalid request: this id is still in use")
        return method, handler

    def _receive_mended(self, line: bytes, error: Exception) -> None:
        """Try a line again whose parameters msgspec refused for a lone surrogate."""
        try:
            mended = messages.replaced_surrogates(line)
        except typed_json.MalformedJsonError:
            invalid = messages.parse_error(error)
            self._outbox.send(messages.failure(invalid.raw_id, invalid.error))
        else:
            self._receive(mended)

    def _finished(self, task: asyncio.Task[None]) -> None:
        call = self._calls.pop(task, None)
        if call is not None and self._open_ids.get(call.id) is call:
            del self._open_ids[call.id]
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log("a handler failed", error)

    async def _answer(
        self,
        call: Call,
        raw_id: bytes,
        handler: Handler,
        method: Method[Any, Any],
        params: object,
    ) -> None:
        then: Callable[[], None] | None = None
        try:
            if method.is_notification:
                result: object = None
                outcome = cast("NotificationHandler", handler)(params)
                if isawaitable(outcome):
                    await outcome
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
            line = messages.failure(raw_id, self._error_for(error, call.method))
        # The id is free before its answer is out: the peer may use it again at once.
        if self._open_ids.get(call.id) is call:
            del self._open_ids[call.id]
        self._outbox.send(line)
        if then is not None:
            then()

    def _error_for(self, error: Exception, method: str) -> RpcError:
        if isinstance(error, RpcError):
            return error
        if self._map_error is not None:
            try:
                mapped = self._map_error(error)
            except Exception as second:  # noqa: BLE001 - a mistake there must not cost the answer
                _log("an error could not be mapped", second)
                mapped = None
            if mapped is not None:
                return mapped
        reference = os.urandom(4).hex()
        _log(f"{method} failed, reference {reference}", error)
        return RpcError(INTERNAL_ERROR, f"internal error, see the log for reference {reference}")

    def _on_notification(self, message: messages.Notification, line: bytes) -> None:
        if message.method == CANCEL_REQUEST:
            self._cancel(message.params)
            return
        method = self._methods.get(message.method)
        handler = self._handlers.get(message.method)
        if method is None or handler is None or not method.is_notification:
            return
        try:
            if self._admit is not None:
                self._admit(message.method)
            params = _decode(message.params, method)
        except typed_json.MalformedJsonError as error:
            self._receive_mended(line, error)
            return
        except RpcError as error:
            _log(f"ignored a notification: {error.message}", None)
            return
        try:
            outcome = cast("NotificationHandler", handler)(params)
        except Exception as error:  # noqa: BLE001 - a notification has no answer to carry it
            _log(f"{message.method} failed", error)
            return
        if isawaitable(outcome):
            waiting = cast("Coroutine[Any, Any, None]", outcome)
            task = asyncio.get_running_loop().create_task(waiting)
            self._tasks.add(task)
            task.add_done_callback(self._finished)

    def _cancel(self, params: Raw) -> None:
        try:
            value = typed_json.decode_any(params)
        except typed_json.MalformedJsonError:
            return
        key = value.get("requestId") if isinstance(value, dict) else None
        if not isinstance(key, int | str) or isinstance(key, bool):
            return
        call = self._open_ids.get(key)
        if call is not None:
            # After the handler's first step, so that it can say how it wants to be cancelled.
            asyncio.get_running_loop().call_soon(call.cancel)

    async def _wind_up(self) -> None:
        self._transport.close()
        self._requests.end()
        running = self._calls.keys() | self._tasks
        if running and not self._closing and not self._transport.gone:
            await asyncio.wait(running, timeout=self._linger)
        for call in list(self._calls.values()):
            call.cancel()
        for task in self._tasks:
            task.cancel()
        if running := self._calls.keys() | self._tasks:
            await asyncio.wait(running, timeout=self._grace)
        for task in self._calls.keys() | self._tasks:
            task.cancel()
        if running := self._calls.keys() | self._tasks:
            await asyncio.wait(running, timeout=1.0)
        await self._outbox.flush(1.0)


def _decode(params: Raw, method: Method[P, Any]) -> P:
    data = bytes(params)
    if data == messages.NULL_ID:
        data = b"{}"
    try:
        return typed_json.decode(data, method.params)
    except typed_json.InvalidValueError as error:
        reason = f"invalid params: {error}" if error.field else f"params: {error}"
        raise RpcError(INVALID_PARAMS, reason, {"field": error.field}) from None


def _too_long(limit: int) -> RpcError:
    return RpcError(
        INVALID_REQUEST, f"invalid request: a line is longer than the limit of {limit} bytes"
    )


def _log(text: str, error: BaseException | None) -> None:
    import logging  # noqa: PLC0415 - not at start

    logging.getLogger("protocol.jsonrpc").log(
        logging.INFO if error is None else logging.ERROR, "%s", text, exc_info=error
    )
