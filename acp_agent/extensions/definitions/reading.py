"""Finds the files of one place, and reads them without following what leads elsewhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Literal

from acp_agent.errors import ConfigError
from acp_agent.platform.open_files import reason

FILE_NAME = "SKILL.md"
LARGEST = 100_000  # bytes of a file
MOST = 500  # files of one place

Kind = Literal["skills", "agents"]


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


def read_file(path: Path, within: Path | None) -> str:
    """The text of a file.

    Args:
        path: of the file.
        within: the folder that it must lie in when every link is followed, itself without links;
            None: anywhere.

    Raises:
        ConfigError: unreadable, no ordinary file, too large, not UTF-8, or elsewhere.
    """
    try:
        real = os.path.realpath(path)
        if within is not None and not Path(real).is_relative_to(within):
            raise ConfigError("it is a link that leads out of the project; put a file there")
        # Without waiting: a pipe would wait for somebody to write into it.
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ConfigError("it is no ordinary file; put a Markdown file there")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                raw = file.read(LARGEST + 1)
        finally:
            os.close(descriptor)
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
