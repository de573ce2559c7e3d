"""Read the files of skills and agents: those of a project only where its user or root own them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from msgspec import Struct

from acp_agent.content import printable_line
from acp_agent.errors import ConfigError
from acp_agent.extensions.definitions.agent_files import agent_files
from acp_agent.extensions.definitions.skill_files import is_visible, skill_files
from acp_agent.platform.descriptor_limit import describe_os_error
from acp_agent.platform.trusted_files import (
    NOT_REGULAR,
    RefusedFileError,
    read_own,
    read_trusted,
)
from acp_agent.trust.items import Trusts

_NAMED = 8  # fields that are not used


class Problem(Struct, frozen=True):
    """What is wrong with a file, or a folder of them, and what to do, in one line of English.

    What is not `left_out` is found all the same, without the part that is wrong.
    """

    path: Path
    why: str
    left_out: bool = True


def problem(path: Path, error: ConfigError, *, left_out: bool = True) -> Problem:
    """Return what is wrong with a file."""
    return Problem(path, printable_line(str(error)), left_out)


def unused(names: list[str]) -> ConfigError:
    """Return the error for fields that have no meaning here."""
    shown = ", ".join(printable_line(name)[:40] for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    if len(names) == 1:
        return ConfigError(f"the field {shown} is not used here; take it out, or leave it")
    return ConfigError(f"the fields {shown}{more} are not used here; take them out, or leave them")


LARGEST = 100_000  # bytes of a file
MOST = 500  # files of one place

_NO_FILE = "it is no ordinary file; put a Markdown file there"

Kind = Literal["skills", "agents"]


class Project(Struct, frozen=True):
    """A project that may have definitions.

    Attributes:
        folder: the folder with its files.
        owners: the users whose files in there count.
        top: the folder that the user trusts, as `folder_name` has it.
        trusts: whether the user trusts a file.
    """

    folder: Path
    owners: frozenset[int]
    top: str
    trusts: Trusts


def files_in(place: Path, kind: Kind) -> list[Path]:
    """Return the definition files of a folder, sorted; hidden and other files are skipped.

    Raises:
        ConfigError: the folder cannot be read, or has too many files.
    """
    try:
        with os.scandir(place) as entries:
            names = sorted(entry.name for entry in entries if is_visible(entry.name))
        found = skill_files(place, names) if kind == "skills" else agent_files(place, names)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ConfigError(
            f"cannot be read ({describe_os_error(error)}); check who may read it"
        ) from None
    if len(found) > MOST:
        raise ConfigError(f"there are more than {MOST} files of its kind; take some out")
    return found


def read_file(path: Path, project: Project | None) -> bytes:
    """Read a definition file.

    Args:
        path: of the file.
        project: the project that it is a part of; None: it is the user's own, wherever it lies.

    Raises:
        ConfigError: unreadable, no ordinary file, too large, elsewhere, or another's.
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
        raise ConfigError(
            f"cannot be read ({describe_os_error(error)}); check who may read it"
        ) from None
    if len(raw) > LARGEST:
        raise ConfigError("it is larger than 100 kB; put parts of it into files beside it")
    return raw


def decode(raw: bytes) -> str:
    """Return the text of a definition file.

    Raises:
        ConfigError: it is not UTF-8.
    """
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        lines = raw[: error.start].split(b"\n")
        raise ConfigError(f"line {len(lines)} is not UTF-8 text; save the file as UTF-8") from None
