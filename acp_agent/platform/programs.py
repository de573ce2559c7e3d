"""Find and start programs so that no project can substitute its own.

`initialize` is answered with this module loaded, so it imports nothing heavy.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def own_process(*arguments: str) -> list[str]:
    """Return the command that starts this program, whatever folder it starts in.

    Python would look for modules in the folder that it starts in (-P leaves that out), and in those
    that PYTHONPATH names, where an empty entry means the same folder (-E leaves them out).
    """
    options = ["-P"] if _is_in_python_path() else ["-E", "-P"]
    return [sys.executable, *options, "-m", "acp_agent", *arguments]


def _is_in_python_path() -> bool:
    """Whether Python finds this package by PYTHONPATH, which must not be left out then."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120 - pathlib is heavy
    return root in os.environ.get("PYTHONPATH", "").split(os.pathsep)


def find_program(name: str, search_path: str | None = None) -> str | None:
    """Return the path of a program, or None where there is none.

    Args:
        name: the program's name.
        search_path: the PATH variable to look in; None takes the process's own.
    """
    import shutil  # noqa: PLC0415 - heavy

    if search_path is None:
        search_path = os.environ.get("PATH", os.defpath)
    return shutil.which(name, path=absolute_folders(search_path))


def absolute_folders(search_path: str) -> str:
    """Return a PATH variable without what depends on the current folder.

    An empty entry is the current folder, too (POSIX.1-2017, XBD 8.3).
    """
    return os.pathsep.join(filter(os.path.isabs, search_path.split(os.pathsep)))


def outside_folders(search_path: str, roots: Iterable[str | os.PathLike[str]]) -> str:
    """Return a PATH variable without relative folders and those in `roots`, symlinks followed.

    The root of the file system, which has every program, counts as none of `roots`.
    """
    inside = [os.path.join(os.path.realpath(root), "") for root in roots]  # noqa: PTH118 - pathlib is heavy
    inside = [root for root in inside if root != "/"]
    return os.pathsep.join(
        folder
        for folder in absolute_folders(search_path).split(os.pathsep)
        if not os.path.join(os.path.realpath(folder), "").startswith(tuple(inside))  # noqa: PTH118 - so
    )


def find_git(*roots: str | os.PathLike[str]) -> str | None:
    """Return the path of git, or None; one that lies in `roots` is the project's and not used."""
    return find_program("git", outside_folders(os.environ.get("PATH", os.defpath), roots))
