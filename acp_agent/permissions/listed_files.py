"""Check the names of files that a command lists: none may lead outside or look like an option."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import islice

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
    check = _files_below_are_plain if word.origin == "below" else _tracked_are_plain
    for folder in folders:
        key = (f"{word.origin} {word.text}", folder)
        if key not in context.plain_lists:
            context.plain_lists[key] = check(word, context, folder)
        if not context.plain_lists[key]:
            return None
    return Word(_start(word), pattern=True)


def listed_paths(word: Word, context: CommandContext, folder: str) -> Iterator[str]:
    """Yield the absolute paths of the files that `word` stands for, as far as they are known."""
    if word.origin == "below":
        with suppress(OSError):
            entries = islice(_entries_below(word, folder), _MAX_NAMES)
            yield from (entry.path for entry, is_listed in entries if is_listed)
    else:
        for top, _, names in filter(None, [_tracked_below(context, folder)]):
            yield from (f"{top}/{name}" for name in names)


def _start(word: Word) -> str:
    """Return the folder below which the files are: `src` in `src/…*.py`."""
    return word.text.partition("…")[0].rstrip("/") or ("/" if word.text[:1] == "/" else ".")


def _entries_below(word: Word, folder: str) -> Iterator[tuple[os.DirEntry[str], bool]]:
    """Yield the entries below a folder, and whether they are among the files listed.

    Raises:
        OSError: a folder cannot be read.
    """
    pattern = word.text.partition("…")[2]
    pending = [os.path.normpath(os.path.join(folder, _start(word)))]  # noqa: PTH118 - one of many
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    yield entry, not pattern or fnmatchcase(entry.name, pattern)
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            continue


def _files_below_are_plain(word: Word, context: CommandContext, folder: str) -> bool:
    if not context.contains(os.path.join(folder, _start(word))):  # noqa: PTH118 - one of many
        return False
    try:
        for count, (entry, is_listed) in enumerate(_entries_below(word, folder)):
            is_plain = _PLAIN_NAME.fullmatch(entry.name) is not None
            if entry.is_symlink():
                is_plain = is_plain and context.contains(entry.path)
                matters = is_listed
            else:
                matters = is_listed or entry.is_dir()
            if count >= _MAX_NAMES or (matters and not is_plain):
                return False
    except OSError:
        return False
    return True


def _tracked_below(context: CommandContext, folder: str) -> tuple[str, str, tuple[str, ...]] | None:
    """Return git's top folder, the prefix of the names below `folder`, and these names."""
    repositories = context.repositories.used_in(os.path.realpath(folder))
    if not repositories or "GIT_INDEX_FILE" in os.environ:
        return None
    repository = repositories[0]
    try:
        names = index_names(f"{repository.git_dir}/index", _MAX_NAMES)
    except OSError:
        return None
    inner = os.path.relpath(os.path.realpath(folder), repository.work_tree)
    if names is None or inner.startswith(".."):
        return None
    prefix = "" if inner == "." else f"{inner}/"
    below = tuple(name for name in names if name.startswith(prefix))
    return repository.work_tree, prefix, below


def _tracked_are_plain(word: Word, context: CommandContext, folder: str) -> bool:
    tracked = _tracked_below(context, folder)
    if tracked is None:
        return False
    top, prefix, names = tracked
    checked_folders: dict[str, bool] = {}
    for name in names:
        relative = name[len(prefix) :]
        is_plain = word.origin == "tracked_nul" or _PLAIN_NAME.fullmatch(relative)
        if relative[:1] in "-@+" or not is_plain:
            return False
        path = f"{top}/{name}"
        parent = os.path.dirname(path)  # noqa: PTH120 - one of many
        if parent not in checked_folders:
            checked_folders[parent] = os.path.realpath(parent) == parent
        try:
            if not checked_folders[parent] or stat.S_ISLNK(os.lstat(path).st_mode):
                return False
        except OSError:
            continue  # a deleted file is not read
    return True
