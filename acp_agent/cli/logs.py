"""Log to a rotating file of the user, and warnings to stderr, both without secrets.

Only the program's own loggers use the configured level. Other packages log from level warning,
because an SDK at debug level would log whole requests.
"""

from __future__ import annotations

import copy
import logging
import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from logging import LogRecord
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from acp_agent.config.paths import Paths
from acp_agent.config.types import Config
from acp_agent.server.trace_context import TRACE_MARK

if TYPE_CHECKING:
    from acp_agent.cli.log_file import SharedRotatingFile


FILE_BYTES = 2_000_000
OLD_FILES = 2
WAITING_BYTES = 4_000_000
CLOSE_SECONDS = 1.0
LINE_BYTES = 4_096  # a line on stderr; a writable pipe takes this much at once (POSIX PIPE_BUF)

GetSecrets = Callable[[], Sequence[str]]

# Escapes control characters, which could forge lines or drive the reader's terminal.
_VISIBLE = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code != 9}
_VISIBLE |= {10: "\\n", 13: "\\r"}

T = TypeVar("T")


def set_up_logging(paths: Paths, config: Config, secrets: GetSecrets) -> None:
    """Send log records to the file in `paths`, and warnings and errors also to stderr.

    Never raises: if the file cannot be written, that is reported once on stderr.
    `logging.shutdown`, which Python calls at exit, writes pending records within a second.

    Args:
        secrets: returns the currently known secrets; called in a thread.
    """
    logging.raiseExceptions = False  # a failing log must not print tracebacks
    root = logging.getLogger()
    for handler in [*root.handlers]:
        if isinstance(handler, LogFile | StderrLines):
            root.removeHandler(handler)
            handler.close()
    root.setLevel(logging.WARNING)
    for package in ("acp_agent", "protocol"):
        logging.getLogger(package).setLevel(config.log.level.upper())
    root.addHandler(LogFile(paths.log_file, secrets))
    root.addHandler(StderrLines(secrets))
    logging.captureWarnings(True)


class LogFile(logging.Handler):
    """Writes records to a rotating file in a thread; only the owner can access file and folder.

    The thread also imports the modules for rotation, which would slow down the start.
    """

    def __init__(self, path: Path, secrets: GetSecrets) -> None:
        super().__init__()
        self._path = path
        self._secrets = secrets
        self._file: SharedRotatingFile | None = None
        self._broken = False
        self._queue: Background[LogRecord] = Background(
            "log", self._write, self._report_dropped, limit_bytes=WAITING_BYTES
        )

    def emit(self, record: LogRecord) -> None:
        """Queue a record; its text is formatted now, because its arguments may change."""
        try:
            formatted = copy.copy(record)
            formatted.msg, formatted.args = record.getMessage() + TRACE_MARK.get(), None
            if record.exc_info:
                formatted.exc_text = logging.Formatter().formatException(record.exc_info)
                formatted.exc_info = None
            self._queue.put(formatted, len(formatted.msg) + len(formatted.exc_text or "") + 200)
        except Exception:  # noqa: BLE001 - an argument's own __str__ can fail; logging goes on
            self.handleError(record)

    def flush(self) -> None:
        """Wait, for at most a second, until all records are in the file."""
        self._queue.flush(CLOSE_SECONDS)

    def close(self) -> None:
        """Write queued records and close the file."""
        self._queue.close(CLOSE_SECONDS)
        if self._file is not None:
            self._file.finish()
        super().close()

    def _write(self, records: list[LogRecord]) -> None:
        if self._broken:
            return
        try:
            if self._file is None:
                from acp_agent.cli.log_file import open_log_file  # noqa: PLC0415 - see the class

                self._file = open_log_file(self._path, FILE_BYTES, OLD_FILES)
                self._file.setFormatter(_FileLines(self._secrets))
            for record in records:
                self._file.emit(record)
        except OSError as error:
            self._broken = True
            reason = error.strerror or type(error).__name__
            write_stderr(f"acp-agent: warning: cannot write the log {self._path} ({reason})")

    def _report_dropped(self, count: int) -> None:
        text = f"{count} log records were left out: the disk was too slow"
        self._write([LogRecord(__name__, logging.WARNING, __file__, 0, text, None, None)])


class StderrLines(logging.Handler):
    """Writes each warning or error to stderr as one line, without blocking."""

    def __init__(self, secrets: GetSecrets) -> None:
        super().__init__(logging.WARNING)
        self._secrets = secrets

    def emit(self, record: LogRecord) -> None:
        """Write a record's text; its traceback is for the file."""
        try:
            text = _scrub(record.getMessage(), self._secrets)
        except Exception:  # noqa: BLE001 - an argument's own __str__ can fail; logging goes on
            self.handleError(record)
            return
        write_stderr(f"acp-agent: {record.levelname.lower()}: {text}")


def write_stderr(text: str) -> None:
    """Write `text` as one line to stderr, or drop it if nobody reads stderr.

    An editor may leave the pipe unread until it is full; a blocking write would never return.
    """
    line = text.translate(_VISIBLE).encode("utf-8", "replace")[: LINE_BYTES - 1] + b"\n"
    try:
        descriptor = sys.stderr.fileno()
        _, writable, _ = select.select([], [descriptor], [], 0)
        if writable:
            os.write(descriptor, line)
    except (OSError, ValueError, AttributeError):
        return  # closed or missing


class _FileLines(logging.Formatter):
    """One line per record, with the time in UTC; a traceback follows on indented lines."""

    def __init__(self, secrets: GetSecrets) -> None:
        super().__init__("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s")
        self._secrets = secrets

    def formatTime(self, record: LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802 - logging's own signature
        from datetime import UTC, datetime  # noqa: PLC0415 - in the log's thread, not at the start

        return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")

    def format(self, record: LogRecord) -> str:
        record.msg = record.getMessage().translate(_VISIBLE)
        text = _scrub(super().format(record), self._secrets)
        return text.replace("\n", "\n    ")


def _scrub(text: str, secrets: GetSecrets) -> str:
    from acp_agent.workspace.scrub import scrub  # noqa: PLC0415 - its patterns take time to build

    return scrub(text, secrets())


class Background(Generic[T]):
    """Passes items in order to `consume` in a thread that the first item starts.

    Args:
        consume: processes the queued items; must not raise.
        dropped: called in the thread with the number of items dropped because the queue was full.
    """

    def __init__(
        self,
        name: str,
        consume: Callable[[list[T]], None],
        dropped: Callable[[int], None],
        *,
        limit_bytes: int,
    ) -> None:
        self._name = name
        self._consume = consume
        self._dropped = dropped
        self._limit = limit_bytes
        self._queued: deque[tuple[T, int]] = deque()
        self._bytes = 0
        self._lost = 0
        self._closed = False
        self._busy = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def put(self, item: T, size: int) -> None:
        """Queue an item of about `size` bytes. Returns at once; drops it if the queue is full."""
        with self._changed:
            if self._closed:
                return
            if self._bytes + size > self._limit and self._queued:
                self._lost += 1
                return
            self._queued.append((item, size))
            self._bytes += size
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, timeout: float) -> bool:
        """Wait until the queue is written; return false after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._queued and not self._busy, max(0.0, deadline - time.monotonic())
            )

    def close(self, timeout: float) -> None:
        """Accept no more items, and write the queue for at most `timeout` seconds."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._queued or self._closed)
                if not self._queued:
                    return
                items = [item for item, _ in self._queued]
                self._queued.clear()
                self._bytes = 0
                lost, self._lost = self._lost, 0
                self._busy = True
            self._consume(items)
            if lost:
                self._dropped(lost)
