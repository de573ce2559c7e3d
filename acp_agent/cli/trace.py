"""`--trace FILE`: record protocol messages without secrets, for bug reports.

Each line is a JSON object: `t` is the time in seconds since 1970; `dir` is `in` for a message from
the editor and `out` for one to it; `msg` is the message, or `raw` the text of a line that is not
JSON.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from acp_agent.cli.logs import Background
from acp_agent.errors import ConfigError
from acp_agent.platform.posix import make_private

FILE_LIMIT = 64 * 1024 * 1024
WAITING_LIMIT = 64 * 1024 * 1024
CLOSE_SECONDS = 2.0
Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
HIDDEN = "[secret]"
STRING_LIMIT = 20_000  # characters of one string; images are useless in a bug report
# Names of fields with secrets, without case, `-` and `_`.
_SECRET_NAMES = frozenset(
    {
        "apikey", "xapikey", "token", "accesstoken", "refreshtoken", "idtoken", "authtoken",
        "bearertoken", "sessiontoken", "authorization", "proxyauthorization", "password", "passwd",
        "passphrase", "secret", "clientsecret", "secretkey", "privatekey", "cookie", "setcookie",
        "credential", "credentials",
    }
)  # fmt: skip
# Fields with variables or HTTP headers, as lists of {name, value} or as objects. All values are
# hidden, because users choose the names of variables with keys.
_PAIRS = frozenset({"env", "headers", "httpheaders", "environment"})


class _TracedMessage(Struct, frozen=True, gc=False):
    at: float
    direction: Literal["in", "out"]
    line: bytes


class Trace:
    """Records messages in a file that only its owner can read. Calls return immediately.

    Appends up to FILE_LIMIT bytes; the last line then says that the rest is missing.
    """

    def __init__(
        self, path: Path, scrub: Callable[[str], str], *, limit_bytes: int = FILE_LIMIT
    ) -> None:
        """Open the file.

        Args:
            path: the file; created if missing.
            scrub: removes known secrets from a text; called in the trace's own thread.

        Raises:
            ConfigError: the file cannot be written.
        """
        if path.exists() and not path.is_file():
            # A pipe would block the start until it is read; a device is shared.
            raise ConfigError(f"cannot write the trace {path}: it is not an ordinary file")
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            self._file = os.fdopen(descriptor, "ab")
            make_private(path)
            self._remaining_bytes = limit_bytes - self._file.tell()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ConfigError(f"cannot write the trace {path} ({reason})") from None
        self._scrub = scrub
        self._full = False
        self._queue: Background[_TracedMessage] = Background(
            "trace", self._write, self._report_dropped, limit_bytes=WAITING_LIMIT
        )

    def __call__(self, direction: Literal["in", "out"], line: bytes) -> None:
        """Record a line from the editor (`in`) or to it (`out`)."""
        self._queue.put(_TracedMessage(time.time(), direction, line), len(line))

    def close(self) -> None:
        """Write queued lines for at most CLOSE_SECONDS, and close the file."""
        self._queue.close(CLOSE_SECONDS)
        self._file.close()

    def _write(self, messages: list[_TracedMessage]) -> None:
        for record in messages:
            self._write_record(
                {"t": round(record.at, 6), "dir": record.direction, **self._content(record)}
            )
        self._flush()

    def _content(self, record: _TracedMessage) -> dict[str, Json]:
        try:
            message = msgspec.json.decode(record.line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {"raw": redact(record.line.decode("utf-8", "replace").rstrip(), self._scrub)}
        return {"msg": redact(message, self._scrub)}

    def _report_dropped(self, count: int) -> None:
        self._write_record(
            {"t": round(time.time(), 6), "note": f"{count} lines left out: the disk is slow"}
        )
        self._flush()

    def _write_record(self, record: dict[str, Json]) -> None:
        if self._full:
            return
        line = json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        if len(line) > self._remaining_bytes:
            self._full = True
            line = b'{"note":"the trace is full; what follows is left out"}\n'
        self._remaining_bytes -= len(line)
        try:
            self._file.write(line)
        except (OSError, ValueError):
            self._full = True  # the disk is full, or the file was closed at shutdown

    def _flush(self) -> None:
        try:
            self._file.flush()
        except (OSError, ValueError):
            self._full = True


def redact(value: Json, scrub: Callable[[str], str]) -> Json:
    """Return a copy of `value` with the fields hidden whose names mark them as secret.

    All other texts are passed through `scrub`, and very long ones are cut.
    """
    if isinstance(value, str):
        return _shorten(value, scrub)
    if isinstance(value, list):
        return [redact(item, scrub) for item in value]
    if isinstance(value, dict):
        return {key: _field(key, item, scrub) for key, item in value.items()}
    return value


def _field(key: str, value: Json, scrub: Callable[[str], str]) -> Json:
    name = key.lower().replace("-", "").replace("_", "")
    if name in _SECRET_NAMES:
        return _hide(value)
    if name in _PAIRS:
        if isinstance(value, dict):
            return {inner: _hide(item) for inner, item in value.items()}
        if isinstance(value, list):
            return [_pair(item, scrub) for item in value]
    return redact(value, scrub)


def _pair(item: Json, scrub: Callable[[str], str]) -> Json:
    if isinstance(item, dict) and "value" in item:
        return {**item, "value": _hide(item["value"])}
    return redact(item, scrub)


def _hide(value: Json) -> Json:
    """Return `value` with every text replaced, in the same shape."""
    if isinstance(value, str):
        return HIDDEN if value else ""
    if isinstance(value, list):
        return [_hide(item) for item in value]
    if isinstance(value, dict):
        return {key: _hide(item) for key, item in value.items()}
    return value if value is None or isinstance(value, bool) else HIDDEN


def _shorten(text: str, scrub: Callable[[str], str]) -> str:
    if len(text) <= STRING_LIMIT:
        return scrub(text)
    # Scrub a little more than is kept, so that no half of a secret remains at the cut.
    scrubbed = scrub(text[: STRING_LIMIT + 1_000])[:STRING_LIMIT]
    return f"{scrubbed}... ({len(text) - STRING_LIMIT} more characters)"
