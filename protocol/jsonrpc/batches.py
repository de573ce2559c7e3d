"""Batches: several messages in one array, answered together (JSON-RPC 2.0, section 6)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from protocol.jsonrpc import messages
from protocol.jsonrpc.handlers import Answer
from protocol.jsonrpc.messages import INVALID_REQUEST, RpcError, log

MAX_MESSAGES: Final = 1000  # messages that a batch may have

_entries = msgspec.json.Decoder(list[Raw])


# Handles a message: as what, as its JSON, and what takes the response.
Handle = Callable[[messages.Message, bytes, Answer], None]


def handle_batch(array: bytes, handle: Handle, send: Callable[[bytes], None]) -> None:
    """Handle the messages of a batch in their order, and send their responses together.

    A message that is none is answered without its id, as version 2 of the Agent Client Protocol
    asks.

    Args:
        array: well-formed JSON of an array.
        send: takes the line of the responses, or of the one that refuses the batch as a whole.
    """
    try:
        entries = split_entries(array)
    except RpcError as error:
        send(messages.failure(messages.NULL_ID, error))
        return
    responses = BatchAnswer(send)
    for entry in entries:
        _handle_entry(entry, handle, responses)
    responses.complete()


def _handle_entry(entry: bytes, handle: Handle, responses: BatchAnswer) -> None:
    message = messages.parse(entry)
    if isinstance(message, messages.Batch):
        message = messages.NOT_AN_OBJECT
    if isinstance(message, messages.InvalidMessage):
        message = messages.InvalidMessage(message.error)  # without the id
    silent = isinstance(message, messages.Notification | messages.Response)
    answer = _no_answer if silent else responses.expect()
    try:
        handle(message, entry, answer)
    except Exception as error:  # noqa: BLE001 - one message must not cost the others
        log("a message could not be handled", error)


def _no_answer(line: bytes, after: Callable[[], None] | None) -> None:
    """Answer nothing, as for a message that is no request."""


def split_entries(array: bytes) -> list[bytes]:
    """Return the messages of a batch, each as its JSON.

    Args:
        array: well-formed JSON of an array.

    Raises:
        RpcError: there are none, or more than `MAX_MESSAGES`; for the batch as a whole.
    """
    # An array with few commas has few entries. A line could hold millions of empty ones.
    raws = _entries.decode(array) if array.count(b",") < MAX_MESSAGES else _first_entries(array)
    entries = [bytes(raw) for raw in raws]
    if not entries:
        raise RpcError(INVALID_REQUEST, "invalid request: a batch needs at least one message")
    if len(entries) > MAX_MESSAGES:
        raise RpcError(
            INVALID_REQUEST,
            f"invalid request: a batch has at most {MAX_MESSAGES} messages, send several",
        )
    return entries


def _first_entries(array: bytes) -> list[Raw]:
    """Return the first `MAX_MESSAGES` + 1 entries, in bounded memory however long the array is."""
    values = msgspec.structs.astuple(_first_entries_decoder().decode(array))
    return [value for value in values if value is not UNSET]


@cache
def _first_entries_decoder() -> msgspec.json.Decoder[Struct]:
    # msgspec skips elements of an array beyond the fields of the structure that it is decoded to.
    fields = [(f"entry_{index}", Raw | UnsetType, UNSET) for index in range(MAX_MESSAGES + 1)]
    return msgspec.json.Decoder(msgspec.defstruct("FirstEntries", fields, array_like=True))


class BatchAnswer:
    """Collects the responses to a batch in its order, and sends them when the last one is ready.

    Args:
        send: takes the line of the array; not called for a batch without responses.
    """

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._lines: list[bytes] = []
        self._after: list[Callable[[], None]] = []
        self._missing = 1  # the responses that are not there yet, and the end of the batch

    def expect(self) -> Answer:
        """Reserve a place for a response; return a function that takes the response, once."""
        self._missing += 1
        self._lines.append(b"")
        return partial(self._fill, len(self._lines) - 1)

    def complete(self) -> None:
        """Mark the batch as complete: it has no more messages."""
        self._send_when_complete()

    def _fill(self, index: int, line: bytes, after: Callable[[], None] | None = None) -> None:
        self._lines[index] = line.removesuffix(b"\n")
        if after is not None:
            self._after.append(after)
        self._send_when_complete()

    def _send_when_complete(self) -> None:
        self._missing -= 1
        if self._missing or not self._lines:
            return
        self._send(b"[" + b",".join(self._lines) + b"]\n")
        for after in self._after:
            try:
                after()
            except Exception as error:  # noqa: BLE001 - one's mistake is not to cost the others
                log("what was to follow a response failed", error)
