"""Where the repositories of a folder keep their data, and which of it names programs to run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_NESTED_DEPTH = 2  # folders below a root in which further repositories are looked for
_MOST_FOLDERS = 2_000  # that are looked at
_MOST_REPOSITORIES = 100
_NO_REPOSITORIES = frozenset({"node_modules", ".venv", "venv", "target", "__pycache__"})
_WORKTREE_CONFIG = re.compile(rb"^\s*worktreeconfig\b", re.IGNORECASE | re.MULTILINE)
_WORKTREE = re.compile(r"^\s*worktree\s*=\s*\"?([^\"\n]+?)\"?\s*$", re.IGNORECASE | re.MULTILINE)


def git_mounts(root: str) -> tuple[list[str], list[str]]:
    """Return what git must be able to write outside of a folder, and what stays as it is.

    The latter are settings and hooks, which name programs that git runs for whoever uses it next.
    An empty folder of hooks is made where there is none, so that none can be put there.

    Args:
        root: the folder, resolved.
    """
    outside: list[str] = []
    fixed: list[str] = []
    if _is_repository(root):
        fixed += _fixed_parts(root)
    for folder in _folders_with_git(root):
        git = f"{folder}/.git"
        if os.path.isdir(git):  # noqa: PTH112 - many of them, and pathlib is slow
            fixed += _fixed_parts(os.path.realpath(git))
        elif os.path.isfile(git):  # noqa: PTH113 - so
            fixed.append(git)
            for data in _linked_data(folder):
                outside.append(data)
                fixed += _fixed_parts(data)
    return outside, fixed


def _folders_with_git(root: str) -> Iterator[str]:
    """Yield the folder and those below it that have a `.git`."""
    level, looked = [root], 0
    for depth in range(_NESTED_DEPTH + 1):
        below: list[str] = []
        for folder in level:
            if os.path.lexists(f"{folder}/.git"):
                yield folder
            looked += 1
            if depth == _NESTED_DEPTH or looked > _MOST_FOLDERS:
                continue
            with suppress(OSError), os.scandir(folder) as entries:
                below += [
                    entry.path
                    for entry in entries
                    if entry.name not in _NO_REPOSITORIES
                    and entry.name != ".git"
                    and entry.is_dir(follow_symlinks=False)
                ]
        level = below


def _is_repository(folder: str) -> bool:
    return all(os.path.exists(f"{folder}/{part}") for part in ("HEAD", "objects", "refs"))  # noqa: PTH110 - as above


def _fixed_parts(data: str) -> Iterator[str]:
    """Yield the settings and hooks of a repository's data, with those of its submodules."""
    for folder in [data, *_submodules(data)]:
        config = f"{folder}/config"
        if not os.path.isfile(config):  # noqa: PTH113 - as above
            continue
        yield config
        with suppress(OSError):
            os.makedirs(f"{folder}/hooks", exist_ok=True)  # noqa: PTH103 - as above
            yield f"{folder}/hooks"
        with suppress(OSError):
            if _WORKTREE_CONFIG.search(Path(config).read_bytes()):
                for own in [folder, *_subfolders(f"{folder}/worktrees")]:
                    Path(own, "config.worktree").touch()
                    yield f"{own}/config.worktree"


def _submodules(data: str) -> list[str]:
    found: list[str] = []
    level = _subfolders(f"{data}/modules")
    while level and len(found) < _MOST_REPOSITORIES:
        folder = level.pop()
        if _is_repository(folder):
            found.append(folder)
            level += _subfolders(f"{folder}/modules")
        else:  # a submodule's name may have slashes
            level += _subfolders(folder)
    return found


def _subfolders(folder: str) -> list[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    return []


def _linked_data(folder: str) -> Iterator[str]:
    """Yield the data that a `.git` file names, if they name the folder in turn.

    A file that a program wrote by itself could name any folder: what is named must be a work tree's
    or a submodule's, which only git makes there.
    """
    with suppress(OSError, UnicodeDecodeError, ValueError):
        named = Path(folder, ".git").read_text("utf-8")
        if not named.startswith("gitdir:"):
            return
        data = Path(os.path.realpath(Path(folder, named.removeprefix("gitdir:").strip())))
        back = data / "gitdir"
        if back.is_file():
            origin = os.path.realpath(Path(data, (data / "commondir").read_text("utf-8").strip()))
            names_folder = os.path.realpath(Path(data, back.read_text("utf-8").strip()))
            is_in_origin = str(data.parent) == f"{origin}/worktrees" and _is_repository(origin)
            if names_folder == f"{folder}/.git" and is_in_origin:
                yield origin
            return
        worktree = _WORKTREE.search((data / "config").read_text("utf-8"))
        if worktree is not None and os.path.realpath(Path(data, worktree[1])) == folder:
            yield str(data)
