"""The binary event stream in which Amazon Bedrock sends an answer, decoded as its bytes arrive.

https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html (the encoding) and
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ResponseStream.html (what is in
it). A message is: its length and that of its headers, four bytes each, a checksum of these eight
(CRC-32), the headers, the payload, a checksum of everything before.
"""

from __future__ import annotations

import binascii
import struct
import zlib

import msgspec
from msgspec import Struct

from acp_agent.models.sse import EVENT_LIMIT, BadStreamError, EventTooLargeError

_PRELUDE = struct.Struct(">III")
_CHECKSUM = 4
_STRING = 7  # the one type of header that these streams use
# The sizes of the values of the other types of headers.
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}


class _Chunk(Struct):
    bytes: str | None = None


class _Exception(Struct):
    message: str = ""


class AwsEventStreamDecoder:
    """Turns the bytes of a stream into the data of its events; `SseDecoder` for this encoding."""

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._broken: ValueError | None = None

    def feed(self, received: bytes) -> list[bytes]:
        """Take what was read; gives the data of every event that is complete now.

        An exception that the service reports is given as the Messages API's own error event.

        Raises:
            EventTooLargeError: an event is larger than the limit.
            BadStreamError: a checksum is wrong, or a length impossible; the events before it
                were given.
        """
        self._raise_if_broken()
        self._buffer += received
        complete: list[bytes] = []
        try:
            self._take_messages(complete)
        except ValueError as error:
            self._broken = error
            if not complete:
                raise
        return complete

    def _raise_if_broken(self) -> None:
        if self._broken is not None:
            raise self._broken

    def _take_messages(self, complete: list[bytes]) -> None:
        while len(self._buffer) >= _PRELUDE.size:
            size, headers_size, checksum = _PRELUDE.unpack_from(self._buffer)
            if zlib.crc32(self._buffer[:8]) != checksum:
                raise BadStreamError("the checksum of an event's lengths is wrong")
            if size > self._limit:
                raise EventTooLargeError(f"an event of the stream is larger than {self._limit}")
            if size < _PRELUDE.size + headers_size + _CHECKSUM:
                raise BadStreamError("an event is shorter than its own headers")
            if len(self._buffer) < size:
                break
            message = bytes(self._buffer[:size])
            del self._buffer[:size]
            data = _data(message, headers_size)
            if data is not None:
                complete.append(data)

    def end(self) -> list[bytes]:
        """The stream is over. What is not whole has a checksum missing: nothing of it is given.

        Raises:
            EventTooLargeError, BadStreamError: as before.
        """
        self._raise_if_broken()
        self._buffer.clear()
        return []


def _data(message: bytes, headers_size: int) -> bytes | None:
    checked = message[:-_CHECKSUM]
    if zlib.crc32(checked) != int.from_bytes(message[-_CHECKSUM:], "big"):
        raise BadStreamError("the checksum of an event is wrong")
    begin = _PRELUDE.size + headers_size
    headers = _headers(message[_PRELUDE.size : begin])
    payload = checked[begin:]
    kind = headers.get(":message-type", "event")
    if kind == "event":
        if headers.get(":event-type") != "chunk":
            return None
        encoded = msgspec.json.decode(payload, type=_Chunk).bytes
        try:
            return None if encoded is None else binascii.a2b_base64(encoded)
        except binascii.Error:
            raise BadStreamError("the data of an event is no base64") from None
    if kind == "exception":
        name = headers.get(":exception-type", "exception")
        text = msgspec.json.decode(payload, type=_Exception).message if payload else ""
    else:
        name, text = headers.get(":error-code", "error"), headers.get(":error-message", "")
    # `throttlingException` and the like, in the words that the failures are told apart by.
    error = {"type": name, "message": text or name}
    return msgspec.json.encode({"type": "error", "error": error})


def _headers(data: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    try:
        while at < len(data):
            name_size = data[at]
            name = data[at + 1 : at + 1 + name_size].decode()
            at += 1 + name_size
            kind = data[at]
            at += 1
            if kind in _SIZES:
                at += _SIZES[kind]
                continue
            size = int.from_bytes(data[at : at + 2], "big")
            if kind == _STRING:
                found[name] = data[at + 2 : at + 2 + size].decode()
            at += 2 + size
    except (IndexError, UnicodeDecodeError):
        raise BadStreamError("the headers of an event cannot be read") from None
    return found
