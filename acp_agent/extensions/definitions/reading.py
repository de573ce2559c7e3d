"""Finds the files of one place, and reads them without following what leads elsewhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from msgspec import Struct

from acp_agent.errors import ConfigError
from acp_agent.platform.open_files import reason
from acp_agent.platform.trusted_files import (
    NOT_REGULAR,
    RefusedFileError,
    read_own,
    read_trusted,
)

FILE_NAME = "SKILL.md"
LARGEST = 100_000  # bytes of a file
MOST = 500  # files of one place

_NO_FILE = "it is no ordinary file; put a Markdown file there"

Kind = Literal["skills", "agents"]


class Project(Struct, frozen=True):
    """A project's folder, and the users whose files in there count."""

    folder: Path
    owners: frozenset[int]


def files_in(place: Path, kind: Kind) -> list[Path]:
    """The files of a place by their names; what is hidden or something else is passed over.

    Raises:
        ConfigError: the folder cannot be read, or has too many files.
    """
    try:
        with os.scandir(place) as entries:
            names = sorted(entry.name for entry in entries if _shown(entry.name))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ConfigError(f"cannot be read ({_reason(error)}); check who may read it") from None
    if kind == "skills":
        found = [path for name in names if _there(path := place / name / FILE_NAME)]
    else:
        found = [place / name for name in names if name.endswith(".md") and name != "README.md"]
    if len(found) > MOST:
        raise ConfigError(f"there are more than {MOST} files of its kind; take some out")
    return found


def read_file(path: Path, project: Project | None) -> str:
    """The text of a file.

    Args:
        path: of the file.
        project: the project that it is a part of; None: it is the user's own, wherever it lies.

    Raises:
        ConfigError: unreadable, no ordinary file, too large, not UTF-8, elsewhere, or another's.
    """
    try:
        if project is None:
            raw = read_own(path, limit=LARGEST + 1)
        else:
            raw = read_trusted(path, project.folder, project.owners, limit=LARGEST + 1)
    except RefusedFileError as error:
        why = _NO_FILE if error.why == NOT_REGULAR else error.why
        raise ConfigError(why) from None
    except OSError as error:
        raise ConfigError(f"cannot be read ({_reason(error)}); check who may read it") from None
    if len(raw) > LARGEST:
        raise ConfigError("it is larger than 100 kB; put parts of it into files beside it")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        lines = raw[: error.start].split(b"\n")
        raise ConfigError(f"line {len(lines)} is not UTF-8 text; save the file as UTF-8") from None


def _shown(name: str) -> bool:
    """Whether a name is a text that may be shown, and not hidden."""
    return name.isprintable() and not name.startswith(".")


def _there(path: Path) -> bool:
    """Whether there is something, be it a link to nothing, which is told when it is read."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _reason(error: OSError) -> str:
    return reason(error)
