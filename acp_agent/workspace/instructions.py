"""AGENTS.md: what the user and the project want every agent to know (https://agents.md)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

from msgspec import Struct

from acp_agent.extensions.definitions.locations import find_repository
from acp_agent.platform.trusted_files import (
    RefusedFileError,
    read_own,
    read_trusted,
    trusted_owners,
)

FILE_NAME = "AGENTS.md"
FILE_LIMIT = 32_000  # bytes of one file

_log = logging.getLogger(__name__)


class Instructions(Struct, frozen=True):
    """The text of the files that hold, and the files that are left out, each with the reason."""

    text: str
    refused: tuple[tuple[Path, str], ...] = ()


def read_instructions(cwd: Path, user_file: Path) -> Instructions:
    """The instructions that hold in `cwd`, from the most general to the most specific.

    The user's own come first, then those of the folders from the outermost parent down to `cwd`.
    Each is headed by its path. A project's file may be a link within the project; above it, a file
    counts where it lies in that folder. A file that cannot be read is left out and logged.
    """
    top = find_repository(cwd) or cwd
    inside, above = trusted_owners(top, cwd), trusted_owners()
    found: list[str] = []
    refused: list[tuple[Path, str]] = []

    def take(path: Path, read: Callable[[], bytes]) -> None:
        try:
            text = _text(path, read())
        except RefusedFileError as error:
            _log.warning("%s is not used: %s", path, error.why)
            refused.append((path, error.why))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            _log.warning("%s cannot be read: %s", path, error.strerror or error)
        else:
            found.extend([f"## {path}\n\n{text}"] if text else [])

    take(user_file, partial(read_own, user_file, limit=FILE_LIMIT + 1))
    for folder in reversed((cwd, *cwd.parents)):
        path = folder / FILE_NAME
        within, owners = (top, inside) if folder.is_relative_to(top) else (folder, above)
        take(path, partial(read_trusted, path, within, owners, limit=FILE_LIMIT + 1))
    return Instructions("\n\n".join(found), tuple(refused))


def _text(path: Path, raw: bytes) -> str:
    if len(raw) > FILE_LIMIT:
        _log.warning("%s is longer than %d bytes; the rest is left out", path, FILE_LIMIT)
    return raw[:FILE_LIMIT].decode("utf-8", "replace").strip()
