"""Find the git folders of a work tree and their parts (gitrepository-layout(5))."""

from __future__ import annotations

import glob
import os
import stat
from contextlib import suppress

from acp_agent.sandbox.git_index import index_gitlinks

_MAX_REPOSITORIES = 100
_MAX_SIZE = 100_000  # bytes


def is_git_dir(folder: str) -> bool:
    """Return whether git accepts a folder as a git folder.

    Its HEAD may be a link to a branch that does not exist; objects and branches may be in the
    folder that `commondir` names.
    """
    if not os.path.lexists(f"{folder}/HEAD"):
        return False
    if os.path.lexists(f"{folder}/commondir"):
        return True
    return all(os.path.exists(f"{folder}/{name}") for name in ("objects", "refs"))


def is_complete_git_dir(folder: str) -> bool:
    """Return whether git accepts a folder as a git folder, with a `commondir` that is written."""
    with suppress(OSError):
        if os.lstat(f"{folder}/commondir").st_size == 0:  # git refuses an empty one
            return False
    return is_git_dir(folder)


def find_git_dir(folder: str) -> str | None:
    """Return the resolved git folder that a work tree's `.git` is or names, or None."""
    dot_git = f"{folder}/.git"
    if os.path.isdir(dot_git):
        return os.path.realpath(dot_git)
    text = os.fsdecode(read_small_file(dot_git))
    if not text.startswith("gitdir:"):
        return None
    with suppress(OSError, ValueError):
        return os.path.realpath(os.path.join(folder, text.removeprefix("gitdir:").strip()))  # noqa: PTH118 - as above
    return None


def find_common_dir(git_dir: str) -> str:
    """Return the git folder with the settings and hooks for a git folder; it may be the same."""
    text = os.fsdecode(read_small_file(f"{git_dir}/commondir")).strip()
    with suppress(OSError, ValueError):
        return os.path.realpath(os.path.join(git_dir, text)) if text else git_dir  # noqa: PTH118 - as above
    return git_dir


def submodule_git_dirs(git_dir: str) -> list[str]:
    """Return the git folders of a repository's submodules."""
    git_dirs: list[str] = []
    pending = subfolders(f"{git_dir}/modules")
    while pending and len(git_dirs) < _MAX_REPOSITORIES:
        folder = pending.pop()
        if is_git_dir(folder):
            git_dirs.append(folder)
            pending += subfolders(f"{folder}/modules")
        else:  # a submodule's name may have slashes
            pending += subfolders(folder)
    return git_dirs


def subfolders(folder: str) -> list[str]:
    """Return the subfolders of a folder; none if it cannot be listed."""
    with suppress(OSError), os.scandir(folder) as entries:
        return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    return []


def submodule_folders(folder: str) -> list[str]:
    """Return the folders of the submodules in a work tree's index, which git enters."""
    git_dir = find_git_dir(folder)
    folders: list[str] = []
    if git_dir is not None:
        shared = glob.glob(f"{glob.escape(git_dir)}/sharedindex.*")  # noqa: PTH207 - strings
        for index in [f"{git_dir}/index", *shared]:
            with suppress(OSError):
                folders += [f"{folder}/{path}" for path in index_gitlinks(index)]
    return folders[:_MAX_REPOSITORIES]


def read_small_file(path: str) -> bytes:
    """Return the content of a small regular file, or b"" if there is none.

    Does not block at a named pipe.
    """
    with suppress(OSError, ValueError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return os.read(descriptor, _MAX_SIZE)
        finally:
            os.close(descriptor)
    return b""
