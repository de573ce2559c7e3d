"""The history of prompts, without secrets, in a file that only the user can read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from acp_agent.platform.posix import make_private_folder, write_private

MAX_ENTRIES = 1_000  # entries
_MAX_ENTRY_LENGTH = 10_000  # characters of an entry; longer ones are not saved
_MAX_READ_BYTES = 8_000_000  # bytes of the file that are read


class PromptHistory:
    """A file with one JSON string per line, oldest first. Several chats may write it concurrently.

    Args:
        path: the file; None saves nothing.
    """

    def __init__(self, path: Path | None, scrub: Callable[[str], str]) -> None:
        self._path = path
        self.scrub = scrub

    def load(self) -> list[str]:
        """Return the entries, oldest first; none if the file cannot be read."""
        if self._path is None:
            return []
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(size - _MAX_READ_BYTES, 0))
                lines = file.read().splitlines()
        except OSError:
            return []
        entries = [entry for entry in map(_entry, lines) if entry]
        if len(lines) > 2 * MAX_ENTRIES:
            self._shorten(entries[-MAX_ENTRIES:])
        return entries[-MAX_ENTRIES:]

    def append(self, text: str) -> None:
        """Save an entry, unless it begins with a space."""
        if self._path is None or text[:1].isspace() or len(text) > _MAX_ENTRY_LENGTH:
            return
        line = json.dumps(self.scrub(text)).encode() + b"\n"
        try:
            make_private_folder(self._path.parent)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.fchmod(descriptor, 0o600)
                os.write(descriptor, line)
            finally:
                os.close(descriptor)
        except OSError:  # the prompt is sent anyway
            self._path = None

    def _shorten(self, entries: list[str]) -> None:
        assert self._path is not None
        try:
            write_private(self._path, b"".join(json.dumps(e).encode() + b"\n" for e in entries))
        except OSError:
            return


def _entry(line: bytes) -> str:
    try:
        value = json.loads(line)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""
