"""Find the git folders of a work tree and their parts (gitrepository-layout(5))."""

from __future__ import annotations

import glob
import os
import stat
from contextlib import suppress

from acp_agent.sandbox.git_index import index_gitlinks

_MOST_REPOSITORIES = 100
_SMALL = 100_000  # bytes


def is_repository(folder: str) -> bool:
    """Return whether git accepts a folder as a git folder."""
    return all(os.path.exists(f"{folder}/{part}") for part in ("HEAD", "objects", "refs"))  # noqa: PTH110 - many of them, and pathlib is slow


def named_data(folder: str) -> str | None:
    """Return the resolved git folder that a work tree's `.git` is or names, or None."""
    git = f"{folder}/.git"
    if os.path.isdir(git):  # noqa: PTH112 - as above
        return os.path.realpath(git)
    text = os.fsdecode(read_small(git))
    if not text.startswith("gitdir:"):
        return None
    with suppress(OSError, ValueError):
        return os.path.realpath(os.path.join(folder, text.removeprefix("gitdir:").strip()))  # noqa: PTH118 - as above
    return None


def common_data(data: str) -> str:
    """Return the git folder with the settings and hooks for a git folder; it may be the same."""
    named = os.fsdecode(read_small(f"{data}/commondir")).strip()
    with suppress(OSError, ValueError):
        return os.path.realpath(os.path.join(data, named)) if named else data  # noqa: PTH118 - as above
    return data


def submodules(data: str) -> list[str]:
    """Return the git folders of a repository's submodules."""
    found: list[str] = []
    level = subfolders(f"{data}/modules")
    while level and len(found) < _MOST_REPOSITORIES:
        folder = level.pop()
        if is_repository(folder):
            found.append(folder)
            level += subfolders(f"{folder}/modules")
        else:  # a submodule's name may have slashes
            level += subfolders(folder)
    return found


def subfolders(folder: str) -> list[str]:
    """Return the subfolders of a folder; none if it cannot be listed."""
    with suppress(OSError), os.scandir(folder) as entries:
        return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    return []


def gitlinks(folder: str) -> list[str]:
    """Return the folders of the submodules in a work tree's index, which git enters."""
    data = named_data(folder)
    found: list[str] = []
    if data is not None:
        shared = glob.glob(f"{glob.escape(data)}/sharedindex.*")  # noqa: PTH207 - strings
        for index in [f"{data}/index", *shared]:
            with suppress(OSError):
                found += [f"{folder}/{path}" for path in index_gitlinks(index)]
    return found[:_MOST_REPOSITORIES]


def read_small(path: str) -> bytes:
    """Return the content of a small regular file, or b"" if there is none.

    Does not block at a named pipe.
    """
    with suppress(OSError, ValueError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return os.read(descriptor, _SMALL)
        finally:
            os.close(descriptor)
    return b""
