"""A JSON-RPC 2.0 connection: both sides ask, answer and notify at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from inspect import isawaitable
from typing import Any, TypeVar, cast

from msgspec import Raw

from protocol.codec import typed_json
from protocol.jsonrpc import messages
from protocol.jsonrpc.call import Handler, NotificationHandler
from protocol.jsonrpc.calls import Answer, Calls, error_for
from protocol.jsonrpc.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    RpcError,
)
from protocol.jsonrpc.log import log
from protocol.jsonrpc.method import Method
from protocol.jsonrpc.outbox import Outbox, Trace
from protocol.jsonrpc.requests import CANCEL_REQUEST, Requests
from protocol.jsonrpc.surface import Surface
from protocol.transports.base import Oversize, Transport

P = TypeVar("P")
R = TypeVar("R")

_LAST_STEPS = 0.1  # seconds that handlers get whose grace is used up by the farewell
_FLUSH = 1.0  # seconds that the peer gets to read what is queued at the end
_LONGEST_NAME = 100  # characters of an unknown method's name that an error repeats


class Connection:
    """One side of a connection; `run` serves it.

    Requests of the peer start in the order in which they arrive, each in a task of its own, so that
    a slow one holds up nothing. Notifications whose handler is a plain function are handled while
    reading, in order with everything else; for a coroutine function a task is started.

    A request whose id is that of one still being answered is refused (-32600), because its answer
    could not be told from the other's; null ids are exempt, they name nothing. A notification
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
            with a lone surrogate had to be mended.
        trace: Sees every line: as it came in, and as it goes out.
        linger: Seconds that running handlers get to answer by themselves after the peer closed
            its side.
        grace: Seconds that cancelled handlers get to end before `run` returns.
        farewell: Awaited when handlers were asked to end, before they are waited for: what ends by
            it can still say so. It keeps a time limit of its own, which counts as grace.
    """

    def __init__(
        self,
        transport: Transport,
        surface: Surface,
        *,
        admit: Callable[[str, Raw], None] | None = None,
        trace: Trace | None = None,
        linger: float = 0.25,
        grace: float = 2.0,
        farewell: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._transport = transport
        self._surface = surface
        self._admit = admit
        self._trace = trace
        self._linger = linger
        self._grace = grace
        self._farewell = farewell
        self._outbox = Outbox(transport, trace)
        self._outbox.merge_with(surface.merge)
        self._answer: Answer = self._outbox.answer
        self._requests = Requests(self._outbox)
        self._calls = Calls()
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

    def serve(self, surface: Surface) -> None:
        """Answer by `surface` from now on; called in `admit`, from the admitted message on.

        Handlers that run already are not touched, and their errors are mapped as before.
        """
        self._surface = surface
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
                    self._outbox.send(messages.failure(messages.NULL_ID, _too_long(message.limit)))
                else:
                    self._receive(message)
        finally:
            try:
                await self._wind_up()
            finally:
                self._closed.set()

    async def request(
        self,
        method: Method[P, R],
        params: P,
        *,
        timeout: float | None = None,
        late: Callable[[R], None] | None = None,
    ) -> R:
        """Ask the peer and wait for its answer.

        When the wait ends early, by the time limit or because the waiting task is cancelled, the
        peer is told so by `$/cancel_request`, and a late answer is dropped.

        Args:
            method: What to ask.
            params: With which parameters.
            timeout: Seconds to wait at most; None: as long as the connection lives.
            late: Gets a result that comes all the same; for what has to be given back.

        Raises:
            RpcError: the peer answered with an error, or with a malformed result.
            TimeoutError: no answer in time.
            ConnectionError: the connection ended first.
        """
        return await self._requests.send(method, params, timeout, late)

    def notify(self, method: Method[P, Any], params: P) -> None:
        """Send a notification after everything sent before. Never waits; see `drain`."""
        self._outbox.notify(method.name, params)

    def hurry(self) -> None:
        """Let `drain` wait no more: a peer that does not read must not hold up the end."""
        self._outbox.end_waiting()

    async def drain(self) -> None:
        """Wait while the peer is far behind in reading; at once when it is not, or is gone."""
        await self._outbox.drain()

    def stop(self) -> None:
        """Read nothing more, as if the peer had closed its side; `run` returns soon."""
        self._transport.close()

    async def close(self) -> None:
        """End the connection from this side; returns when `run` is done."""
        self._closing = True
        self._transport.close()
        if not self._running:
            self._closed.set()
        # A handler cannot wait for its own end.
        if not self._calls.own_current_task():
            await self._closed.wait()

    def _receive(self, line: bytes) -> None:
        try:
            if self._trace is not None:
                self._trace("in", line)
            self._on_message(messages.parse(line), line, self._answer)
        except Exception as error:  # noqa: BLE001 - one message must not end the connection
            log("a message could not be handled", error)

    def _on_message(self, message: messages.Message, line: bytes, answer: Answer) -> None:
        if isinstance(message, messages.Request):
            self._on_request(message, line, answer)
        elif isinstance(message, messages.Notification):
            self._on_notification(message, line, answer)
        elif isinstance(message, messages.Response):
            self._requests.answer(message)
        elif isinstance(message, messages.Batch):
            self._on_batch(message.array)
        else:
            answer(messages.failure(message.raw_id, message.error), None)

    def _on_batch(self, array: bytes) -> None:
        if not self._surface.batches:
            reason = "batches are not supported, send each message by itself"
            refusal = RpcError(INVALID_REQUEST, f"invalid request: {reason}")
            self._outbox.send(messages.failure(messages.NULL_ID, refusal))
            return
        from protocol.jsonrpc.batches import handle_batch  # noqa: PLC0415 - rarely used

        handle_batch(array, self._on_message, self._outbox.send)

    def _on_request(self, message: messages.Request, line: bytes, answer: Answer) -> None:
        try:
            if self._admit is not None:
                self._admit(message.method, message.params)
            method, handler = self._lookup(message)
            params = _decode(message.params, method)
        except typed_json.MalformedJsonError as error:
            self._receive_mended(line, error, answer)
        except RpcError as error:
            answer(messages.failure(message.raw_id, error), None)
        except Exception as error:  # noqa: BLE001 - whatever fails, a request is answered
            failure = error_for(error, message.method, self._surface.map_error)
            answer(messages.failure(message.raw_id, failure), None)
        else:
            map_error = self._surface.map_error
            self._calls.start(message, method, handler, params, answer=answer, map_error=map_error)

    def _lookup(self, message: messages.Request) -> tuple[Method[Any, Any], Handler]:
        surface = self._surface
        handler = surface.handlers.get(message.method)
        method = surface.methods.get(message.method)
        if handler is None or method is None:
            name = message.method[:_LONGEST_NAME]
            raise RpcError(METHOD_NOT_FOUND, f"method not found: {name}")
        if method.only_notification:
            reason = f"{method.name} is a notification, send it without an id"
            raise RpcError(METHOD_NOT_FOUND, f"method not found: {reason}")
        if self._calls.in_use(message.id):
            raise RpcError(INVALID_REQUEST, "invalid request: this id is still in use")
        return method, handler

    def _receive_mended(self, line: bytes, error: Exception, answer: Answer) -> None:
        """Try a message again whose parameters msgspec refused for a lone surrogate."""
        try:
            mended = messages.replaced_surrogates(line)
        except typed_json.MalformedJsonError:
            invalid = messages.parse_error(error)
            answer(messages.failure(invalid.raw_id, invalid.error), None)
        else:
            self._on_message(messages.parse(mended), mended, answer)

    def _on_notification(self, message: messages.Notification, line: bytes, answer: Answer) -> None:
        if message.method == CANCEL_REQUEST:
            self._cancel(message.params)
            return
        surface = self._surface
        method = surface.methods.get(message.method)
        if method is not None and method.result is not None:
            return
        try:
            if self._admit is not None:
                self._admit(message.method, message.params)
                if self._surface is not surface:
                    surface = self._surface
                    method = surface.methods.get(message.method)
            handler = surface.handlers.get(message.method)
            if method is None or handler is None or method.result is not None:
                return
            params = _decode(message.params, method)
        except typed_json.MalformedJsonError as error:
            self._receive_mended(line, error, answer)
            return
        except RpcError as error:
            log(f"ignored a notification: {error.message}")
            return
        try:
            outcome = cast("NotificationHandler", handler)(params)
        except Exception as error:  # noqa: BLE001 - a notification has no answer to carry it
            log(f"{message.method} failed", error)
            return
        if isawaitable(outcome):
            self._calls.start_notification(cast("Coroutine[Any, Any, None]", outcome))

    def _cancel(self, params: Raw) -> None:
        try:
            value = typed_json.decode_any(params)
        except typed_json.MalformedJsonError:
            return
        key = value.get("requestId") if isinstance(value, dict) else None
        if not isinstance(key, int | str) or isinstance(key, bool):
            return
        self._calls.cancel(key)

    async def _wind_up(self) -> None:
        self._transport.close()
        self.hurry()
        self._requests.end()
        loop = asyncio.get_running_loop()
        try:
            # A peer that is gone reads no answer, but what it asked for last is begun.
            await self._calls.settle(0.0 if self._closing else self._linger)
            self._calls.cancel_all()
            deadline = loop.time() + self._grace
            if self._farewell is not None:
                await self._farewell()
            await self._calls.settle(max(_LAST_STEPS, deadline - loop.time()))
        finally:
            # Whoever is cancelled for good is answered at once; nothing may come after that.
            self._outbox.end_notifying()
            await self._calls.end()
            await self._outbox.flush(_FLUSH)


def _decode(params: Raw, method: Method[P, Any]) -> P:
    data = bytes(params)
    if data == messages.NULL_ID:
        data = b"{}"
    try:
        return typed_json.decode(data, method.params)
    except typed_json.InvalidValueError as error:
        if not error.field:  # they are wrong as a whole
            raise RpcError(INVALID_PARAMS, f"invalid params: {error}") from None
        raise RpcError(INVALID_PARAMS, f"invalid params: {error}", {"field": error.field}) from None


def _too_long(limit: int) -> RpcError:
    return RpcError(
        INVALID_REQUEST, f"invalid request: a message is longer than the limit of {limit} bytes"
    )
