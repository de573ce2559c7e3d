"""AGENTS.md: what the user and the project want every agent to know (https://agents.md)."""

from __future__ import annotations

import logging
from pathlib import Path

FILE_NAME = "AGENTS.md"
FILE_LIMIT = 32_000  # bytes of one file

_log = logging.getLogger(__name__)


def read_instructions(cwd: Path, user_file: Path) -> str:
    """The instructions that hold in `cwd`, from the most general to the most specific.

    The user's own come first, then those of the folders from the outermost parent down to `cwd`.
    Each is headed by its path. A file that cannot be read is left out and logged.
    """
    found = []
    for path in (user_file, *(folder / FILE_NAME for folder in reversed((cwd, *cwd.parents)))):
        text = _read(path)
        if text:
            found.append(f"## {path}\n\n{text}")
    return "\n\n".join(found)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(FILE_LIMIT + 1)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        _log.warning("%s cannot be read: %s", path, error.strerror or error)
        return ""
    text = raw[:FILE_LIMIT].decode("utf-8", "replace").strip()
    if len(raw) > FILE_LIMIT:
        _log.warning("%s is longer than %d bytes; the rest is left out", path, FILE_LIMIT)
    return text
