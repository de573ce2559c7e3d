"""The first line of a connection, answered before anything heavy is imported.

An editor waits for `initialize`. Reading it and answering it takes nothing but `os` and `json`;
whatever is not a plain `initialize` is left, unread as it were, to the connection that follows.
"""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from acp_agent.server.negotiation import initialize_result, version_for

FIRST_LINE_LIMIT = 65_536


class Opening(NamedTuple):
    """What the first line came to.

    `unread` are the bytes that the connection has yet to handle, `params` those of the
    `initialize` that was answered (None: the connection handles it), `ended` says that the input
    is at its end.
    """

    unread: bytes
    params: dict[str, Any] | None
    ended: bool


def answer_first_line(input_fd: int, output_fd: int) -> Opening:
    """Read up to the first line's end and answer it if it is a plain `initialize`."""
    buffer = b""
    while b"\n" not in buffer and len(buffer) < FIRST_LINE_LIMIT:
        piece = _read(input_fd)
        if not piece:
            return Opening(buffer, None, ended=True)
        buffer += piece
    line, _, rest = buffer.partition(b"\n")
    params, answer = _answer(line)
    if params is None:
        return Opening(buffer, None, ended=False)
    _write(output_fd, answer)
    return Opening(rest, params, ended=False)


def _answer(line: bytes) -> tuple[dict[str, Any] | None, bytes]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None, b""
    if (
        not isinstance(message, dict)
        or message.get("jsonrpc") != "2.0"
        or message.get("method") != "initialize"
        or "result" in message
        or "error" in message
        or type(message.get("id")) not in {int, str}
    ):
        return None, b""
    params = message.get("params")
    if not isinstance(params, dict) or type(params.get("protocolVersion")) is not int:
        return None, b""
    if not 0 <= params["protocolVersion"] <= 65_535:
        return None, b""
    version = version_for(params)
    if version is None or (version == 2 and not _is_named(params.get("info"))):
        return None, b""
    result = initialize_result(params, version)
    response = {"jsonrpc": "2.0", "id": message["id"], "result": result}
    return params, json.dumps(response, separators=(",", ":")).encode() + b"\n"


def _is_named(info: object) -> bool:
    """Whether the client says who it is, as version 2 requires."""
    return (
        isinstance(info, dict)
        and isinstance(info.get("name"), str)
        and isinstance(info.get("version"), str)
    )


def _read(input_fd: int) -> bytes:
    """What comes next; empty at the end, of which a reset socket is one."""
    while True:
        try:
            return os.read(input_fd, FIRST_LINE_LIMIT)
        except BlockingIOError:  # whoever shares the open file made it non-blocking
            from protocol.transports.readiness import wait_readable  # noqa: PLC0415 - rare

            wait_readable(input_fd)
        except OSError:
            return b""


def _write(output_fd: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(output_fd, data) :]
        except BlockingIOError:  # as for reading
            from protocol.transports.readiness import wait_writable  # noqa: PLC0415 - rare

            wait_writable(output_fd)
        except OSError:
            return  # nobody listens any more; the connection notices by itself
