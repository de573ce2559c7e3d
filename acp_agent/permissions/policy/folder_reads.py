"""Find the files below folders that a command reads, for strict rules: `grep -r key .`."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from fnmatch import fnmatch

from acp_agent.permissions.rules import has_option, shell_rules
from acp_agent.permissions.shell.syntax import Command
from acp_agent.permissions.shell.words import NONEMPTY, UNKNOWN
from acp_agent.permissions.wrapped_commands import base_name

_LIMIT = 1_000  # entries checked for one command
_SKIPPED = frozenset({".git", "node_modules"})
_EXCLUDE_OPTIONS = ("--exclude", "--exclude-dir", "--glob", "-g")


def files_below(command: Command, folder: str) -> Iterator[str]:
    """Yield the files below the folders that a command reads recursively, nearest first.

    Checks at most a thousand entries, skipping `.git` and `node_modules`. Reads the disk.

    Args:
        folder: the absolute path of the folder that it runs in.
    """
    name, words = base_name(command), [word.text for word in command.words[1:]]
    readers = shell_rules().languages.folder_readers
    reader = readers.get(name)
    if reader is None or not (reader.when is None or has_option(words, reader.when)):
        return
    hidden = reader.hidden is None or has_option(words, reader.hidden)
    excluded = [value.lstrip("!") for value in _excluded_names(words)]
    operands = [text for text in words if text[:1] != "-" and not {UNKNOWN, NONEMPTY} & {*text}]
    roots = [path for path in (_joined(folder, text) for text in operands) if os.path.isdir(path)]
    if not roots and reader.reads_current_folder:
        roots = [folder]
    pending, entry_count = deque(roots), 0
    while pending:
        try:
            entries = os.scandir(pending.popleft())
        except OSError:
            continue
        with entries:
            for entry in entries:
                entry_count += 1
                if entry_count > _LIMIT:
                    return
                if entry.name in _SKIPPED or (not hidden and entry.name[:1] == "."):
                    continue
                if any(fnmatch(entry.name, pattern) for pattern in excluded):
                    continue
                yield entry.path
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)


def is_exclusion(option: str) -> bool:
    """Return whether an option excludes the files that its value names."""
    return option in _EXCLUDE_OPTIONS[:2]


def _excluded_names(words: list[str]) -> Iterator[str]:
    """Yield the excluded names: `--exclude=x`, `-g '!x'`."""
    for previous, text in zip(["", *words], words, strict=False):
        option, mark, value = text.partition("=")
        if previous in _EXCLUDE_OPTIONS:
            option, mark, value = previous, "=", text
        if mark and option in _EXCLUDE_OPTIONS and (is_exclusion(option) or value[:1] == "!"):
            yield value


def _joined(folder: str, text: str) -> str:
    return os.path.normpath(os.path.join(folder, text))  # noqa: PTH118 - text that need not be a path
