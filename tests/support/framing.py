"""Framing and JSON-RPC: what a single line must be, whatever it says."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]


class ViolationError(AssertionError):
    """The agent wrote something that it should not have written."""


class ClientFaultError(AssertionError):
    """The test's own editor sent something that no conforming client would have sent."""


def framed(line: bytes) -> Json | list[Json]:
    """The message of a line, its end included; a list where it holds a batch of them."""
    shown = repr(line[:2000])
    require(line.endswith(b"\n"), f"T1: the line has no end: {shown}")
    body = line[:-1]
    require(body == body.strip(), f"T1: space around the message: {shown}")
    try:
        message = json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, UnicodeDecodeError) as error:
        raise ViolationError(f"T1: not a line of JSON ({error}): {shown}") from None
    if isinstance(message, list):
        require(bool(message), f"T3: a batch of nothing: {shown}")
    for one in message if isinstance(message, list) else [message]:
        require(isinstance(one, dict), f"T1: not one object: {shown}")
        require(one.get("jsonrpc") == "2.0", f"T2: jsonrpc is not 2.0: {shown}")
    assert isinstance(message, dict | list)
    return message


def require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ViolationError(otherwise)


def key(value: object) -> str:
    return json.dumps(value, sort_keys=True)  # tells 1 from "1" and null


def is_id(value: object) -> bool:
    return value is None or isinstance(value, str) or (type(value) is int)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def check_error(error: Any) -> None:
    require(isinstance(error, dict), "T2: error is not an object")
    extra = set(error) - {"code", "message", "data"}
    require(not extra, f"T2: other members in error: {extra}")
    require(type(error.get("code")) is int, "T2: the code is not an integer")
    text = error.get("message")
    require(isinstance(text, str) and bool(text.strip()), "T4: an error without a message")
    require(len(str(text).splitlines()) == 1, f"T4: the message is more than one line: {text!r}")
    for trace in ("Traceback", 'File "'):
        require(trace not in json.dumps(error), "T4: a traceback in an error")
