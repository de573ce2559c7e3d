"""The requests that this side sent and that wait for their answers."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Raw

from protocol.codec import typed_json
from protocol.jsonrpc import messages
from protocol.jsonrpc.errors import INTERNAL_ERROR, InvalidResultError, RpcError
from protocol.jsonrpc.methods import Method
from protocol.jsonrpc.outbox import Outbox

P = TypeVar("P")
R = TypeVar("R")

CANCEL_REQUEST = "$/cancel_request"
# The notification that cancels a request, and its member with the request's id.
Cancellation = tuple[str, str]
ACP_CANCELLATION: Cancellation = (CANCEL_REQUEST, "requestId")
LSP_CANCELLATION: Cancellation = ("$/cancelRequest", "id")  # Language Server Protocol 3.17


class OutgoingRequests:
    """Sends requests and hands out their answers."""

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
            raise _gone(method)
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
        """Give an answer to who waits for it; one that nobody waits for is dropped."""
        own_id = _own_id(response.id)
        entry = self._waiting.get(own_id)
        if entry is None or entry[0].done():
            self._answer_late(own_id, response)
            return
        future, method = entry
        try:
            if response.error is not None:
                future.set_exception(_error_of(response.error))
            else:
                future.set_result(_result_of(response.result, method))
        except RpcError as error:
            future.set_exception(error)

    def fail(self, answered: messages.RequestId, reason: str) -> None:
        """Fail the request whose answer came and cannot be read."""
        own_id = _own_id(answered)
        self._late.pop(own_id, None)
        future, method = self._waiting.get(own_id, (None, None))
        if future is not None and method is not None and not future.done():
            future.set_exception(InvalidResultError(method.name, reason))

    def _answer_late(self, own_id: int, response: messages.Response) -> None:
        late, method = self._late.pop(own_id, (None, None))
        if late is None or method is None or response.error is not None:
            return
        try:
            result = _result_of(response.result, method)
        except RpcError:
            return
        late(result)

    def end(self) -> None:
        """The peer is gone: every request fails, those of the future too."""
        self._ended = True
        self._late.clear()
        for future, method in self._waiting.values():
            if not future.done():
                future.set_exception(_gone(method))


def _own_id(key: messages.RequestId) -> int:
    """The number that we gave out; some clients send it back as a string."""
    if isinstance(key, str):
        return int(key) if key.isascii() and key.isdecimal() and len(key) < 19 else 0
    return key if isinstance(key, int) else 0


def _gone(method: Method[Any, Any]) -> ConnectionError:
    return ConnectionError(f"the connection ended before {method.name} was answered")


def _result_of(raw: Raw, method: Method[Any, R]) -> R:
    assert method.result is not None
    data = bytes(raw)
    # Clients answer null where an empty object is meant.
    data = b"{}" if data == messages.NULL_ID else data
    try:
        return typed_json.decode(data, method.result)
    except (typed_json.InvalidValueError, typed_json.MalformedJsonError) as error:
        raise InvalidResultError(method.name, str(error)) from None


def _error_of(raw: Raw) -> RpcError:
    data = bytes(raw)
    try:
        error = typed_json.decode(data, messages.Error)
    except (typed_json.InvalidValueError, typed_json.MalformedJsonError):
        text = data[:200].decode(errors="replace")
        return RpcError(INTERNAL_ERROR, f"the peer failed: {text}")
    return RpcError(error.code, error.message, error.data)
