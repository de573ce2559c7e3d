"""`--trace FILE`: what went over the wire, for bug reports, without secrets.

Each line is a JSON object: `t`, seconds since 1970 with fractions; `dir`, `in` from the editor or
`out` to it; and `msg`, the message, or `raw`, the text of a line that is no JSON.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from acp_agent.cli.background import Background
from acp_agent.cli.redact import Json, redact
from acp_agent.errors import ConfigError
from acp_agent.platform.posix import own_only

FILE_LIMIT = 64 * 1024 * 1024
WAITING_LIMIT = 64 * 1024 * 1024
CLOSE_SECONDS = 2.0


class _Seen(Struct, frozen=True, gc=False):
    at: float
    direction: Literal["in", "out"]
    line: bytes


class Trace:
    """Records wire lines in a file that only its owner may read. Calling it returns at once.

    The file is appended to, up to FILE_LIMIT bytes; a last line then says that there was more.
    """

    def __init__(
        self, path: Path, scrub: Callable[[str], str], *, limit_bytes: int = FILE_LIMIT
    ) -> None:
        """Open the file.

        Args:
            path: the file; it is made where it is missing.
            scrub: takes known secrets out of a text; called in the trace's own thread.
            limit_bytes: how large the file may grow.

        Raises:
            ConfigError: the file cannot be written.
        """
        if path.exists() and not path.is_file():
            # A pipe would make the start wait for its reader; a device is everybody's.
            raise ConfigError(f"cannot write the trace {path}: it is not an ordinary file")
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            self._file = os.fdopen(descriptor, "ab")
            own_only(path)
            self._room = limit_bytes - self._file.tell()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ConfigError(f"cannot write the trace {path} ({reason})") from None
        self._scrub = scrub
        self._full = False
        self._queue: Background[_Seen] = Background(
            "trace", self._write, self._tell_dropped, limit_bytes=WAITING_LIMIT
        )

    def __call__(self, direction: Literal["in", "out"], line: bytes) -> None:
        """Record a line that came from the editor (`in`) or went to it (`out`)."""
        self._queue.put(_Seen(time.time(), direction, line), len(line))

    def close(self) -> None:
        """Write what waits, for at most CLOSE_SECONDS, and close the file."""
        self._queue.close(CLOSE_SECONDS)
        self._file.close()

    def _write(self, seen: list[_Seen]) -> None:
        for record in seen:
            self._put({"t": round(record.at, 6), "dir": record.direction, **self._content(record)})
        self._flush()

    def _content(self, record: _Seen) -> dict[str, Json]:
        try:
            message = msgspec.json.decode(record.line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {"raw": redact(record.line.decode("utf-8", "replace").rstrip(), self._scrub)}
        return {"msg": redact(message, self._scrub)}

    def _tell_dropped(self, count: int) -> None:
        self._put({"t": round(time.time(), 6), "note": f"{count} lines left out: the disk is slow"})
        self._flush()

    def _put(self, record: dict[str, Json]) -> None:
        if self._full:
            return
        line = json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        if len(line) > self._room:
            self._full = True
            line = b'{"note":"the trace is full; what follows is left out"}\n'
        self._room -= len(line)
        try:
            self._file.write(line)
        except (OSError, ValueError):
            self._full = True  # the disk is full, or the file was closed at the end of its wait

    def _flush(self) -> None:
        try:
            self._file.flush()
        except (OSError, ValueError):
            self._full = True
