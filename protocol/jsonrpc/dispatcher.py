"""Dispatches what arrives: requests to handlers, responses to the tasks that wait for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Raw, Struct

from protocol.codec import typed_json
from protocol.jsonrpc import messages
from protocol.jsonrpc.handlers import (
    Answer,
    Handler,
    IncomingRequests,
    NotificationHandler,
    Surface,
    error_for,
)
from protocol.jsonrpc.messages import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    RpcError,
    log,
)
from protocol.jsonrpc.methods import Method
from protocol.jsonrpc.outgoing import CANCEL_REQUEST, Outbox, OutgoingRequests, Trace
from protocol.transports.base import Oversize

P = TypeVar("P")
Admit = Callable[[str, Raw], None]  # see `Connection`
_MAX_NAME = 100  # characters of an unknown method's name that an error repeats


class _Cancellation(Struct):
    request_id: Raw = msgspec.field(name="requestId")


_cancellations = msgspec.json.Decoder(_Cancellation)


class Dispatcher:
    """Parses messages and dispatches each by the rules that `Connection` describes.

    Args:
        surface: What this side answers; may be set anew, in `admit`.
        outbox: Where refusals go.
        requests: Those of this side, which get the peer's answers.
        calls: The peer's requests while they are being answered.
        admit: Called before the method of a message is looked up; see `Connection`.
        trace: Sees every line that comes in.
    """

    def __init__(
        self,
        surface: Surface,
        outbox: Outbox,
        requests: OutgoingRequests,
        calls: IncomingRequests,
        *,
        admit: Admit | None,
        trace: Trace | None,
    ) -> None:
        self.surface = surface
        self._outbox = outbox
        self._answer: Answer = outbox.answer
        self._requests = requests
        self._calls = calls
        self._admit = admit
        self._trace = trace

    def receive(self, line: bytes) -> None:
        """Handle a line; never raises, since one message must not end the connection."""
        try:
            if self._trace is not None:
                self._trace("in", line)
            self._on_message(messages.parse(line), line, self._answer)
        except Exception as error:  # noqa: BLE001 - see above
            log("a message could not be handled", error)

    def refuse(self, message: Oversize) -> None:
        """Refuse a message that is too long, or fail the request that it responds to."""
        raw_id = messages.usable_id(message.raw_id)
        reason = f"a message is longer than the limit of {message.limit} bytes"
        if message.is_response:
            self._requests.fail(messages.id_value(raw_id), f"its answer cannot be read: {reason}")
            return
        refusal = RpcError(INVALID_REQUEST, f"invalid request: {reason}")
        self._outbox.send(messages.failure(raw_id, refusal))

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
        if not self.surface.batches:
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
            self._calls.check_room(len(line))
            method, handler = self._lookup(message)
            params = _decode(message.params, method)
        except typed_json.MalformedJsonError as error:
            self._receive_without_surrogates(line, error, answer)
        except RpcError as error:
            answer(messages.failure(message.raw_id, error), None)
        except Exception as error:  # noqa: BLE001 - whatever fails, a request is answered
            failure = error_for(error, message.method, self.surface.map_error)
            answer(messages.failure(message.raw_id, failure), None)
        else:
            map_error = self.surface.map_error
            self._calls.start(
                message, method, handler, params, answer=answer, map_error=map_error, size=len(line)
            )

    def _lookup(self, message: messages.Request) -> tuple[Method[Any, Any], Handler]:
        surface = self.surface
        handler = surface.handlers.get(message.method)
        method = surface.methods.get(message.method)
        if handler is None or method is None:
            name = message.method[:_MAX_NAME]
            raise RpcError(METHOD_NOT_FOUND, f"method not found: {name}")
        if method.only_notification:
            reason = f"{method.name} is a notification, send it without an id"
            raise RpcError(METHOD_NOT_FOUND, f"method not found: {reason}")
        if self._calls.in_use(message.id):
            raise RpcError(INVALID_REQUEST, "invalid request: this id is still in use")
        return method, handler

    def _receive_without_surrogates(self, line: bytes, error: Exception, answer: Answer) -> None:
        """Handle a message again after msgspec refused its parameters for a lone surrogate."""
        try:
            message, cleaned = messages.parse_without_surrogates(line)
        except typed_json.MalformedJsonError:
            invalid = messages.parse_error(error)
            answer(messages.failure(invalid.raw_id, invalid.error), None)
        else:
            self._on_message(message, cleaned, answer)

    def _on_notification(self, message: messages.Notification, line: bytes, answer: Answer) -> None:
        if message.method == CANCEL_REQUEST:
            self._cancel(message.params)
            return
        surface = self.surface
        method = surface.methods.get(message.method)
        if method is not None and method.result is not None:
            return
        try:
            if self._admit is not None:
                self._admit(message.method, message.params)
                if self.surface is not surface:
                    surface = self.surface
                    method = surface.methods.get(message.method)
            handler = surface.handlers.get(message.method)
            if method is None or handler is None or method.result is not None:
                return
            params = _decode(message.params, method)
        except typed_json.MalformedJsonError as error:
            self._receive_without_surrogates(line, error, answer)
            return
        except RpcError as error:
            log(f"ignored a notification: {error.message}")
            return
        try:
            outcome = cast("NotificationHandler", handler)(params)
        except Exception as error:  # noqa: BLE001 - a notification has no answer to carry it
            log(f"{message.method} failed", error)
            return
        if isinstance(outcome, Awaitable):
            self._calls.start_notification(cast("Coroutine[Any, Any, None]", outcome))

    def _cancel(self, params: Raw) -> None:
        try:
            key = messages.id_value(bytes(_cancellations.decode(params).request_id))
        except ValueError:  # of which msgspec's are
            return
        if key is not None:
            self._calls.cancel(key)


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
