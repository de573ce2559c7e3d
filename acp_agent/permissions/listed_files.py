"""Check the names of files that a command lists: none may lead outside or look like an option."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence

from acp_agent.permissions.paths import CommandContext
from acp_agent.permissions.shell.words import Word
from acp_agent.sandbox.git_index import index_names

_MAX_NAMES = 5_000  # more are not checked, so the user is asked
# A name that the shell and xargs do not split, and that no program reads as an option or the like.
_PLAIN_NAME = re.compile(r"(?![-@+])[\w./@+,=:%#~-]+", re.ASCII)


def known_path(word: Word, context: CommandContext, folders: Sequence[str]) -> Word | None:
    """Return a pattern that is as harmless as any of the names that `word` stands for.

    None is returned if one of the names may lead out of the project through a symlink, look like an
    option, or, unless the names are separated by NUL, be split by the shell or by xargs.
    """
    if word.origin == "below":
        start = word.text.removesuffix("…").rstrip("/") or "/"
        is_plain = all(_files_below_are_plain(start, context, folder) for folder in folders)
        return Word(start, pattern=True) if is_plain else None
    separated = word.origin == "tracked_nul"
    is_plain = all(_tracked_are_plain(folder, context, separated=separated) for folder in folders)
    return Word(".", pattern=True) if is_plain else None


def _files_below_are_plain(start: str, context: CommandContext, folder: str) -> bool:
    budget = _MAX_NAMES
    pending = [os.path.join(folder, start)]  # noqa: PTH118 - one of many
    if not context.holds(pending[0]):
        return False
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    budget -= 1
                    if budget < 0 or not _PLAIN_NAME.fullmatch(entry.name):
                        return False
                    if entry.is_symlink():
                        if not context.holds(entry.path):
                            return False
                    elif entry.is_dir():
                        pending.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return False
    return True


def _tracked_are_plain(folder: str, context: CommandContext, *, separated: bool) -> bool:
    repositories = context.repositories.used_in(os.path.realpath(folder))
    if not repositories or "GIT_INDEX_FILE" in os.environ:
        return False
    repository = repositories[0]
    try:
        names = index_names(f"{repository.git_dir}/index", _MAX_NAMES)
    except OSError:
        return False
    if names is None:
        return False
    inner = os.path.relpath(os.path.realpath(folder), repository.work_tree)
    if inner.startswith(".."):
        return False
    prefix = "" if inner == "." else f"{inner}/"
    checked_folders: dict[str, bool] = {}
    for name in names:
        if not name.startswith(prefix):
            continue
        relative = name[len(prefix) :]
        if relative[:1] in "-@+" or not (separated or _PLAIN_NAME.fullmatch(relative)):
            return False
        path = f"{repository.work_tree}/{name}"
        parent = os.path.dirname(path)  # noqa: PTH120 - one of many
        if parent not in checked_folders:
            checked_folders[parent] = os.path.realpath(parent) == parent
        try:
            if not checked_folders[parent] or stat.S_ISLNK(os.lstat(path).st_mode):
                return False
        except OSError:
            continue  # a deleted file is not read
    return True
