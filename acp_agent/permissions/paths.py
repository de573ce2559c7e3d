"""Check whether the paths of a command stay in the session's folders or name protected places."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from msgspec import Struct, field

from acp_agent.permissions.rules import shell_rules
from acp_agent.permissions.shell.words import NONEMPTY, UNKNOWN, Word
from acp_agent.workspace.git_repositories import GitRepositories

_BRACKET_EXPRESSION = re.compile(r"\[[!^]?\]?[^]]*\]")
_SPLITTING = frozenset(" \t\n*?[\\")
_LISTING_LIMIT = 500  # entries of a folder that are compared with a pattern


class CommandContext(Struct, frozen=True, kw_only=True):
    """Where a command runs; all paths are absolute and resolved.

    `roots` are the session's folders. `program_files` are acp-agent's own files and folders, for a
    session in `project`. `repositories` are read on demand, once per context. `installed` caches
    whether programs are installed outside the project, `plain_lists` whether listed files are plain
    (`listed_files.py`).
    """

    cwd: str
    roots: tuple[str, ...]
    home: str
    program_files: tuple[str, ...] = ()
    project: str = ""
    repositories: GitRepositories = field(default_factory=GitRepositories)
    installed: dict[str, bool] = field(default_factory=dict)
    plain_lists: dict[tuple[str, str], bool] = field(default_factory=dict)

    def contains(self, path: str) -> bool:
        """Return whether `path`, with links resolved, is in one of the session's folders."""
        return is_below(os.path.realpath(path), self.roots)


def is_below(path: str, folders: Sequence[str]) -> bool:
    """Return whether an absolute path is one of the folders or lies below one."""
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def stays_inside(word: Word, context: CommandContext, folders: Sequence[str]) -> bool:
    """Return whether a word, as a path from any of `folders`, certainly stays in the roots."""
    if not word.static or UNKNOWN in word.text or NONEMPTY in word.text:
        return False
    if word.pattern:
        return all(_pattern_stays_inside(word.text, context, folder) for folder in folders)
    return all(context.contains(os.path.join(folder, word.text)) for folder in folders)  # noqa: PTH118 - text that need not be a path


def matches_are_plain(word: Word, context: CommandContext, folders: Sequence[str]) -> bool:
    """Return whether the shell reads each file name that matches a pattern as one plain word."""
    return all(_pattern_stays_inside(word.text, context, folder, plain=True) for folder in folders)


def _pattern_stays_inside(
    text: str, context: CommandContext, folder: str, *, plain: bool = False
) -> bool:
    """Return whether no matching name leads outside or would be read as an option.

    With `plain`, no matching name may contain a character that splits it into words or makes it a
    pattern.
    """
    if text.startswith("-"):
        return False
    budget = _LISTING_LIMIT
    pending = [("/" if text.startswith("/") else "", [part for part in text.split("/") if part])]
    while pending:
        prefix, remaining = pending.pop()
        path = os.path.join(folder, prefix or ".")  # noqa: PTH118 - text that need not be a path
        if not context.contains(path):
            return False
        if not remaining:
            continue
        name, *remaining = remaining
        if not any(mark in name for mark in "*?["):
            pending.append((f"{prefix}{name}/", remaining))
            continue
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    budget -= 1
                    if budget < 0 or (entry.name.startswith("-") and not prefix):
                        return False
                    folders_only = bool(remaining) or text.endswith("/")
                    if fnmatchcase(entry.name, name) and (not folders_only or entry.is_dir()):
                        if plain and set(entry.name) & _SPLITTING:
                            return False
                        pending.append((f"{prefix}{entry.name}/", remaining))
        except OSError:
            continue  # nothing can match
    return True


def possible_paths(text: str, folder: str) -> list[str]:
    """Return the paths that a word may mean: as written, and with every unknown part empty."""
    texts = [text]
    if UNKNOWN in text:
        # "$name/" is "/" if the variable is not set.
        texts.append(text.replace(UNKNOWN, ""))
    return [_normalize(os.path.join(folder, candidate)) for candidate in texts if candidate]  # noqa: PTH118 - likewise


def _normalize(path: str) -> str:
    return os.path.normpath("/" + path.lstrip("/"))


def is_vital(word: Word, context: CommandContext, folders: Sequence[str]) -> bool:
    """Return whether a word names a folder, or all of its content, that no command may remove."""
    vital = shell_rules().refused
    exceptions = (*vital.tree_exceptions, *(root for root in context.roots if root != "/"))
    return any(
        _is_vital(path, vital.folders, context.home)
        or (is_below(path, vital.trees) and not is_below(path, exceptions))
        for folder in folders
        for path in possible_paths(word.text, folder)
    )


def _is_vital(path: str, folders: frozenset[str], home: str) -> bool:
    guarded = _guarded_folders(folders, home)
    if path in guarded:
        return True
    # A pattern for all names in a guarded folder counts as that folder.
    base, _, name = path.rpartition("/")
    if name and _matches_most_names(name) and _is_guarded(base or "/", guarded):
        return True
    return _is_guarded(path, guarded)


def _matches_most_names(name: str) -> bool:
    """Return whether a pattern matches most names: `*`, `.*`, `.[!.]*`, `[a-z]*`."""
    shorter = _BRACKET_EXPRESSION.sub("", name)
    return not shorter.strip("*?.") and (shorter == name or "*" in shorter)


@lru_cache(maxsize=8)
def _guarded_folders(folders: frozenset[str], home: str) -> frozenset[str]:
    """Return the folders, as written and without case, with the home folder and its parent."""
    guarded = {*folders, home, str(Path(home).parent)}
    return frozenset({*guarded, *(folder.casefold() for folder in guarded)})


def _is_guarded(path: str, guarded: frozenset[str]) -> bool:
    if not any(mark in path for mark in "*?["):
        return path.casefold() in guarded
    return any(
        folder.count("/") == path.count("/") and fnmatchcase(folder, path) for folder in guarded
    )


def is_disk(path: str) -> bool:
    """Return whether a path is, or as a pattern may match, a disk, a partition or memory."""
    fixed_prefix = re.split(r"[*?[]", path, maxsplit=1)[0]
    return any(
        path.startswith(prefix)
        or (
            fixed_prefix != path
            and fixed_prefix.startswith("/dev/")
            and prefix.startswith(fixed_prefix)
        )
        for prefix in shell_rules().refused.disks
    )
