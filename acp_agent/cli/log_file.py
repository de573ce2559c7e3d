"""The log file: readable only by its owner, rotating, shared by the user's processes."""

from __future__ import annotations

import os
from io import TextIOWrapper
from logging import LogRecord
from logging.handlers import RotatingFileHandler
from pathlib import Path

from acp_agent.platform.posix import make_private_folder


def open_log_file(path: Path, limit: int, old_files: int) -> SharedRotatingFile:
    """Open the log for appending.

    Args:
        path: the file; its folder is made too.
        limit: size in bytes at which it is rotated to `path.1`, and so on.

    Raises:
        OSError: it cannot be written.
    """
    make_private_folder(path.parent)
    return SharedRotatingFile(path, maxBytes=limit, backupCount=old_files, encoding="utf-8")


class SharedRotatingFile(RotatingFileHandler):
    """Reopens the file after another process rotated it."""

    errors = "backslashreplace"  # a lone surrogate in a message

    def close(self) -> None:
        """Do nothing.

        `logging.shutdown` closes the newest handler first. It would close this file before the
        handler that still has records for it.
        """

    def finish(self) -> None:
        """Close the file."""
        super().close()

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(descriptor, "a", encoding=self.encoding, errors="backslashreplace")

    def shouldRollover(self, record: LogRecord) -> int:  # noqa: N802 - logging's own name
        """Return whether the file is full, after checking that it still has its name."""
        if self.stream is not None and not self._is_current(self.stream):
            self.stream.close()
            self.stream = self._open()
        return super().shouldRollover(record)

    def _is_current(self, stream: TextIOWrapper) -> bool:
        try:
            return os.path.samestat(
                os.stat(self.baseFilename),  # noqa: PTH116 - logging keeps it as text
                os.fstat(stream.fileno()),
            )
        except OSError:
            return False
