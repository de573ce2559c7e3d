"""Find and start programs in a way that a project cannot substitute its own.

This module is loaded before the response to `initialize`, so it imports nothing heavy.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def self_command(*arguments: str) -> list[str]:
    """Return the command that starts this program, safely in any working folder.

    By default Python searches modules in its working folder (-P prevents that), and in the folders
    of PYTHONPATH, in which an empty entry means the working folder (-E prevents that).
    """
    options = ["-P"] if _is_in_python_path() else ["-E", "-P"]
    return [sys.executable, *options, "-m", "acp_agent", *arguments]


def _is_in_python_path() -> bool:
    """Return whether Python finds this package through PYTHONPATH, so that -E must not be used."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120 - pathlib is heavy
    return root in os.environ.get("PYTHONPATH", "").split(os.pathsep)


def find_program(name: str, search_path: str | None = None) -> str | None:
    """Return the path of a program, or None if it is not found.

    Args:
        search_path: the PATH variable to search; None for that of this process.
    """
    import shutil  # noqa: PLC0415 - heavy

    if search_path is None:
        search_path = os.environ.get("PATH", os.defpath)
    return shutil.which(name, path=absolute_folders(search_path))


def absolute_folders(search_path: str) -> str:
    """Return a PATH variable without relative entries.

    An empty entry also means the working folder (POSIX.1-2017, XBD 8.3).
    """
    return os.pathsep.join(filter(os.path.isabs, search_path.split(os.pathsep)))


def outside_folders(search_path: str, roots: Iterable[str | os.PathLike[str]]) -> str:
    """Return a PATH variable without relative entries and without folders in `roots`.

    Symlinks are resolved. A root `/` is ignored, since it contains every program.
    """
    inside = [os.path.join(os.path.realpath(root), "") for root in roots]  # noqa: PTH118 - pathlib is heavy
    inside = [root for root in inside if root != "/"]
    return os.pathsep.join(
        folder
        for folder in absolute_folders(search_path).split(os.pathsep)
        if not os.path.join(os.path.realpath(folder), "").startswith(tuple(inside))  # noqa: PTH118 - so
    )


def find_git(*roots: str | os.PathLike[str]) -> str | None:
    """Return the path of git, or None; a git in `roots` belongs to the project and is not used."""
    return find_program("git", outside_folders(os.environ.get("PATH", os.defpath), roots))
