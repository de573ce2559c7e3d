"""Amazon's event stream, written: what Bedrock makes of the Messages API's events."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Mapping


def message(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message of the encoding `application/vnd.amazon.eventstream`."""
    written = b"".join(
        bytes([len(name)])
        + name.encode()
        + b"\x07"
        + struct.pack(">H", len(value))
        + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack(">II", 16 + len(written) + len(payload), len(written))
    begun = prelude + struct.pack(">I", zlib.crc32(prelude)) + written + payload
    return begun + struct.pack(">I", zlib.crc32(begun))


def chunk(data: bytes) -> bytes:
    """An event of the model's answer, padded as Bedrock does."""
    payload = {"bytes": base64.b64encode(data).decode(), "p": "abcdefgh"}
    headers = {
        ":event-type": "chunk",
        ":content-type": "application/json",
        ":message-type": "event",
    }
    return message(headers, json.dumps(payload).encode())


def exception(kind: str, text: str) -> bytes:
    """An exception that the service reports in mid-stream."""
    headers = {
        ":exception-type": kind,
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return message(headers, json.dumps({"message": text}).encode())


def from_sse(events: bytes) -> bytes:
    """The same events, each in a message of its own."""
    datas = (
        b"\n".join(line[6:] for line in event.split(b"\n") if line.startswith(b"data: "))
        for event in events.split(b"\n\n")
    )
    return b"".join(chunk(data) for data in datas if data)
