"""Check the names of the files that git tracks, which a command may pass to another."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence

from acp_agent.permissions.paths import CommandContext
from acp_agent.sandbox.git_index import index_names

_MAX_NAMES = 5_000  # more are not checked, so the user is asked
_PLAIN_NAME = re.compile(r"(?!-)[\w./@+,=:-]+", re.ASCII)  # xargs does not split it


def tracked_files_are_plain(
    folders: Sequence[str], context: CommandContext, *, separated: bool
) -> bool:
    """Return whether the tracked files below each of `folders` are regular files of the project.

    No name may lead through a symlink or look like an option; unless the names are `separated` by
    NUL, none may contain a character by which xargs splits it.
    """
    return all(_is_plain(folder, context, separated=separated) for folder in folders)


def _is_plain(folder: str, context: CommandContext, *, separated: bool) -> bool:
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
        if relative[:1] == "-" or not (separated or _PLAIN_NAME.fullmatch(relative)):
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
